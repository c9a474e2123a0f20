"""Hand-made threads: segments, rewinds across them, forks, subagents, odd calls and counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.conversation.outcomes import outcome_of
from tests.sources.codex_lines import (
    START,
    Lines,
    api,
    extra,
    read,
    read_one,
    said,
    shape,
    spent,
    thread_id,
    tools,
)  # fmt: skip

A, B, C, D = (thread_id(number) for number in (1, 2, 3, 4))


def base(key: str, end: int) -> dict[str, object]:
    return {"thread_id": key, "end_ordinal_exclusive": end, "end_byte_offset": 1}


def two_turns() -> Lines:
    """One meta line, and turns that end before the ordinals 7 and 13."""
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    lines.turn("two", "re two", "r2")
    return lines


def test_a_third_segment_may_go_on_from_the_first(tmp_path: Path) -> None:
    two_turns().write(tmp_path)
    second = Lines(A, 13, START + 5000, history_base=base(A, 13))
    second.turn("three", "re three", "r3")
    second.write(tmp_path, B)
    third = Lines(A, 7, START + 9000, history_base=base(A, 7))
    third.turn("four", "re four", "r4")
    third.write(tmp_path, C)
    drafts, problems = read(tmp_path)
    assert problems == []
    assert [text for _, text in shape(drafts[A])] == ["one", "re one", "four", "re four"]
    hidden = {said(m): m.metadata["hidden_at"] for m in drafts[A].messages
              if "hidden_at" in m.metadata}  # fmt: skip
    assert set(hidden) == {"two", "re two", "three", "re three"}
    assert set(hidden.values()) == {START + 9000}
    assert [said(m) for m in drafts[A].messages][::2] == ["one", "two", "three", "four"]


def test_a_fork_that_is_rewound_into_its_prefix_hides_the_rest(tmp_path: Path) -> None:
    two_turns().write(tmp_path)
    fork = Lines(B, 13, START + 5000, history_base=base(A, 13), forked_from_id=A)
    fork.turn("mine", "re mine", "r3")
    fork.write(tmp_path)
    again = Lines(B, 7, START + 9000, history_base=base(A, 7), forked_from_id=A)
    again.turn("anew", "re anew", "r4")
    again.write(tmp_path, C)
    drafts, problems = read(tmp_path)
    assert problems == []
    assert [text for _, text in shape(drafts[B])] == ["one", "re one", "anew", "re anew"]
    hidden = [m for m in drafts[B].messages if "hidden_at" in m.metadata]
    assert [said(m) for m in hidden] == ["two", "re two", "mine", "re mine"]
    assert [m.inherited_from is not None for m in hidden] == [True, True, False, False]
    assert spent(drafts.values())["output"] == 4 * 6


def test_forks_of_forks_reach_back_to_the_first(tmp_path: Path) -> None:
    two_turns().write(tmp_path)
    child = Lines(B, 7, START + 5000, history_base=base(A, 7), forked_from_id=A)
    child.turn("child", "re child", "r3")
    child.write(tmp_path)
    grandchild = Lines(C, 14, START + 9000, history_base=base(B, 14), forked_from_id=B)
    grandchild.turn("grand", "re grand", "r4")
    grandchild.write(tmp_path)
    drafts, _ = read(tmp_path)
    assert [said(m) for m in drafts[C].messages][::2] == ["one", "child", "grand"]
    names = {m.source_id for m in drafts[B].messages}
    assert {m.inherited_from for m in drafts[C].messages} - {None} <= names


def test_a_fork_of_a_segment_has_its_thread_as_parent(tmp_path: Path) -> None:
    """A file that holds no more than its base says nothing else of where it is from."""
    two_turns().write(tmp_path)
    second = Lines(A, 7, START + 5000, history_base=base(A, 7))
    second.turn("three", "re three", "r3")
    second.write(tmp_path, B)
    fork = Lines(C, 13, START + 9000, history_base=base(B, 13))
    fork.turn("four", "re four", "r4")
    fork.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert problems == []
    lineage = drafts[C].lineage
    assert lineage is not None and (lineage.kind, lineage.parent_source_id) == ("fork", A)
    parents = {m.source_id: said(m) for m in drafts[A].messages}
    assert parents[lineage.parent_message_source_id or ""] == "re three"


def test_a_missing_base_is_told_and_the_rest_stands(tmp_path: Path) -> None:
    lines = Lines(B, 7, history_base=base(A, 7), forked_from_id=A)
    lines.turn("mine", "re mine", "r1")
    path = lines.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert shape(drafts[B]) == [("user", "mine"), ("assistant", "re mine")]
    assert [(p.path, A in p.reason) for p in problems] == [(str(path), True)]


def test_bases_that_go_in_a_circle_end(tmp_path: Path) -> None:
    for own, other in ((A, B), (B, A)):
        lines = Lines(own, 5, history_base=base(other, 50))
        lines.turn(own, "re", f"r-{own}")
        lines.write(tmp_path)
    drafts, _ = read(tmp_path)
    assert set(drafts) == {A, B}


def test_repeated_ordinals_are_taken_as_they_come(tmp_path: Path) -> None:
    lines = two_turns()
    for line in lines.lines[5:]:
        line["ordinal"] -= 1
    assert [text for _, text in shape(read_one(lines, tmp_path))] == [
        "one", "re one", "two", "re two",
    ]  # fmt: skip


def test_the_segment_that_stands_is_the_one_the_database_names(tmp_path: Path) -> None:
    import sqlite3

    two_turns().write(tmp_path)
    second = Lines(A, 7, START + 5000, history_base=base(A, 7))
    second.turn("three", "re three", "r3")
    second.write(tmp_path, B)
    with sqlite3.connect(tmp_path / "state_7.sqlite") as database:
        database.execute("CREATE TABLE threads (id TEXT, rollout_path TEXT, name TEXT)")
        path = f"/elsewhere/rollout-2026-11-18T10-00-00-{A}.jsonl"
        database.execute("INSERT INTO threads VALUES (?, ?, 'kept')", (A, path))
    database.close()
    drafts, problems = read(tmp_path)
    assert problems == [] and drafts[A].title == "kept"
    assert [text for _, text in shape(drafts[A])] == ["one", "re one", "two", "re two"]


def copy_of(parent: Lines, thread: str, own: Lines, kept: int) -> Lines:
    """Begin a legacy file with copies of its parent's first lines, written at once."""
    copies = [{**line, "timestamp": own.lines[0]["timestamp"]} for line in parent.lines[:kept]]
    own.lines[1:1] = copies
    return own


