"""Tools with a drawing of their own show what came back, and a person's words first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.conversation.replies import answers_in, approved_plan, reply_in
from store.sources.cline.markup import results_in
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


@pytest.mark.parametrize("name", ["Bash", "Read", "Grep", "Task", "mcp__db__query"])
@pytest.mark.parametrize("text", [
    "log:\nthe user said:\nhello", f"a.jsonl:3:{FIXED}no", f"{FIXED}no", "The user wrote: small",
])  # fmt: skip
def test_such_words_in_an_output_are_the_output(name: str, text: str) -> None:
    call = describe(part(name, "output-available", text, status="ok"))
    assert (call.reply, call.body) == ("", text)
    failed = describe(part(name, "output-error", f"assert: {text}", status="error"))
    assert (failed.reply, failed.body) == ("", f"assert: {text}")


CLARIFY = (
    "The user wants to clarify these questions.\n    This means they may have more.\n\n"
    "    Questions asked:\n"
)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ('- "A?"\n  (No answer provided)', ""),
        ('- "A?"\n  Answer: x, "y"\n- "B?"\n  (No answer provided)', 'A?  x, "y"'),
        ('- "A?"\n  (No answer provided)\n  User notes: why\n- "B?"\n  Answer: z',
         "A?\n  why\nB?  z"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("note", ["", "\n\nNote: The user's next message may correct."])
def test_of_questions_to_clarify_only_the_answers_are_a_persons(
    asked: str, words: str, note: str
) -> None:
    text = FIXED + CLARIFY + asked + note
    call = describe(part("AskUserQuestion", "output-denied", text, status="denied"))
    assert call.reply == words
    assert "wants to clarify" in (call.result or call.body)


@pytest.mark.parametrize("opening", [
    "Permission for this tool use was denied. It was rejected. The user said:\n",
    "The user doesn't want to proceed with this tool use. The user provided the following reason"
    " for the rejection:  ",
    "The user denied this operation and provided the following feedback:\n<feedback>\n",
    "This tool call was rejected by the user with feedback: ",
    "Commands not executed. The user rejected your commands with the following message: ",
])  # fmt: skip
def test_each_agents_refusal_holds_words(opening: str) -> None:
    tail = "\n</feedback>" if opening.endswith("<feedback>\n") else ""
    assert reply_in(f"{opening}not there{tail}").words == "not there"


@pytest.mark.parametrize(("result", "ended", "words"), [
    ({"status": "denied", "message": "The user denied this operation and provided the following"
      " feedback", "feedback": "not there"}, "denied", "not there"),
    ({"status": "denied", "message": "The user denied this operation."}, "denied", ""),
    ({"status": "approved", "message": "The user approved this operation and provided the"
      " following context", "feedback": "and b"}, "ok", "and b"),
    ({"status": "error", "message": "The tool execution failed", "error": "gone"}, "error", ""),
    ({"status": "fine"}, "ok", ""),
])  # fmt: skip
def test_results_of_roo_that_are_json(result: dict[str, str], ended: str, words: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "content": [
        {"type": "text", "text": json.dumps(result, separators=(",", ":"))}]}  # fmt: skip
    ((_id, _name, text, status),) = results_in([block])
    assert (status, reply_in(text, succeeded=status == "ok").words) == (ended, words)


def test_a_comment_on_an_approved_plan_is_a_persons() -> None:
    said = "User has approved your plan.\n\nThe user also said: use tabs\n\n"
    text = said + EDITED.partition("\n\n")[2]
    call = describe(part("ExitPlanMode", "output-available", text, status="ok"))
    assert (call.reply, call.body) == ("use tabs", "# Plan\n1. EDITED step")


ASKED = [{"question": "Which?", "id": "w"}, {"question": "How, if?", "id": "h"}]


@pytest.mark.parametrize(
    ("result", "structured", "lines"),
    [
        ('User has answered your questions: "Which?"="a, "b"", "How, if?"="c". You can now'
         " continue with the user's answers in mind.", {}, ['Which?  a, "b"', "How, if?  c"]),
        ('The user answered: "Which?"=(no option selected) notes: any. Read the answers carefully'
         " — they may request clarification.", {}, ["Which?\n  any"]),
        ('User has answered your questions: "Which?"="a" selected preview:\n```\nx\n``` user notes:'
         ' but "b", "How, if?"="Unanswered".', {}, ['Which?  a\n  but "b"']),
        ("", {"answers": {"How, if?": "c"}, "annotations": {"Which?": {"notes": "any"}}},
         ["Which?\n  any", "How, if?  c"]),
        ("", {"answers": [["a", "b"], []]}, ["Which?  a, b"]),
        ('{"answers":{"w":{"answers":["a","user_note: b"]}}}', {}, ["Which?  a\n  b"]),
        ('{"answers":{"0":"a","1":"b"}}', {}, ["Which?  a", "How, if?  b"]),
        ("Asked 2 questions", {}, []),
    ],
)  # fmt: skip
def test_answers_are_found_in_every_shape(
    result: str, structured: dict[str, Any], lines: list[str]
) -> None:
    assert [answer.text for answer in answers_in(result, structured, ASKED)] == lines


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


@pytest.mark.parametrize(("tool", "result"), [
    ("ask_question", "Blue"), ("ask_followup_question", "<answer>\nBlue\n</answer>"),
    ("ask_followup_question", "<user_message>Blue</user_message>"),
    ("question", "<answer>Blue</answer>"),
])  # fmt: skip
def test_an_answer_without_a_sentence_around_it_is_a_persons(tool: str, result: str) -> None:
    given = {"question": "Which?", "options": ["Red", "Blue"]}
    call = describe({"type": f"tool-{tool}", "toolCallId": "c", "state": "output-available",
                     "input": given, "output": result})  # fmt: skip
    assert call.answers == call.body == "Which?  Blue"
