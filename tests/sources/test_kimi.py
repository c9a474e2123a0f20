"""Kimi Code: the genuine sample comes out exactly as its EXPECTED.json says, and what it lacks."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.kimi import KimiSource
from tests.sources import grown
from tests.sources.grown import calls, prompts, tokens, visible
from tests.sources.samples import DATA

SAMPLE = DATA / "kimi" / "kimi-code" / "sessions"
EXPECTED = json.loads((DATA / "kimi" / "EXPECTED.json").read_text())["kimi-code"]
DRAFTS, PROBLEMS = grown.read_all(KimiSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["label"]) for one in EXPECTED["sessions"]]
AGENTS = [
    (DRAFTS[f"{one['id']}:{agent['id']}"], agent)
    for one in EXPECTED["sessions"] for agent in one["subagents"]
]  # fmt: skip
WIRES = [*SESSIONS, *(pytest.param(*each, id=each[1]["id"]) for each in AGENTS)]
NAME = "session_7fe4d9bf-be15-4265-b542-de4474b32f72"
T = 1_795_861_900_000


def status(part: PartDraft) -> str:
    extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    return str(extra.get("status", "no result"))


def told(messages: list[MessageDraft]) -> list[dict[str, str]]:
    return [
        {"id": str(part.tool_call_id), "name": part.type.removeprefix("tool-"),
         "status": status(part)}
        for part in calls(messages)
    ]  # fmt: skip


def hidden(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if "hidden_at" in one.metadata]


def steps(messages: list[MessageDraft]) -> list[MessageDraft]:
    return [one for one in messages if one.role == "assistant" and one.parts]


def compactions(draft: SessionDraft) -> list[dict[str, Any]]:
    return [part.data["data"] for one in draft.messages for part in one.parts
            if part.type == "data-compaction"]  # fmt: skip


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == []
    assert len(EXPECTED["sessions"]) == EXPECTED["sessions_count"]
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]} | {
        draft.source_id for draft, _ in AGENTS}  # fmt: skip
    own = [one for draft in DRAFTS.values() for one in draft.messages
           if one.inherited_from is None]  # fmt: skip
    assert tokens(own) == EXPECTED["tokens_sum"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert Path(draft.path) == SAMPLE.parent / expected["dir"] / "agents" / "main" / "wire.jsonl"
    assert draft.workspace_root == expected["workspace"]
    assert (draft.created_at, draft.updated_at) == (expected["created"], expected["updated"])
    assert (draft.archived_at is not None) == expected["archived"]
    assert draft.metadata["backscroll"]["status"] == expected["last_turn"]
    if expected["title"] is None:
        assert (draft.title, draft.title_from) == (expected["prompts"][0], "first-prompt")
    else:
        by = {"custom": "user", "replaceable": "title"}[expected["title_kind"]]
        assert (draft.title, draft.title_from) == (expected["title"], by)
    assert "activity" not in draft.metadata


@pytest.mark.parametrize(("draft", "expected"), WIRES)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(visible(draft)) == expected["prompts"]
    assert prompts(hidden(draft)) == expected["hidden_prompts"]
    assert len(steps(visible(draft))) == expected["assistant_steps"]
    assert len(steps(hidden(draft))) == expected["hidden_assistant_steps"]
    models = [one.metadata["model"]["model_id"] for one in draft.messages
              if one.role == "assistant"]  # fmt: skip
    assert list(dict.fromkeys(models)) == expected["models"]
    assert len({one.metadata["hidden_at"] for one in hidden(draft)}) == expected["undos"]
    assert len(compactions(draft)) == expected["compactions"]
    stopped = [one for one in draft.messages
               if "aborted_at" in one.metadata.get("backscroll", {})]  # fmt: skip
    assert len(stopped) == expected["interrupted_steps"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), WIRES)
def test_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert told(visible(draft)) == expected["tool_calls"]
    assert told(hidden(draft)) == expected["hidden_tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), WIRES)
def test_tokens_are_the_sessions_own(draft: SessionDraft, expected: dict[str, Any]) -> None:
    own = [one for one in draft.messages if one.inherited_from is None]
    assert tokens(own) == expected["tokens"]
    assert tokens(draft.messages) == expected["tokens_with_copies"]


@pytest.mark.parametrize(("draft", "expected"), WIRES)
def test_each_line_is_a_record(draft: SessionDraft, expected: dict[str, Any]) -> None:
    lines = Path(draft.path).read_bytes().splitlines()
    assert list(draft.records)[: len(lines)] == lines
    assert json.loads(draft.records[0])["protocol_version"] == expected["protocol"]
    ends = [row["reason"] for row in map(json.loads, lines) if row["type"] == "turn.ended"]
    assert ends == expected["turn_ends"] and expected["bad_lines"] == 0


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_forks(draft: SessionDraft, expected: dict[str, Any]) -> None:
    copied = [one for one in draft.messages if one.inherited_from is not None]
    if expected["fork_of"] is None:
        assert draft.lineage is None and copied == []
        return
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", expected["fork_of"])
    original = DRAFTS[expected["fork_of"]].messages
    assert [one.inherited_from for one in copied] == [one.source_id for one in original]
    assert [one.parts for one in copied] == [one.parts for one in original]
    assert draft.lineage.parent_message_source_id == original[-1].source_id
    own = [n for one in draft.messages if one.inherited_from is None for p in one.parts
           for n in p.records]  # fmt: skip
    assert min(own) >= expected["copied_lines"]


@pytest.mark.parametrize(("draft", "expected"), AGENTS)
def test_subagents(draft: SessionDraft, expected: dict[str, Any]) -> None:
    parent = DRAFTS[draft.source_id.partition(":")[0]]
    assert draft.lineage is not None and draft.lineage.kind == "subagent"
    assert draft.lineage.parent_source_id == parent.source_id
    assert draft.lineage.tool_call_id == expected["tool_call"]
    assert draft.metadata["backscroll"]["agent_type"] == expected["profile"]
    call = grown.call(parent, expected["tool_call"])
    assert grown.extra(call)["child_session_source_id"] == draft.source_id


def test_the_text_of_a_compaction_and_what_it_spent() -> None:
    draft = next(one for one in DRAFTS.values() if one.title == "Stock questions")
    (body,) = compactions(draft)
    assert (body["summary"], body["auto"]) == ("Third answer, after the turn back.", False)
    (spent,) = (one for one in draft.messages
                if one.metadata.get("backscroll", {}).get("no_answer"))  # fmt: skip
    assert spent.metadata["backscroll"]["initiator"] == "compaction"
    assert sum(spent.metadata["usage"].values()) == 326 + 13 + 1024


STOPPED, REFUSED = (
    "session_e936a6e8-b611-4256-8c8c-7ad0c7689e17", "session_a1ceb309-32e4-4383-a8ae-266d369de056")
OLDER, OLDER_FORK = (
    "session_6939274c-b535-45f2-9b26-e7d6b1f50672", "session_0a1a6024-9eed-4006-a6aa-a64901036473")


def test_what_a_person_stopped_undid_and_steered() -> None:
    drafts, problems = grown.read_all(KimiSource(), DATA / "kimi/2.1.0/sessions")
    draft = drafts[STOPPED]
    assert problems == [] and "activity" not in draft.metadata
    assert prompts(visible(draft)) == [
        "be slow", "please sleepfive", "be slow again", "steered text", "be slow 3", "steer it"]
    assert prompts(hidden(draft)) == ["please sleep", "three", "threefour"]
    at = {grown.words(one): one.metadata["hidden_at"] for one in hidden(draft)}
    assert at["three"] < at["please sleep"] == at["threefour"]
    stopped = [one for one in draft.messages
               if "aborted_at" in one.metadata.get("backscroll", {})]  # fmt: skip
    assert [grown.words(one).split()[0] for one in stopped] == ["word0", "running"]
    assert told(draft.messages) == [{"id": "call_2", "name": "Bash", "status": "interrupted"},
                                    {"id": "call_5", "name": "Bash", "status": "ok"}]  # fmt: skip
    assert tokens(draft.messages) == {
        "input": 700, "output": 35, "reasoning": 0, "cache_read": 0, "cache_write": 0}
    failed = drafts[REFUSED]
    assert failed.metadata["activity"]["state"] == "error"
    assert [part.data["data"] for one in failed.messages for part in one.parts
            if part.type == "data-error"] == [
        {"name": "provider.api_error", "message": "400 bad request of the mock"}]  # fmt: skip


def test_sessions_of_the_first_versions() -> None:
    drafts, problems = grown.read_all(KimiSource(), DATA / "kimi/0.10.0/sessions")
    draft, fork = drafts[OLDER], drafts[OLDER_FORK]
    assert problems == [] and draft.workspace_root == fork.workspace_root == "/home/mira/code/api"
    assert (draft.title, draft.title_from, fork.title, fork.title_from) == (
        "one", "title", "Fork: one", "title")
    assert prompts(visible(draft)) == ["one", "two", "three", "please sleep"]
    assert prompts(hidden(draft)) == ["be slow"]
    assert told(draft.messages) == [{"id": "call_17", "name": "Bash", "status": "interrupted"}]
    assert draft.metadata["activity"]["state"] == "interrupted"
    assert tokens(draft.messages)["input"] == 300
    assert fork.lineage is not None and fork.lineage.parent_source_id == OLDER
    assert [one.inherited_from for one in fork.messages] == [
        one.source_id for one in draft.messages]
    assert "activity" not in fork.metadata


# --- hand-made files ------------------------------------------------------------------------


class Wire:
    """The lines of one agent's file, made one after the other."""

    def __init__(self, protocol: str = "1.5") -> None:
        self.rows: list[dict[str, Any]] = [
            {"type": "metadata", "protocol_version": protocol, "created_at": T}]

    def add(self, kind: str, /, **more: Any) -> int:
        """Add a record; return its line."""
        self.rows.append({"type": kind, **more, "time": T + len(self.rows) * 1000})
        return len(self.rows)

    def event(self, kind: str, /, **more: Any) -> int:
        return self.add("context.append_loop_event", event={"type": kind, **more})

    def said(self, text: str, origin: str = "user", **more: Any) -> int:
        content = [{"type": "text", "text": text}]
        return self.add("context.append_message", message={
            "role": "user", "content": content, "id": f"msg_{len(self.rows)}",
            "origin": {"kind": origin, **more}})  # fmt: skip

    def prompt(self, text: str) -> int:
        """Add what a typed prompt leaves; return the line before the message."""
        line = self.add("turn.prompt", input=[{"type": "text", "text": text}])
        self.said(text)
        return line

    def step(self, text: str, *, ended: bool = True) -> str:
        name = f"step-{len(self.rows)}"
        self.event("step.begin", uuid=name)
        self.add("usage.record", usage={"inputOther": 10, "output": 5}, usageScope="turn",
                 model="kimi/k2")  # fmt: skip
        self.event("content.part", stepUuid=name, part={"type": "text", "text": text})
        if ended:
            self.event("step.end", uuid=name, finishReason="end_turn",
                       usage={"inputOther": 10, "output": 5})  # fmt: skip
        return name

    def turn(self, text: str, answer: str) -> int:
        line = self.prompt(text)
        self.step(answer)
        self.add("turn.ended", reason="completed")
        return line

    def undo(self, branch: str, base: str, line: int, count: int = 1) -> None:
        at = self.add("agent.switched", branch=branch, reason="undo", turns=count,
                      base={"branch": base, "line": line})  # fmt: skip
        assert self.add("context.undo", count=count) == at + 1
        self.add("context.undone", turns=count)

    def write(self, root: Path, agent: str = "main", **state: Any) -> Path:
        folder = root / "wd_api_0123456789ab" / NAME
        grown.write_lines(folder / "agents" / agent / "wire.jsonl", self.rows)
        if agent == "main":
            (folder / "state.json").write_text(json.dumps(
                {"id": NAME, "version": 2, "cwd": "/home/mira/code/api", "createdAt": T,
                 "updatedAt": T, **state}))  # fmt: skip
        return folder

    def draft(self, root: Path, **state: Any) -> SessionDraft:
        self.write(root, **state)
        return grown.only(KimiSource(), root)