def test_legacy_copies_end_where_the_parent_differs(tmp_path: Path) -> None:
    parent = Lines(A, None)
    parent.turn("one", "re one", "r1")
    parent.turn("two", "re two", "r2")
    parent.write(tmp_path)
    fork = copy_of(parent, B, Lines(B, None, START + 9000, forked_from_id=A), 7)
    fork.turn("mine", "re mine", "r3")
    fork.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert problems == []
    copied = [m for m in drafts[B].messages if m.inherited_from is not None]
    assert [said(m) for m in copied] == ["one", "re one"]
    assert [m.inherited_from for m in copied] == [m.source_id for m in drafts[A].messages[:2]]
    assert [m.created_at for m in copied] == [m.created_at for m in drafts[A].messages[:2]]
    assert drafts[B].title == "mine"


def test_what_a_parent_says_later_is_not_copied_though_it_is_the_same(tmp_path: Path) -> None:
    parent = Lines(A, None)
    parent.turn("one", "re one", "r1")
    fork = copy_of(parent, B, Lines(B, None, START + 9000, forked_from_id=A), 7)
    parent.at = START + 20_000
    for lines in (parent, fork):
        lines.user("go on")
        lines.says(f"re go on from {lines.thread}")
    parent.write(tmp_path)
    fork.write(tmp_path)
    drafts, _ = read(tmp_path)
    copied = [said(m) for m in drafts[B].messages if m.inherited_from is not None]
    assert copied == ["one", "re one"]


