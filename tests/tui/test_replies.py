"""Tools with a drawing of their own show what came back, and a person's words first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.conversation.replies import approved_plan, reply_in
from tests.sources.cases import case_drafts
from tests.tui.test_transcript_layout import block_of, shown
from tui.words.calls import describe

FIXED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it"
    " was a file edit, the new_string was NOT written to the file). To tell you how to proceed,"
    " the user said:\n"
)
TOOLS: dict[str, dict[str, Any]] = {
    "Bash": {"command": "rm x"},
    "Edit": {"file_path": "/a", "old_string": "x", "new_string": "y"},
    "Write": {"file_path": "/a", "content": "x"},
    "Read": {"file_path": "/a"},
    "Grep": {"pattern": "x"},
    "ExitPlanMode": {"plan": "# Plan\n1. do"},
    "TodoWrite": {"todos": [{"content": "a", "status": "pending"}]},
    "AskUserQuestion": {"questions": [{"question": "Which?"}]},
    "Task": {"description": "d", "prompt": "p"},
    "Workflow": {"script": "meta = {name: 'x'}"},
    "mcp__db__query": {"sql": "select 1"},
}


def part(name: str, state: str, text: str, **extra: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": f"tool-{name}", "toolCallId": "c", "state": state, "input": TOOLS[name],
        "resultProviderMetadata": {"backscroll": extra},
    }
    if state == "output-denied":
        data["approval"] = {"id": "c", "approved": False, "reason": text}
    else:
        data["errorText" if state == "output-error" else "output"] = text
    return data


@pytest.mark.parametrize("level", [None, "off", "short", "whole"])
@pytest.mark.parametrize("name", TOOLS)
def test_a_refusal_shows_the_persons_words(name: str, level: Any) -> None:
    given = part(name, "output-denied", FIXED + "smaller steps\nplease", status="denied")
    lines = shown(block_of(given, level=level))
    assert "denied" in lines[0]
    assert lines[1:3] == ["  You smaller steps", "      please"]
    after = " ".join(lines[3:])
    assert ("doesn't want to proceed" in after) is (level != "off")


@pytest.mark.parametrize("name", TOOLS)
def test_an_error_is_shown(name: str) -> None:
    given = part(name, "output-error", "InputValidationError: no such thing", status="error")
    assert any("InputValidationError" in line for line in shown(block_of(given))[1:])
    assert "InputValidationError" in describe(given).searched


def test_what_was_refused_stays_shown() -> None:
    plan = shown(block_of(part("ExitPlanMode", "output-denied", FIXED + "no", status="denied")))
    assert [line.strip() for line in plan[1:4]] == ["You no", "Plan", "1. do"]
    todo = shown(block_of(part("TodoWrite", "output-denied", FIXED + "no", status="denied")))
    assert todo[2].endswith(" a")


def test_fixed_text_of_a_success_shows_only_when_opened() -> None:
    given = part("TodoWrite", "output-available", "Todos have been modified", status="ok")
    assert not any("modified" in line for line in shown(block_of(given)))
    assert any("modified" in line for line in shown(block_of(given, level="whole")))


EDITED = (
    "User has approved your plan. You can now start coding.\n\n"
    "## Approved Plan (edited by user):\n# Plan\n1. EDITED step"
)


@pytest.mark.parametrize("structured", [
    {}, {"plan": "# Plan\n1. EDITED step", "planWasEdited": True},
])
def test_a_plan_is_shown_as_it_was_approved(structured: dict[str, Any]) -> None:
    given = part("ExitPlanMode", "output-available", EDITED, status="ok", structured=structured)
    lines = shown(block_of(given))
    assert "edited" in lines[0]
    assert [line.strip() for line in lines[1:3]] == ["Plan", "1. EDITED step"]
    assert "User has approved your plan" in lines[-1]
    given["output"] = EDITED.replace("\n", "\r\n")
    assert any("EDITED" in line for line in shown(block_of(given)))


def test_a_plan_that_was_approved_as_it_was() -> None:
    text = "User has approved your plan.\n\n## Approved Plan:\n# Plan\n1. do"
    given = part("ExitPlanMode", "output-available", text, status="ok")
    lines = shown(block_of(given))
    assert "edited" not in lines[0] and lines[2].strip() == "1. do"


def test_answers_show_with_what_was_written_beside_them() -> None:
    given = part(
        "AskUserQuestion", "output-available", "User has answered your questions.", status="ok",
        structured={"answers": {"Which?": "a"}, "annotations": {"Which?": {"notes": "not b"}}},
    )
    lines = [line.strip() for line in shown(block_of(given))]
    assert lines[1:3] == ["Which?  a", "not b"]


@pytest.mark.parametrize(
    ("text", "words", "rest"),
    [
        ("all well", "", "all well"),
        (f"{FIXED}smaller", "smaller", FIXED.strip()),
        (f"{FIXED}a\n\nb\n\nNote: The user's next message may correct.", "a\n\nb",
         f"{FIXED.strip()}\nNote: The user's next message may correct."),
        ("The user rejected permission to use this specific tool call with the following"
         " feedback: not there", "not there", "The user rejected permission to use this"
         " specific tool call with the following feedback:"),
    ],
)  # fmt: skip
def test_replies_are_taken_apart(text: str, words: str, rest: str) -> None:
    assert reply_in(text) == (words, rest)


def test_no_plan_is_made_up() -> None:
    assert approved_plan("User has approved exiting plan mode.", {"plan": None}) is None


def test_the_case_of_the_refused_plan(tmp_path: Path) -> None:
    (draft,) = case_drafts("03-plan-and-todo-results/50-denied", tmp_path)
    calls = [p.data for m in draft.messages for p in m.parts if p.tool_call_id]
    assert len(calls) == 9
    for number, data in enumerate(calls):
        assert describe(data).reply == f"FEEDBACK{number} for {data['type'][5:]}"


def test_the_case_of_the_edited_plan(tmp_path: Path) -> None:
    (draft,) = case_drafts("03-plan-and-todo-results/77-plan-edited", tmp_path)
    (data,) = [p.data for m in draft.messages for p in m.parts if p.tool_call_id]
    assert describe(data).body == "# Plan\n1. EDITED step"