def test_an_undo_of_an_undo_follows_the_chain_of_branches(tmp_path: Path) -> None:
    wire = Wire()
    wire.turn("one", "first")
    second = wire.turn("two", "second")
    wire.undo("b1", "main", second)
    wire.turn("three", "third")
    fourth = wire.turn("four", "fourth")
    wire.undo("b2", "b1", fourth)
    wire.turn("five", "fifth")
    draft = wire.draft(tmp_path)
    assert prompts(visible(draft)) == ["one", "three", "five"]
    assert prompts(hidden(draft)) == ["two", "four"]
    times = {grown.words(one): one.metadata["hidden_at"] for one in hidden(draft)}
    assert times["two"] == times["second"] != times["four"] == times["fourth"]
    assert tokens(draft.messages)["input"] == 50


def test_going_back_before_an_earlier_undo_hides_what_came_after_it(tmp_path: Path) -> None:
    wire = Wire()
    first = wire.turn("one", "first")
    second = wire.turn("two", "second")
    wire.undo("b1", "main", second)
    wire.turn("three", "third")
    wire.undo("b2", "main", first, 2)
    wire.turn("four", "fourth")
    assert prompts(visible(wire.draft(tmp_path))) == ["four"]


def test_before_branches_an_undo_drops_the_last_prompts(tmp_path: Path) -> None:
    wire = Wire("1.3")
    wire.turn("one", "first")
    wire.turn("two", "second")
    wire.turn("three", "third")
    wire.add("context.undo", count=2)
    wire.turn("four", "fourth")
    wire.add("context.undo", count=1)
    wire.turn("five", "fifth")
    draft = wire.draft(tmp_path)
    assert prompts(visible(draft)) == ["one", "five"]
    assert [grown.words(one) for one in hidden(draft)] == [
        "two", "second", "three", "third", "four", "fourth"]  # fmt: skip


