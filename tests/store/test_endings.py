"""How an answer ended: shown only where the reason is not a usual one."""

from __future__ import annotations

from typing import Any

import pytest

from store.conversation.endings import ending_of
from store.exports.html.parts import ending


@pytest.mark.parametrize(("details", "words", "shown"), [
    ({}, "", ""), ({"finish_reason": "end_turn"}, "", ""),
    ({"finish_reason": "tool-calls"}, "", ""),
    ({"finish_reason": "toolUse"}, "", ""), ({"finish_reason": "STOP"}, "", ""),
    ({"finish_reason": "UserTurnEnd"}, "", ""), ({"finish_reason": "MaxTokens"}, "", ""),
    ({"finish_reason": 7}, "", ""), ({"finish_reason": " "}, "", ""),
    ({"finish_reason": "quota\nspent"}, "ended: quota spent", '<p>○ '),
    ({"finish_reason": "interrupted", "aborted_at": 1}, "stopped here", '<p class="failed">✗ '),
    ({"finish_reason": "power_cut", "aborted_at": 1}, "stopped here (power_cut)",
     '<p class="failed">✗ '),
])  # fmt: skip
def test_a_reason_that_is_not_usual_is_shown(
    details: dict[str, Any], words: str, shown: str
) -> None:
    metadata = {"backscroll": details}
    found = ending_of(metadata)
    assert (found.words if found is not None else "") == words
    page = f"{shown}{words}</p>" if words else ""
    assert page in (made := ending(metadata, "text")) and bool(made) == bool(words)


def test_metadata_of_any_shape_says_nothing() -> None:
    assert ending_of({"backscroll": "x"}) is ending_of({}) is None
