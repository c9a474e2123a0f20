from __future__ import annotations

from typing import Any

import pytest

from store.exports.tool_line import tool_output


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b\nc"}], "a\nb\nc"),
        (
            [{"type": "text", "text": "seen"},
             {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}],
            "seen\n[image/png]",
        ),
        ([{"type": "file"}], "[file]"),
        # What is no plain list of content stays whole.
        ([{"type": "text", "text": 5}], '[{"type":"text","text":5}]'),
        ([{"type": "text", "text": "a"}, {"type": "odd"}],
         '[{"type":"text","text":"a"},{"type":"odd"}]'),
        ([], "[]"),
        ({"a": [1]}, '{"a":[1]}'),
    ],
)  # fmt: skip
def test_output_as_text(output: Any, text: str) -> None:
    assert tool_output({"state": "output-available", "output": output}) == text