def test_an_undo_before_branches_stops_at_a_summary(tmp_path: Path) -> None:
    wire = Wire("1.3")
    wire.turn("one", "first")
    wire.add("context.apply_compaction", summary="so far", compactedCount=2)
    wire.said("so far", "compaction_summary")
    wire.turn("two", "second")
    wire.add("context.undo", count=2)
    draft = wire.draft(tmp_path)
    assert prompts(visible(draft)) == ["one"]
    assert [body["summary"] for body in compactions(draft)] == ["so far"]


def test_an_undone_session_rests(tmp_path: Path) -> None:
    wire = Wire()
    line = wire.prompt("one")
    wire.add("turn.ended", reason="cancelled")
    wire.undo("b1", "main", line)
    draft = wire.draft(tmp_path)
    assert prompts(visible(draft)) == [] and "activity" not in draft.metadata


@pytest.mark.parametrize(("kind", "more", "origin"), [
    ("user", {}, "human"),
    ("injection", {"variant": "interruption"}, "meta"),
    ("hook_result", {}, "meta"),
    ("shell_command", {}, "shell"),
    ("skill_activation", {"trigger": "user-slash"}, "command"),
    ("skill_activation", {"trigger": "model"}, "meta"),
    ("cron_job", {}, "notification"),
    ("system_trigger", {"name": "subagent"}, "human"),
    ("system_trigger", {"name": "cron"}, "notification"),
])  # fmt: skip
def test_what_was_typed(tmp_path: Path, kind: str, more: dict[str, str], origin: str) -> None:
    wire = Wire()
    wire.said("words", kind, **more)
    (message,) = wire.draft(tmp_path).messages
    assert (message.metadata["origin"], grown.words(message)) == (origin, "words")


