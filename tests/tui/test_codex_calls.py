"""Codex's commands and patches as the transcript tells them."""

from __future__ import annotations

import pytest

from store.exports.tool_line import tool_subject
from store.text.diffs import from_patch
from tui.transcript.tool_lines import status_glyph
from tui.words.calls import describe

HEAD = "Chunk ID: 4a\nWall time: 0.1 seconds\nProcess exited with code 3\n"


@pytest.mark.parametrize(
    ("name", "given", "structured", "what"),
    [
        ("Workflow", {"script": "export const meta = { name: 'dive', description: \"it's\" }"}, {},
         "dive: it's"),
        ("Workflow", {"name": "research"}, {"workflowName": "research", "summary": "s"},
         "research: s"),
        ("Workflow", {"script": "phase('x')"}, {}, "script: phase('x')"),
        ("TaskCreate", {"subject": "Fix it", "description": "at length"}, {}, "Fix it"),
    ],
)
def test_calls_of_claude_code(
    name: str, given: dict[str, str], structured: dict[str, str], what: str
) -> None:
    part = {
        "type": f"tool-{name}", "toolCallId": "t", "state": "output-available", "input": given,
        "output": "", "resultProviderMetadata": {"backscroll": {"structured": structured}},
    }
    assert describe(part).what == what


@pytest.mark.parametrize(
    ("output", "body"),
    [
        (f"{HEAD}Original token count: 2\nOutput:\noops\n", "oops"),
        (f"{HEAD}Output:\noops\n", "oops"),
        ("Wall time: 0.1 seconds\nOutput:\nthere", "there"),
        ("Wall time: 0.1 seconds\nnothing else", "Wall time: 0.1 seconds\nnothing else"),
    ],
)
def test_what_stands_before_an_output_is_not_repeated(output: str, body: str) -> None:
    part = {"type": "tool-exec_command", "state": "output-available", "input": {"cmd": "x"},
            "output": output}  # fmt: skip
    assert describe(part).body.strip() == body


def test_a_patch_names_its_files() -> None:
    patch = "*** Begin Patch\n*** Update File: /w/a.py\n@@\n-x\n+y\n*** Delete File: b.py\n"
    part = {"type": "tool-apply_patch", "state": "output-available", "input": {"input": patch}}
    assert describe(part, "/w").what == "a.py and 1 more"


def test_hunks_of_several_files_say_whose_they_are() -> None:
    def hunk(file: str, line: str) -> dict[str, object]:
        return {"file": file, "oldStart": 1, "newStart": 1, "lines": [line]}

    lines = from_patch([hunk("a", "+1"), hunk("a", "+2"), hunk("b", "-3")])
    assert [(line.sign, line.text) for line in lines] == [
        ("@", "a"), ("+", "1"), ("@", ""), ("+", "2"), ("@", "b"), ("-", "3"),
    ]  # fmt: skip
    assert [line.sign for line in from_patch([hunk("a", "+1")])] == ["+"]


def test_a_commands_line_is_what_was_run() -> None:
    assert tool_subject({"type": "tool-exec_command", "input": {"cmd": "ls -1"}}) == "ls -1"


@pytest.mark.parametrize(("state", "status", "glyph"), [
    ({"state": "output-available", "output": "half"}, "ended", "○"),
    ({"state": "output-error", "errorText": "half"}, "interrupted", "✗"),
])
def test_an_agents_own_word_is_no_success(state: dict[str, str], status: str, glyph: str) -> None:
    extra = {"backscroll": {"word": "cancelled by user"}}
    call = describe({"type": "tool-bash", "toolCallId": "c", "input": {"command": "ls"},
                     "resultProviderMetadata": extra, **state})
    assert (call.status, call.word) == (status, "cancelled by user")
    assert status_glyph(call, 0) == glyph