def test_legacy_copies_are_told_without_the_parent(tmp_path: Path) -> None:
    parent = Lines(A, None)
    parent.turn("one", "re one", "r1")
    fork = copy_of(parent, B, Lines(B, None, START + 9000, forked_from_id=A), 7)
    fork.turn("mine", "re mine", "r3")
    fork.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert len(problems) == 1
    assert [said(m) for m in drafts[B].messages if m.inherited_from] == ["one", "re one"]


@pytest.mark.parametrize("parent_there", [True, False])
def test_a_fork_made_by_hand_is_told_by_whose_tokens_it_counts(
    tmp_path: Path, parent_there: bool
) -> None:
    """Only the id in its first line is another one."""
    parent = two_turns()
    if parent_there:
        parent.write(tmp_path)
    fork = Lines(B, 0, START)
    fork.lines += parent.lines[1:7]
    fork.ordinal, fork.at = 7, START + 9000
    fork.turn("mine", "re mine", "r3")
    fork.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert [problem.reason for problem in problems] == (
        [] if parent_there else [f"the session {A} that this one goes on from is not there"]
    )
    assert [said(m) for m in drafts[B].messages] == ["one", "re one", "mine", "re mine"]
    inherited = [m.inherited_from is not None for m in drafts[B].messages]
    assert inherited == [True, True, False, False]
    lineage = drafts[B].lineage
    assert lineage is not None and (lineage.kind, lineage.parent_source_id) == ("fork", A)
    if parent_there:
        originals = {m.source_id: said(m) for m in drafts[A].messages}
        copies = [m.inherited_from for m in drafts[B].messages[:2]]
        assert [originals[name or ""] for name in copies] == ["one", "re one"]
        assert api(spent(drafts.values()))["input"] == 300