def call(wire: Wire, result: dict[str, Any] | None, decision: str | None = None) -> None:
    wire.prompt("go")
    wire.event("step.begin", uuid="s")
    if decision is not None:
        wire.add("permission.record_approval_result", toolCallId="c",
                 result={"decision": decision})  # fmt: skip
    wire.event("tool.call", uuid="u", stepUuid="s", toolCallId="c", name="Bash",
               args={"command": "ls"})  # fmt: skip
    if result is not None:
        wire.event("tool.result", parentUuid="u", toolCallId="c", result=result)


@pytest.mark.parametrize(("result", "decision", "state", "expected"), [
    (None, None, "input-available", "no result"),
    ({"output": "a\n"}, "approved", "output-available", "ok"),
    ({"output": "a\n", "isError": False}, None, "output-available", "ok"),
    ({"output": "no", "isError": True}, "rejected", "output-denied", "denied"),
    ({"output": "no", "isError": True}, "cancelled", "output-denied", "denied"),
    ({"output": "x\nInterrupted by user", "isError": True}, None, "output-error", "interrupted"),
    ({"output": "x\nCommand failed with exit code: 3.", "isError": True}, "approved",
     "output-error", "error"),
])  # fmt: skip
def test_how_calls_end(
    tmp_path: Path, result: dict[str, Any] | None, decision: str | None, state: str, expected: str
) -> None:
    wire = Wire()
    call(wire, result, decision)
    (part,) = calls(wire.draft(tmp_path).messages)
    assert (part.tool_state, status(part)) == (state, expected)
    if expected == "error":
        assert grown.extra(part)["exit_code"] == 3


