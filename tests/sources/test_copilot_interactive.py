"""Copilot CLI 1.0.102 used by hand: forks, subagents, compactions, shell lines, approvals.

The sample is genuine, its prompts cut: a session with a subagent, a rewind (which takes
the events away) and a compaction, and a fork of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.copilot import CopilotSource
from tests.sources.grown import (
    call,
    calls,
    check_records,
    extra,
    ms,
    read_all,
    synced,
    tokens,
    words,
)
from tests.sources.test_copilot import SID, Events, read
from tests.store.counted import counted

ROOT = Path(__file__).parent.parent / "data" / "copilot_forked"
MAIN = "07f25469-a5b0-4f91-ac66-6c561804c43d"
FORK = "177ffd31-60cb-4cbf-888d-c9f63fd2424f"
CALL = "call_136_0"


@pytest.fixture
def events(tmp_path: Path) -> Events:
    return Events(tmp_path)


@pytest.fixture(scope="module")
def sample() -> dict[str, SessionDraft]:
    drafts, problems = read_all(CopilotSource(), ROOT)
    assert problems == []
    for draft in drafts.values():
        check_records(draft)
    return drafts


def told(draft: SessionDraft) -> list[tuple[str, str]]:
    return [(m.role, words(m) or "+".join(p.type for p in m.parts)) for m in draft.messages]


def test_the_session(sample: dict[str, SessionDraft]) -> None:
    assert set(sample) == {MAIN, FORK, f"{MAIN}:{CALL}", f"{FORK}:{CALL}"}
    main = sample[MAIN]
    assert (main.title, main.title_from) == ("My own name", "session-name")
    assert told(main) == [
        ("user", "first [[hi]]"),
        ("assistant", "Hello **there** 🙂 — ok"),
        ("user", "ask sub [[sub]]"),
        ("assistant", "I ask an agent"),
        ("assistant", "agent said so"),
        ("system", "data-event"),
        ("user", "third [[mk]] again"),
        ("assistant", "I write it"),
        ("assistant", "A summary of it all."),
        ("user", "slow [[slow]]"),
        ("assistant", "".join(f"word{n} " for n in range(20))),
        ("system", "data-compaction"),
        ("assistant", ""),
        ("user", "after compact [[hi]]"),
        ("assistant", "Hello **there** 🙂 — ok"),
        ("system", "data-event"),
    ]


def test_what_a_compaction_used_is_counted(sample: dict[str, SessionDraft]) -> None:
    main = sample[MAIN]
    marker, spent = main.messages[11:13]
    assert marker.parts[0].data["data"]["auto"] is False
    assert spent.metadata["backscroll"] == {
        "duration_ms": 31, "initiator": "compaction", "no_answer": True}  # fmt: skip
    assert list(spent.metadata["usage"].values()) == [900, 168, 0, 248, 0]
    assert tokens(main.messages)["input"] == 8 * 900


def test_the_fork_and_its_subagent_are_copies(sample: dict[str, SessionDraft]) -> None:
    fork = sample[FORK]
    assert fork.lineage is not None
    assert (fork.lineage.kind, fork.lineage.parent_source_id) == ("fork", MAIN)
    own = [message for message in fork.messages if message.inherited_from is None]
    assert [m.role for m in own] == ["system", "user", "assistant", "assistant"]
    agent = sample[f"{FORK}:{CALL}"]
    assert agent.lineage is not None
    assert (agent.lineage.kind, agent.lineage.parent_source_id) == ("fork", f"{MAIN}:{CALL}")
    assert all(message.inherited_from == message.source_id for message in agent.messages)
    assert [m.metadata["origin"] for m in agent.messages if m.role == "user"] == ["human"]
    original = sample[f"{MAIN}:{CALL}"].lineage
    assert original is not None
    assert (original.kind, original.parent_source_id) == ("subagent", MAIN)


def test_nothing_is_counted_twice(tmp_path: Path) -> None:
    database = synced(CopilotSource(), ROOT, tmp_path / "store.db")
    all_of_it = counted(database)
    # Seven answers and a summary, two answers of the subagent, two of the fork's own.
    assert (all_of_it.answers, all_of_it.tokens[0]) == (12, 12 * 900)
    database.connection.close()


def test_shell_lines_of_a_person(tmp_path: Path, events: Events) -> None:
    given = {"command": "echo typed; exit 5"}
    events("tool.user_requested", toolCallId="c1", toolName="local_shell", arguments=given)
    events("tool.execution_complete", toolCallId="c1", isUserRequested=True, success=False,
           shellExecution={"exitCode": 5}, error={"message": "typed"})  # fmt: skip
    events("tool.user_requested", toolCallId="c2", toolName="local_shell", arguments=given)
    events("tool.execution_complete", toolCallId="c2", isUserRequested=True, success=True,
           result={"content": "fine"})  # fmt: skip
    draft = read(tmp_path)
    assert [(m.metadata["origin"], words(m)) for m in draft.messages] == [
        ("shell", "echo typed; exit 5"), ("shell", "typed"),
        ("shell", "echo typed; exit 5"), ("shell", "fine")]  # fmt: skip
    assert draft.messages[1].metadata["backscroll"] == {"output": True, "exit_code": 5}
    assert calls(draft.messages) == []
    check_records(draft)


def test_a_picture_is_what_was_attached(tmp_path: Path, events: Events) -> None:
    events("session.binary_asset", assetId="sha256:1", mimeType="image/png", data="iVBO")
    attached = {"type": "file", "path": "/w/p.png", "displayName": "p.png", "assetId": "sha256:1"}
    events("user.message", content="see", attachments=[attached])
    (message,) = read(tmp_path).messages
    assert message.parts[1].data == {
        "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBO",
        "filename": "p.png"}  # fmt: skip


def test_a_call_that_waits_for_its_user(tmp_path: Path, events: Events) -> None:
    events("user.message", content="go")
    events.answer("a1", "", ("c1", "bash"))
    events("tool.execution_start", toolCallId="c1", toolName="bash", arguments={})
    events("permission.requested", requestId="r1",
           permissionRequest={"kind": "shell", "toolCallId": "c1"})  # fmt: skip
    part = call(read(tmp_path), "c1")
    assert (part.tool_state, part.data["approval"]) == ("approval-requested", {"id": "r1"})
    events("permission.completed", requestId="r1", toolCallId="c1", result={"kind": "approved"})
    part = call(read(tmp_path), "c1")
    assert part.tool_state == part.data["state"] == "input-available"
    assert "approval" not in part.data


def test_what_was_broken_off(tmp_path: Path, events: Events) -> None:
    events("user.message", content="go")
    events.answer("a1", "", ("c1", "bash"), ("c2", "bash"))
    begun = len(events.rows)
    events("tool.execution_start", toolCallId="c1", toolName="bash", arguments={})
    events("abort", reason="user_initiated")
    draft = read(tmp_path)
    part = call(draft, "c1")
    assert (part.tool_state, extra(part)) == (
        "output-error", {"status": "interrupted", "duration_ms": 1000})  # fmt: skip
    assert draft.messages[1].metadata["backscroll"]["aborted_at"] == ms(begun + 1)
    # A result that comes after all is the call's result.
    events("tool.execution_complete", toolCallId="c1", success=True, result={"content": "late"})
    events("tool.execution_complete", toolCallId="c2", success=False,
           error={"message": "no result was recorded", "code": "interrupted"})  # fmt: skip
    draft = read(tmp_path)
    assert call(draft, "c1").data["output"] == "late"
    assert "errorText" not in call(draft, "c1").data
    assert extra(call(draft, "c2"))["status"] == "interrupted"


def test_events_of_the_model_are_records_only(tmp_path: Path, events: Events) -> None:
    events("user.message", content="go")
    for kind in ("turn_started", "message", "messages_snapshot"):
        events(f"model.{kind}", kind=kind, message={"content": "x"})
    draft = read(tmp_path)
    assert told(draft) == [("user", "go")]
    check_records(draft)


def test_a_compaction_that_failed_says_why(tmp_path: Path, events: Events) -> None:
    events("session.compaction_complete", success=False, error="too large")
    (message,) = read(tmp_path).messages
    assert message.parts[0].data == {"type": "data-error", "data": {"message": "too large"}}


def test_a_session_of_the_first_versions(tmp_path: Path, events: Events) -> None:
    arguments = '{"command":"ls"}'
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": [{"type": "text", "text": "old question"}]},
        {"role": "assistant", "content": "I look", "tool_calls": [
            {"id": "c1", "type": "function",
             "function": {"name": "bash", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        {"role": "assistant", "content": "old answer"},
    ]  # fmt: skip
    events("session.import_legacy", sourceFile="/h.json", importTime="2026-11-27T10:00:01Z",
           legacySession={"sessionId": SID, "startTime": "2025-10-01T10:00:00.000Z",
                          "chatMessages": chat, "timeline": []})  # fmt: skip
    events("user.message", content="new question")
    draft = read(tmp_path)
    assert told(draft) == [
        ("user", "old question"), ("assistant", "I look"), ("assistant", "old answer"),
        ("user", "new question")]  # fmt: skip
    part = call(draft, "c1")
    assert (part.data["input"], part.data["output"]) == ({"command": "ls"}, "a.txt")
    assert list(draft.system_prompts.values()) == ["rules"]
    check_records(draft)
