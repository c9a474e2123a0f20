from __future__ import annotations

from typing import Any

import pytest

from store.exports.tool_line import tool_output, tool_subject


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


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({"command": ["bash", "-lc", "ls -1"]}, "ls -1"),
        ({"file_path": "/w/src/a.py"}, "src/a.py"),
        (
            {"input": "*** Begin Patch\n*** Update File: /w/a.txt\n@@\n-a\n+b\n"
                      "*** Add File: c.txt\n+c\n*** End Patch\n"},
            "a.txt, c.txt",
        ),
        ({"range": "v1..v2", "n": 20, "deep": True, "filter": {"a": 1}, "text": "x" * 61},
         "range: v1..v2, n: 20, deep: true, filter, text"),
        ({"input": "no patch"}, "input: no patch"),
        ({"questions": [{"question": "Both?"}]}, "1 question"),
        ({"plan": [{"step": "a"}, {"step": "b"}]}, "2 steps"),
    ],
)  # fmt: skip
def test_what_a_call_was_about(given: Any, subject: str) -> None:
    assert tool_subject({"input": given}, "/w") == subject