def test_a_result_with_a_picture(tmp_path: Path) -> None:
    wire = Wire()
    url = "data:image/png;base64,AAAA"
    call(wire, {"output": [{"type": "text", "text": "shot"},
                           {"type": "image_url", "imageUrl": {"url": url}}]})  # fmt: skip
    (part,) = calls(wire.draft(tmp_path).messages)
    assert part.data["output"] == [
        {"type": "text", "text": "shot"}, {"type": "file", "mediaType": "image/png", "url": url}]


def test_how_turns_end(tmp_path: Path) -> None:
    def activity(name: str, wire: Wire) -> Any:
        return wire.draft(tmp_path / name).metadata.get("activity", {}).get("state")

    wire = Wire()
    wire.prompt("go")
    assert activity("prompt", wire) == "running"
    wire.add("interaction.request", id="a", kind="approval", toolCallId="c")
    assert activity("asked", wire) == "waiting-approval"
    wire.add("interaction.resolved", id="a", response={"decision": "approved"})
    assert activity("answered", wire) == "running"
    wire.step("partial", ended=False)
    wire.add("turn.step.interrupted", reason="aborted")
    wire.add("turn.ended", reason="cancelled")
    assert activity("cancelled", wire) == "interrupted"
    (stopped,) = (one for one in wire.draft(tmp_path / "cancelled").messages
                  if one.role == "assistant")  # fmt: skip
    assert grown.words(stopped) == "partial" and stopped.metadata["backscroll"]["aborted_at"]
    wire.turn("again", "done")
    assert activity("done", wire) is None


def test_how_turns_end_in_the_first_versions(tmp_path: Path) -> None:
    """Version 0.10.0 counts after a step, and says of no turn that it ended."""
    def activity(name: str) -> Any:
        return wire.draft(tmp_path / name).metadata.get("activity", {}).get("state")

    wire = Wire("1.3")
    wire.prompt("go")
    wire.event("step.begin", uuid="a")
    wire.event("tool.call", uuid="c", stepUuid="a", toolCallId="c", name="Bash", args={})
    wire.event("tool.result", parentUuid="c", toolCallId="c", result={"output": "a"})
    wire.event("step.end", uuid="a", finishReason="tool_use")
    usage = {"inputOther": 100, "output": 5}
    wire.add("usage.record", usage=usage, usageScope="turn", model="kimi/k2")
    assert activity("called") == "running"
    wire.event("step.begin", uuid="b")
    wire.event("content.part", stepUuid="b", part={"type": "text", "text": "done"})
    wire.event("step.end", uuid="b", finishReason="end_turn")
    wire.add("usage.record", usage=usage, usageScope="turn", model="kimi/k2")
    draft = wire.draft(tmp_path / "done")
    assert "activity" not in draft.metadata
    assert [one.metadata.get("usage", {}).get("input") for one in draft.messages] == [
        None, 100, 100]  # fmt: skip
    wire.prompt("again")
    wire.event("step.begin", uuid="d")
    wire.add("turn.cancel")
    assert activity("cancelled") == "interrupted"
    wire.add("context.undo", count=1)
    assert activity("undone") is None


