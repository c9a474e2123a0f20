"""Which texts of a part are searched."""

from __future__ import annotations

import pytest

from store.search.text import sections

LINE = "QUJD" * 300


@pytest.mark.parametrize(("text", "searched"), [
    (LINE, False), (LINE + "==\n", False), ("data:image/png;base64,QUJD", False),
    (f"{LINE}\nand then a word", True), (f"{'=' * 1200} FAILURES {'=' * 1200}", True),
    (f"say {LINE}", True), ("QUJD", True),
])  # fmt: skip
def test_encoded_bytes_alone_are_left_out(text: str, searched: bool) -> None:
    found = sections({"type": "tool-Bash", "output": text}, "assistant", None)
    assert [each.text for each in found] == ([text] if searched else [])