def test_counts_without_records_count_when_the_total_moves(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("one")
    lines.event("token_count", info=None)
    lines.says("a")
    lines.count(100, 100)
    lines.count(100, 100)
    lines.says("b")
    lines.count(150, 50)
    lines.count(150, 50)
    draft = read_one(lines, tmp_path)
    used = [m.metadata["usage"]["input"] for m in draft.messages if "usage" in m.metadata]
    assert used == [100, 50]


def test_records_count_once_and_leave_counts_out(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("one")
    lines.says("a")
    lines.usage("r1")
    lines.usage("r1")
    lines.count(110, 110)
    draft = read_one(lines, tmp_path)
    assert spent([draft]) == {
        "input": 60, "output": 6, "reasoning": 4, "cache_read": 40, "cache_write": 0,
    }  # fmt: skip


def test_a_thread_that_old_and_new_versions_wrote_counts_both(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("one")
    lines.says("a")
    lines.count(100, 100)
    lines.user("two")
    lines.says("b")
    lines.usage("r1")
    lines.count(210, 110)
    assert sum(spent([read_one(lines, tmp_path)]).values()) == 210


def test_responses_are_parted_where_all_outputs_are_in(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("go")
    first, second = lines.call("exec_command", cmd="a"), lines.call("exec_command", cmd="b")
    lines.output(second, "Process exited with code 0\nOutput:\n")
    lines.output(first, "Process exited with code 1\nOutput:\n")
    lines.says("done")
    draft = read_one(lines, tmp_path)
    assert [said(m) for m in draft.messages] == [
        "go", "tool-exec_command|tool-exec_command", "done",
    ]  # fmt: skip
    assert [extra(part)["exit_code"] for part in tools(draft.messages)] == [1, 0]


@pytest.mark.parametrize(
    ("output", "status", "code"),
    [
        ("Process exited with code 0\nOutput:\nProcess exited with code 9", "ok", 0),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nx", "error", 2),
        ('{"output":"x","metadata":{"exit_code":7,"duration_seconds":0.1}}', "error", 7),
        ({"content": "no", "success": False}, "error", None),
        ({"content": "yes", "success": True}, "ok", None),
        ("aborted by user after 2.4s", "interrupted", None),
        ("unsupported call: x", "error", None),
        ("words that mention Exit code: 3 in passing", "ok", None),
        ([{"type": "input_text", "text": "x"}], "ok", None),
        (None, "ok", None),
        (17, "ok", None),
    ],
)
def test_outputs_tell_how_a_call_ended(
    tmp_path: Path, output: object, status: str, code: int | None
) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.output(lines.call("exec_command", cmd="x"), output)
    (part,) = tools(read_one(lines, tmp_path).messages)
    assert part.tool_state == "output-available"
    assert (extra(part)["status"], extra(part).get("exit_code")) == (status, code)


def test_a_refused_call_is_denied(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.output(lines.call("exec_command", cmd="x"), "exec command rejected by user")
    (part,) = tools(read_one(lines, tmp_path).messages)
    assert part.tool_state == "output-denied" and extra(part)["status"] == "denied"
    assert part.data["approval"]["approved"] is False


def test_ends_of_older_versions_tell_of_their_calls(tmp_path: Path) -> None:
    lines = Lines(A, None)
    lines.user("go")
    run, patch = lines.call("shell", command=["ls"]), lines.call("apply_patch", input="...")
    lines.event("exec_command_end", call_id=run, exit_code=5, aggregated_output="no",
                duration={"secs": 1, "nanos": 500_000_000})  # fmt: skip
    lines.output(run, "no")
    lines.event("patch_apply_end", call_id=patch, success=True,
                changes={"/w/a": {"delete": {"content": "x\ny\n"}}})  # fmt: skip
    lines.output(patch, "done")
    first, second = tools(read_one(lines, tmp_path).messages)
    assert extra(first)["exit_code"] == 5 and extra(first)["duration_ms"] == 1500
    assert extra(first)["status"] == "error"
    (hunk,) = extra(second)["structured"]["structuredPatch"]
    assert hunk["lines"] == ["-x", "-y"] and hunk["oldLines"] == 2


def test_an_output_without_its_call_stands_alone(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.output("call_lost", "what came")
    lines.says("fine")
    draft = read_one(lines, tmp_path)
    assert [said(m) for m in draft.messages] == ["go", "data-result", "fine"]
    assert draft.messages[1].parts[0].data["data"]["text"] == "what came"


def test_call_ids_that_come_again_are_calls_of_their_own(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    for output in ("first", "second"):
        lines.calls = 0
        lines.output(lines.call("exec_command", cmd=output), output)
    parts = tools(read_one(lines, tmp_path).messages)
    assert [part.data["output"] for part in parts] == ["first", "second"]


def test_hosted_calls_and_pictures_that_were_made(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.item("web_search_call", id="ws_1", status="completed",
               action={"type": "search", "query": "x"})  # fmt: skip
    lines.item("image_generation_call", id="ig_1", status="completed", result="AAAA")
    lines.item("local_shell_call", call_id="c9", status="completed",
               action={"type": "exec", "command": ["ls"]})  # fmt: skip
    lines.output("c9", "a")
    search, image, shell = tools(read_one(lines, tmp_path).messages)
    assert search.type == "tool-web_search" and search.data["input"]["query"] == "x"
    assert image.data["output"][0]["url"] == "data:image/png;base64,AAAA"
    assert shell.data["input"]["command"] == ["ls"] and shell.data["output"] == "a"


def test_words_outside_the_known_ones_are_kept(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    for call_id, state in (("c1", "suspended"), ("c2", "completed")):
        lines.item("custom_tool_call", name="x", call_id=call_id, status=state, input="a")
        lines.item("custom_tool_call_output", call_id=call_id, output="b")
    lines.item("local_shell_call", call_id="c3", status="parked", action={"command": ["ls"]})
    lines.item("web_search_call", id="ws_1", status="throttled", action={"query": "x"})
    lines.item("message", role="critic", content=[{"type": "input_text", "text": "hm"}])
    lines.item("message", role="developer", content=[{"type": "input_text", "text": "ho"}])
    *_, critic, developer = messages = read_one(lines, tmp_path).messages
    found = [outcome_of(part.data) for part in tools(messages)]
    assert [(one.status, one.word) for one in found] == [
        ("ended", "suspended"), ("ok", ""), ("pending", "parked"), ("ended", "throttled"),
    ]  # fmt: skip
    assert critic.parts[0].data["data"] == {"name": "role", "details": {"role": "critic"}}
    assert said(critic) == "data-event|hm" and [part.type for part in developer.parts] == ["text"]


def test_names_win_over_prompts_and_the_last_one_over_the_first(tmp_path: Path) -> None:
    two_turns().write(tmp_path)
    names = [{"id": A, "thread_name": name, "updated_at": "x"} for name in ("old", "new")]
    text = "".join(json.dumps(name) + "\n" for name in names)
    (tmp_path / "session_index.jsonl").write_text(text + '{"id": "torn')
    drafts, problems = read(tmp_path)
    assert problems == [] and (drafts[A].title, drafts[A].title_from) == ("new", "name")


def test_a_name_that_comes_later_moves_only_its_own_unit(tmp_path: Path) -> None:
    from store.sources.codex import CodexSource

    two_turns().write(tmp_path)
    other = Lines(B)
    other.turn("x", "y", "r")
    other.write(tmp_path)
    source = CodexSource()
    before = {unit.key: unit.stamps for unit in source.units(tmp_path, [])}
    line = json.dumps({"id": A, "thread_name": "named", "updated_at": "x"})
    (tmp_path / "session_index.jsonl").write_text(line + "\n")
    after = {unit.key: unit.stamps for unit in source.units(tmp_path, [])}
    assert before[A] != after[A] and before[B] == after[B]


def test_a_subagent_that_copied_its_parents_context_is_one(tmp_path: Path) -> None:
    parent = Lines(A)
    parent.user("one")
    call = parent.call("spawn_agent", message="look")
    parent.output(call, json.dumps({"agent_id": B, "nickname": "Ada"}))
    parent.write(tmp_path)
    spawn = {"parent_thread_id": A, "depth": 1, "agent_nickname": "Ada", "agent_role": "explorer"}
    child = Lines(B, 3, START + 5000, history_base=base(A, 3), parent_thread_id=A,
                  source={"subagent": {"thread_spawn": spawn}})  # fmt: skip
    child.turn("look", "seen", "r1")
    child.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert problems == []
    lineage = drafts[B].lineage
    assert lineage is not None and lineage.kind == "subagent"
    assert (lineage.parent_source_id, lineage.tool_call_id) == (A, call)
    answer = next(m for m in drafts[B].messages if said(m) == "seen")
    assert answer.metadata["agent"] == "explorer"


def test_words_between_agents_are_notifications(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.item("agent_message", author="/root/ada", recipient="/root",
               content=[{"type": "input_text", "text": "found it"}])  # fmt: skip
    message = read_one(lines, tmp_path).messages[-1]
    assert message.metadata["origin"] == "notification"
    assert message.parts[0].data["data"] == {"from": "/root/ada", "to": "/root", "text": "found it"}


def test_the_first_versions_had_no_envelope(tmp_path: Path) -> None:
    lines = [
        {"id": A, "timestamp": "2025-05-07T17:24:21.000Z", "instructions": "be kind", "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ho"}]},
    ]
    path = tmp_path / f"rollout-2025-05-07T17-24-21-{A}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    drafts, problems = read(path)
    assert problems == []
    assert shape(drafts[A]) == [("user", "hi"), ("assistant", "ho")]
    assert list(drafts[A].system_prompts.values()) == ["be kind"]


def extra_key(line: dict[str, Any]) -> dict[str, Any]:
    """Return a copied line as 0.98 writes it: the parent's meta with one more key."""
    if line["type"] != "session_meta":
        return line
    return {**line, "payload": {**line["payload"], "multi_agent_version": 2}}


def with_events(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return copied lines as newer versions write them: events stand between them."""
    found = []
    for line in lines:
        settings = {"type": "thread_settings_applied", "thread_settings": {"model": "m"}}
        event = {**line, "type": "event_msg", "payload": settings}
        found += [line, event] if line["type"] == "response_item" else [line]
    return found


@pytest.mark.parametrize("parent_there", [True, False])
@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize("counted", ["by records", "by totals"])
def test_a_copied_prefix_is_told_by_what_it_says(
    tmp_path: Path, parent_there: bool, events: bool, counted: str
) -> None:
    parent = Lines(A, None)
    for place, text in enumerate(("one", "two"), start=1):
        if counted == "by records":
            parent.turn(text, f"re {text}", f"r{place}")
        else:
            parent.user(text)
            parent.says(f"re {text}")
            parent.count(100 * place, 100)
    if parent_there:
        parent.write(tmp_path)
    fork = Lines(B, None, START + 9000, forked_from_id=A)
    copies = [extra_key({**line, "timestamp": fork.lines[0]["timestamp"]}) for line in parent.lines]
    fork.lines += with_events(copies) if events else copies
    if counted == "by records":
        fork.turn("mine", "re mine", "r3")
    else:
        fork.user("mine")
        fork.says("re mine")
        fork.count(300, 100)
    fork.write(tmp_path)
    drafts, _ = read(tmp_path)
    copied = [said(m) for m in drafts[B].messages if m.inherited_from is not None]
    assert copied == ["one", "re one", "two", "re two"]
    assert [said(m) for m in drafts[B].messages[4:]] == ["mine", "re mine"]


@pytest.mark.parametrize("context", [
    ("developer", "<permissions instructions>none</permissions instructions>"),
    ("user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>"),
])  # fmt: skip
def test_context_that_is_put_in_ends_no_copies(context: tuple[str, str], tmp_path: Path) -> None:
    """Nor do keys that another version writes beside a text; no count names its thread here."""
    parent = Lines(A, None)
    parent.user("one")
    parent.says("re one")
    parent.count(100, 100)
    parent.write(tmp_path)
    fork = Lines(B, None, START + 9000, forked_from_id=A)
    role, text = context
    fork.item("message", role=role, content=[{"type": "input_text", "text": text}])
    fork.lines += json.loads(json.dumps(parent.lines))
    fork.lines[-2]["payload"]["content"][0] |= {"annotations": [], "logprobs": []}
    fork.user("mine")
    fork.says("re mine")
    fork.write(tmp_path)
    drafts, _ = read(tmp_path)
    copied = [said(m) for m in drafts[B].messages if m.inherited_from is not None]
    assert copied[-2:] == ["one", "re one"]
    assert [said(m) for m in drafts[B].messages][-2:] == ["mine", "re mine"]


def test_the_owner_of_a_count_ends_the_copies(tmp_path: Path) -> None:
    """What the parent's file says otherwise is still the parent's, as its counts say so."""
    parent = two_turns()
    (prompt, *_) = [line for line in parent.lines if line["type"] == "response_item"]
    prompt["payload"]["content"][0]["text"] = "edited since"
    parent.write(tmp_path)
    fork = Lines(B, None, START + 9000, forked_from_id=A)
    fork.lines += [{**line, "timestamp": fork.lines[0]["timestamp"]} for line in two_turns().lines]
    for line in fork.lines:
        line.pop("ordinal", None)
    fork.turn("mine", "re mine", "r3")
    fork.write(tmp_path)
    drafts, _ = read(tmp_path)
    own = [said(m) for m in drafts[B].messages if m.inherited_from is None]
    assert own == ["mine", "re mine"]