def test_a_fork_of_the_first_versions_has_what_is_older_than_it(tmp_path: Path) -> None:
    wire = Wire("1.3")
    wire.turn("one", "first")
    made = T + len(wire.rows) * 1000 - 500
    wire.turn("two", "second")
    draft = wire.draft(tmp_path, forkedFrom="session_parent", title="Fork: one",
                       isCustomTitle=True, createdAt=made)  # fmt: skip
    own = [one for one in draft.messages if one.inherited_from is None]
    assert prompts(own) == ["two"] and tokens(own)["input"] == 10
    assert draft.title_from == "title" and draft.lineage is not None
    assert draft.lineage.parent_message_source_id == draft.messages[1].source_id


@pytest.mark.parametrize("in_step", [True, False])
def test_the_error_of_a_request_is_shown_once(tmp_path: Path, in_step: bool) -> None:
    wire = Wire()
    wire.prompt("go")
    if in_step:
        # As version 2.1.0 writes it.
        wire.event("step.begin", uuid="s")
        wire.event("step.end", uuid="s", finishReason="error")
        wire.add("turn.step.interrupted", reason="error", message="[provider.auth] 401 no key")
    wire.add("turn.ended", reason="failed", error={"code": "provider.auth",
                                                   "message": "401 no key"})  # fmt: skip
    draft = wire.draft(tmp_path)
    errors = [part.data["data"] for one in draft.messages for part in one.parts
              if part.type == "data-error"]  # fmt: skip
    assert errors == [{"name": "provider.auth", "message": "401 no key"}]
    assert draft.metadata["activity"]["state"] == "error"


def test_a_step_that_only_began_is_no_message(tmp_path: Path) -> None:
    wire = Wire()
    wire.prompt("go")
    wire.event("step.begin", uuid="s")
    assert [one.role for one in wire.draft(tmp_path).messages] == ["user"]


def test_the_second_telling_counts_for_nothing(tmp_path: Path) -> None:
    wire = Wire()
    wire.turn("one", "first")
    message = {"role": "assistant", "content": [{"type": "text", "text": "first"}]}
    usage = {"inputOther": 10, "output": 5}
    wire.add("agent.message.appended", kind="event",
             message={"message": message, "meta": {"usage": usage}})  # fmt: skip
    wire.add("subagent.completed", subagentId="agent-0", usage=usage)
    draft = wire.draft(tmp_path)
    assert [grown.words(one) for one in draft.messages] == ["one", "first"]
    assert tokens(draft.messages)["input"] == 10


def test_a_fork_of_a_fork_counts_after_the_last_fork(tmp_path: Path) -> None:
    wire = Wire()
    wire.turn("one", "first")
    wire.add("forked")
    wire.turn("two", "second")
    wire.add("forked")
    wire.turn("three", "third")
    draft = wire.draft(tmp_path, forkedFrom="session_parent", title="Fork: Fork: one")
    own = [one for one in draft.messages if one.inherited_from is None]
    assert prompts(own) == ["three"] and tokens(own)["input"] == 10
    assert draft.lineage is not None
    assert draft.lineage.parent_source_id == "session_parent"


