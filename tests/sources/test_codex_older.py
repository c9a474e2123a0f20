"""Rollouts that older versions wrote, and the order in which they write a response."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.codex import CodexSource
from tests.sources.codex_lines import (
    DATA,
    Lines,
    extra,
    read,
    read_one,
    said,
    shape,
    spent,
    thread_id,
    tools,
)
from tests.sources.grown import check_records

A = thread_id(1)


def titled(version: str, title: str) -> SessionDraft:
    drafts, problems = read(DATA / version)
    assert problems == []
    (found,) = [draft for draft in drafts.values() if draft.title == title]
    return found


def counts(draft: SessionDraft) -> list[int | None]:
    """Return what each answer was given, None where it has no count."""
    usages = [m.metadata.get("usage") for m in draft.messages if m.role == "assistant"]
    return [usage and usage["input"] + usage["cache_read"] for usage in usages]


def test_a_response_whose_items_come_after_its_count_is_one_message() -> None:
    draft = titled("0.58.0", "PARALLEL go")
    assert shape(draft) == [
        ("user", "PARALLEL go"),
        ("assistant", "Two at once.|Both now.|tool-shell|tool-shell"),
        ("assistant", "Parallel done."),
    ]
    assert counts(draft) == [8235, 8448]
    assert [extra(part)["exit_code"] for part in tools(draft.messages)] == [0, 3]
    assert [extra(part)["status"] for part in tools(draft.messages)] == ["ok", "error"]


def test_words_of_a_killed_run_are_there_though_no_item_repeats_them() -> None:
    draft = titled("0.58.0", "SLEEPY killed")
    assert shape(draft) == [
        ("user", "SLEEPY killed"),
        ("assistant", "Sleep long.|I will wait."),
        ("user", "go on after sleepy"),
        ("assistant", "Think about: go on after sleepy|Answer to: go on after sleepy"),
    ]
    assert counts(draft) == [8236, 8262]


def test_what_a_broken_stream_said_is_there() -> None:
    (_, answer) = shape(titled("0.36.0", "DROP go"))
    assert answer == ("assistant", "drop|half an ans|drop|half an ans")


def test_a_picture_that_was_looked_at_is_no_prompt() -> None:
    draft = titled("0.36.0", "LOOK go")
    assert shape(draft) == [
        ("user", "LOOK go"),
        ("assistant", "tool-view_image"),
        ("assistant", "Think about: |Answer to: "),
    ]
    assert counts(draft) == [7485, 7649]
    (picture,) = [m for m in draft.messages if any(p.type == "file" for p in m.parts)]
    assert picture.metadata["origin"] == "meta"


def test_lines_without_an_envelope(tmp_path: Path) -> None:
    draft = titled("0.20.0", "FAIL go")
    (call,) = tools(draft.messages)
    assert call.data["input"]["command"] == ["bash", "-lc", "echo bad >&2; exit 4"]
    assert (extra(call)["exit_code"], extra(call)["status"]) == (4, "error")
    assert draft.messages[-1].parts[-1].data["text"] == "It failed with 4."


def test_an_item_may_come_before_the_event_that_repeats_it(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("hi")
    lines.says("twice the same")
    lines.event("agent_message", message="twice the same")
    lines.says("twice the same")
    lines.event("agent_message", message="twice the same")
    draft = read_one(lines, tmp_path)
    assert shape(draft) == [("user", "hi"), ("assistant", "twice the same|twice the same")]


def test_words_that_an_item_tells_otherwise_are_not_told_twice(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("hi")
    lines.event("agent_reasoning", text="First.")
    lines.event("agent_reasoning", text="Second.")
    summary = [{"type": "summary_text", "text": text} for text in ("First.", "Second.")]
    lines.item("reasoning", summary=summary)
    lines.event("agent_message", message="Shown without its mark.")
    lines.says("Shown without its mark. <mark/>")
    lines.event("agent_message", message="Left alone.")
    draft = read_one(lines, tmp_path)
    assert shape(draft)[1:] == [
        ("assistant", "First.\n\nSecond.|Shown without its mark. <mark/>|Left alone.")
    ]


def test_words_that_were_rewound_are_hidden(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("hi")
    lines.event("agent_message", message="Never repeated.")
    lines.event("thread_rolled_back", num_turns=1)
    lines.user("again")
    draft = read_one(lines, tmp_path)
    assert shape(draft) == [("user", "again")]
    assert len(draft.messages) == 3


@pytest.mark.parametrize(
    "output",
    [
        'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }',
        "approval policy is Never; reject command — you cannot ask for escalated permissions",
        "exec command rejected by user",
    ],
)
def test_a_command_that_was_not_allowed_is_denied(output: str, tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("do")
    lines.output(lines.call("exec_command", cmd="touch /etc/x"), output)
    (call,) = tools(read_one(lines, tmp_path).messages)
    assert (call.tool_state, extra(call)["status"]) == ("output-denied", "denied")
    assert call.data["approval"]["reason"] == output


def test_a_patch_that_did_not_fit_failed(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("do")
    failure = "error: Failed to read file to update /w/a.py: No such file or directory"
    lines.output(lines.call("shell", command=["apply_patch"]), failure)
    (call,) = tools(read_one(lines, tmp_path).messages)
    assert (call.tool_state, extra(call)["status"]) == ("output-available", "error")


def test_a_type_that_is_no_text_costs_its_line_alone(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("hi")
    path = lines.write(tmp_path)
    path.write_text(path.read_text() + '{"type": {"type": "token_count"}}\n')
    (unit,) = CodexSource().units(tmp_path, [])
    (draft,) = CodexSource().read(tmp_path, unit).sessions
    assert shape(draft) == [("user", "hi")]


@pytest.mark.parametrize("start", [0, None])
def test_a_line_that_was_written_twice_counts_once(tmp_path: Path, start: int | None) -> None:
    lines = Lines(A, start)
    lines.user("go")
    lines.item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Hm."}])
    lines.says("I look.")
    lines.output(lines.call("exec_command", cmd="ls"), "a")
    lines.usage("r1")
    lines.says("Done.")
    lines.event("context_compacted")
    lines.user("go")
    once = read_one(lines, tmp_path)
    for place, line in list(enumerate(lines.lines)):
        lines.lines.insert(place, line)
        draft = read_one(lines, tmp_path)
        assert shape(draft) == shape(once) and spent([draft]) == spent([once])
        check_records(draft)
        del lines.lines[place]


def test_a_prompt_that_only_an_event_tells_is_shown_once(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.turn("one", "first", "r1")
    lines.event("user_message", message="lost", images=["https://x/a.png"])
    lines.says("second")
    lines.item("message", role="user", content="<environment_context>of lost too")
    lines.user("go on")
    lines.event("user_message", message="go on")
    lines.says("third")
    content = [{"type": "text", "text": "as an item"}]
    lines.event("item_completed", item={"type": "UserMessage", "id": "i", "content": content})
    draft = read_one(lines, tmp_path)
    assert shape(draft) == [
        ("user", "one"), ("assistant", "first"), ("user", "lost|file"), ("assistant", "second"),
        ("user", "go on"), ("user", "go on"), ("assistant", "third"), ("user", "as an item"),
    ]  # fmt: skip
    check_records(draft)


def test_an_event_before_its_item_and_one_without_the_wrapping_are_no_prompts(
    tmp_path: Path,
) -> None:
    lines = Lines(A, None)
    lines.event("user_message", message="early")
    lines.event("token_count", info=None)
    lines.user("early", event=False)
    lines.says("yes")
    lines.user("# Context from my IDE setup:\n\n## My request for Codex:\nfix  it\n", event=False)
    lines.event("user_message", message="fix it")
    tags = ["<image name=[a.png]>", "</image>", "and then"]
    opening, closing, words = ({"type": "input_text", "text": tag} for tag in tags)
    image = {"type": "input_image", "image_url": "https://x/a.png"}
    lines.item("message", role="user",
               content=[{"type": "input_text", "text": "see"}, opening, image, closing, words])
    lines.event("user_message", message="see\nand then", images=["https://x/a.png"])
    draft = read_one(lines, tmp_path)
    assert [text for role, text in shape(draft)] == [
        "early", "yes", "fix  it|data-event", "see|file|and then"]
    check_records(draft)


def test_a_prompt_that_no_event_tells_is_the_persons_where_it_was_answered(tmp_path: Path) -> None:
    lines = Lines(A, None)
    # Another program's thread, without events, that Codex continues.
    for number in range(2):
        lines.user(f"old {number}", event=False)
        lines.says(f"answer {number}")
    lines.user("put in", event=False)
    lines.turn("new", "done", "r1")
    # An event that was lost.
    lines.event("task_started", turn_id="turn-2")
    lines.user("lost", event=False)
    lines.says("found")
    lines.event("agent_message", message="found")
    lines.user("Warning: too many processes", event=False)
    lines.event("task_complete", turn_id="turn-2")
    lines.event("task_started", turn_id="turn-3")
    lines.user("told")
    lines.says("one")
    lines.user("Warning: again", event=False)
    lines.says("two")
    lines.event("task_complete", turn_id="turn-3")
    draft = read_one(lines, tmp_path)
    asked = [said(m) for m in draft.messages if m.metadata.get("origin") == "human"]
    assert asked == ["old 0", "old 1", "new", "lost", "told"]
    put_in = [said(m) for m in draft.messages if m.metadata.get("origin") == "meta"]
    assert put_in == ["put in", "Warning: too many processes", "Warning: again"]
    check_records(draft)