def test_a_fork_has_copies_of_the_subagents_too(tmp_path: Path) -> None:
    """As version 2.1.0 makes them: each file is copied, and ends with a record of it."""
    main, agent = Wire(), Wire()
    main.turn("one", "first")
    main.add("subagent.spawned", subagentId="agent-0", parentToolCallId="c")
    main.add("forked")
    agent.turn("task", "done")
    agent.add("forked")
    agent.write(tmp_path, "agent-0")
    main.write(tmp_path, forkedFrom="session_parent")
    drafts, _ = grown.read_all(KimiSource(), tmp_path)
    assert all(one.inherited_from == one.source_id
               for draft in drafts.values() for one in draft.messages)  # fmt: skip
    child = drafts[f"{NAME}:agent-0"]
    assert child.lineage is not None and child.lineage.parent_source_id == NAME


def test_calls_of_the_first_protocol_are_in_messages(tmp_path: Path) -> None:
    wire = Wire("1.0")
    wire.said("go")
    function = {"name": "Bash", "arguments": '{"command": "ls"}'}
    wire.add("context.append_message", message={
        "role": "assistant", "content": [{"type": "text", "text": "look"}],
        "toolCalls": [{"type": "function", "id": "c", "function": function}]})  # fmt: skip
    wire.add("context.append_message", message={
        "role": "tool", "content": [{"type": "text", "text": "a.txt"}], "toolCallId": "c"})
    draft = wire.draft(tmp_path)
    (part,) = calls(draft.messages)
    assert (part.data["input"], part.data["output"]) == ({"command": "ls"}, "a.txt")


def test_state_of_the_first_version(tmp_path: Path) -> None:
    wire = Wire("1.3")
    wire.turn("one", "first")
    root = tmp_path / "sessions"
    folder = wire.write(root)
    (folder / "state.json").write_text(json.dumps(
        {"createdAt": "2026-11-28T10:00:00.000Z", "updatedAt": "2026-11-28T12:00:00.000Z",
         "lastPrompt": "what came last", "agents": {}}))  # fmt: skip
    grown.write_lines(tmp_path / "session_index.jsonl", [
        {"sessionId": NAME, "sessionDir": "/elsewhere", "workDir": "/home/mira/code/old"}])
    (tmp_path / "workspaces.json").write_text(json.dumps({"version": 1, "workspaces": {
        "wd_api_0123456789ab": {"root": "/home/mira/code/api", "name": "api"}}}, indent=2))
    draft = grown.only(KimiSource(), root)
    assert (draft.source_id, draft.workspace_root) == (NAME, "/home/mira/code/old")
    assert (draft.title, draft.title_from) == ("what came last", "last-prompt")
    assert draft.updated_at - draft.created_at == 2 * 3600 * 1000
    # A session that version 2.1.0 took over is not listed anew.
    (tmp_path / "session_index.jsonl").unlink()
    assert grown.only(KimiSource(), root).workspace_root == "/home/mira/code/api"


@pytest.mark.parametrize("body", [None, b"", b'{"id": "session_'])
def test_without_a_state_the_conversation_is_there(tmp_path: Path, body: bytes | None) -> None:
    wire = Wire()
    wire.turn("one", "first")
    folder = wire.write(tmp_path)
    (folder / "state.json").unlink()
    (folder / "state.json.tmp.1.abc").write_text('{"title": "half')
    if body is not None:
        (folder / "state.json").write_bytes(body)
    drafts, problems = grown.read_all(KimiSource(), tmp_path)
    (draft,) = drafts.values()
    assert (draft.title, draft.title_from, draft.tells_title) == ("one", "first-prompt", False)
    assert len(problems) == (body is not None)


def test_archived(tmp_path: Path) -> None:
    wire = Wire()
    wire.turn("one", "first")
    draft = wire.draft(tmp_path, archived=True, archivedAt=T + 99_000)
    assert draft.archived_at == T + 99_000


def test_a_subagents_subagent(tmp_path: Path) -> None:
    main, first, second = Wire(), Wire(), Wire()
    for wire, name, child in ((main, "main", "agent-0"), (first, "agent-0", "agent-1")):
        wire.prompt("go")
        wire.event("step.begin", uuid=f"step of {name}")
        wire.event("tool.call", stepUuid=f"step of {name}", toolCallId=f"call of {name}",
                   name="Agent", args={})  # fmt: skip
        wire.add("subagent.spawned", subagentId=child, subagentName="coder",
                 parentToolCallId=f"call of {name}", description=f"task of {child}")  # fmt: skip
    second.turn("task", "done")
    first.write(tmp_path, "agent-0")
    second.write(tmp_path, "agent-1")
    main.write(tmp_path)
    drafts, _ = grown.read_all(KimiSource(), tmp_path)
    inner = drafts[f"{NAME}:agent-1"]
    assert inner.lineage is not None and inner.title == "task of agent-1"
    assert inner.lineage.parent_source_id == f"{NAME}:agent-0"
    assert inner.lineage.tool_call_id == "call of agent-0"


def test_a_file_that_grows_reads_as_one_read_whole(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    for draft in DRAFTS.values():
        shutil.rmtree(root, ignore_errors=True)
        session = Path(draft.path).parent.parent.parent
        copy = root / session.parent.name / session.name
        shutil.copytree(session, copy)
        wire = copy / Path(draft.path).relative_to(session)
        grown.grows_like_a_whole(KimiSource, root, wire)


def test_where_it_looks(tmp_path: Path) -> None:
    make = KimiSource()
    assert make.default_roots({}, tmp_path) == [tmp_path / ".kimi-code" / "sessions"]
    moved = make.default_roots({"KIMI_CODE_HOME": str(tmp_path / "else")}, tmp_path)
    assert moved == [tmp_path / "else" / "sessions"]
    wire = next(SAMPLE.rglob("main/wire.jsonl"))
    session = wire.parent.parent.parent
    for path, root in ((SAMPLE.parent, SAMPLE), (SAMPLE, SAMPLE), (session.parent, session.parent),
                       (session, session), (wire, session)):  # fmt: skip
        assert make.recognise(path) == root
    assert make.recognise(session / "state.json") is None
    assert make.recognise(tmp_path) is None


def test_keys_and_logs_beside_sessions_are_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".kimi-code"
    shutil.copytree(SAMPLE.parent, home)
    session = next(home.rglob("state.json")).parent
    for name in ("config.toml", "credentials/key", "mcp.json", "device_id", "workspace-trust",
                 "user-history/a.jsonl"):  # fmt: skip
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("secret")
    for name in ("logs/a.jsonl", "agents/main/tasks/b.json", "notify/c.json"):
        (session / name).parent.mkdir(exist_ok=True)
        (session / name).write_text("secret")
    opened: set[str] = set()
    real = os.open

    def noted(path: Any, *given: Any, **more: Any) -> int:
        opened.add(os.path.basename(os.fspath(path)))
        return real(path, *given, **more)

    monkeypatch.setattr(os, "open", noted)
    root = KimiSource().recognise(home)
    assert root is not None
    drafts, problems = grown.read_all(KimiSource(), root)
    assert (drafts.keys(), problems) == (DRAFTS.keys(), [])
    assert opened <= {"wire.jsonl", "state.json", "session_index.jsonl", "workspaces.json"}


def test_the_sample_is_not_touched(tmp_path: Path) -> None:
    copy = tmp_path / "sessions"
    shutil.copytree(SAMPLE, copy)
    before = grown.snapshot(copy)
    grown.synced(KimiSource(), copy, tmp_path / "store.db").close()
    assert grown.snapshot(copy) == before


def test_a_line_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    wire = Wire()
    call(wire, {"output": "fine"})
    wire.turn("go on", "yes")
    once = wire.draft(tmp_path)
    for place in range(1, len(wire.rows)):
        rows = wire.rows.copy()
        rows.insert(place, rows[place])
        twice = Wire()
        twice.rows = rows
        draft = twice.draft(tmp_path)
        assert told(draft.messages) == told(once.messages)
        assert [grown.words(one) for one in draft.messages] == ["go", "", "go on", "yes"]
        assert tokens(draft.messages) == tokens(once.messages)
        grown.check_records(draft)
