"""Copilot CLI: the genuine sample, and what it lacks made by hand after the format page."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.base.values import epoch_ms
from store.sources.copilot import CopilotSource
from store.sources.copilot.source import parse_workspace
from tests.sources.grown import (
    at,
    call,
    calls,
    check_records,
    extra,
    grows_like_a_whole,
    ms,
    only,
    prompts,
    read_all,
    snapshot,
    synced,
    tokens,
    visible,
    words,
    write_lines,
)

DATA = Path(__file__).parent.parent / "data" / "copilot"
TOOLS = "82ca1005-c439-454d-87a4-a18e1e6c1d25"
FAILED = "9d401adf-430e-4d36-90b0-fe5bce143ebc"
SID = "aaaaaaaa-0000-4000-8000-000000000001"


class Events:
    """Writes a session event by event, each second one."""

    def __init__(self, folder: Path, session: str = SID) -> None:
        self.path = folder / "session-state" / session / "events.jsonl"
        self.rows: list[dict[str, Any]] = []
        self("session.start", sessionId=session, copilotVersion="1.0", startTime=at(0),
             selectedModel="m0", context={"cwd": "/w", "branch": "main"})  # fmt: skip

    def __call__(self, kind: str, /, agent: str | None = None, **data: Any) -> str:
        name = f"e{len(self.rows)}"
        row: dict[str, Any] = {"type": kind, "data": data, "id": name,
                               "timestamp": at(len(self.rows)),
                               "parentId": f"e{len(self.rows) - 1}"}  # fmt: skip
        self.rows.append(row | ({"agentId": agent} if agent else {}))
        write_lines(self.path, self.rows)
        return name

    def used(self, api: str, source: str = SID, **more: Any) -> None:
        usage = {"model": "m", "inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 3,
                 "cacheWriteTokens": 2, "reasoningTokens": 1, "apiCallId": api,
                 "accounting": {"sourceSessionId": source}}  # fmt: skip
        self("session.usage_record", usage=usage | more)

    def answer(self, api: str, text: str = "", *requests: tuple[str, str], **more: Any) -> str:
        asked = [{"toolCallId": i, "name": n, "arguments": {"a": 1}} for i, n in requests]
        return self("assistant.message", messageId=f"m-{api}", apiCallId=api, model="m",
                    content=text, toolRequests=asked, **more)  # fmt: skip


@pytest.fixture
def events(tmp_path: Path) -> Events:
    return Events(tmp_path)


def read(tmp_path: Path) -> SessionDraft:
    return only(CopilotSource(), tmp_path)


def test_default_roots(tmp_path: Path) -> None:
    source = CopilotSource()
    assert source.default_roots({}, tmp_path) == [tmp_path / ".copilot"]
    found = source.default_roots({"COPILOT_HOME": "/c"}, tmp_path)
    assert found == [Path("/c"), tmp_path / ".copilot"]


def test_recognised_by_content(tmp_path: Path, events: Events) -> None:
    source = CopilotSource()
    states = tmp_path / "session-state"
    for place in (tmp_path, states, states / SID, events.path):
        assert source.recognise(place) == place
        assert only(source, place).source_id == SID
    assert source.recognise(DATA / "session-store.db") == DATA / "session-store.db"
    other = write_lines(tmp_path / "x" / "events.jsonl", [{"type": "user", "id": "x"}])
    assert source.recognise(other) is None and source.recognise(other.parent) is None
    (tmp_path / "y.db").write_bytes(b"no database")
    assert source.recognise(tmp_path / "y.db") is None
    assert source.recognise(tmp_path / "missing") is None


def test_the_sample() -> None:
    drafts, problems = read_all(CopilotSource(), DATA)
    assert problems == []
    assert set(drafts) == {TOOLS, FAILED}
    draft = drafts[TOOLS]
    assert (draft.title, draft.title_from) == ("My copilot session", "session-name")
    assert drafts[FAILED].title == "MOCK:err400 go"
    assert draft.workspace_root == "/home/user/project"
    assert (draft.metadata["git_branch"], draft.metadata["version"]) == ("main", "1.0.102")
    assert draft.model == {"provider_id": "openai", "model_id": "mock-1"}
    assert draft.created_at == epoch_ms("2026-11-27T22:27:39.771Z")
    assert draft.updated_at == epoch_ms("2026-11-27T22:27:41.557Z")
    assert prompts(draft.messages) == ["MOCK:cptools edit", "MOCK:hello2 go on"]
    assert [m.role for m in draft.messages] == ["user", *["assistant"] * 4, "user", "assistant"]
    assert list(draft.system_prompts.values()) == ["[scrubbed prompt]"]
    assert draft.messages[1].metadata["system_prompt_digest"] in draft.system_prompts
    for each in drafts.values():
        check_records(each)


def test_usage_of_the_sample_is_that_of_its_shutdown() -> None:
    drafts, _ = read_all(CopilotSource(), DATA)
    sums = tokens(drafts[TOOLS].messages)
    assert sums == {"input": 7900 - 6144, "output": 152 - 12, "reasoning": 12,
                    "cache_read": 6144, "cache_write": 0}  # fmt: skip
    first = drafts[TOOLS].messages[1]
    assert first.metadata["backscroll"] == {
        "finish_reason": "tool_calls", "request_id": "chatcmpl-mock1", "initiator": "user",
        "duration_ms": 17,
    }  # fmt: skip


def test_calls_of_the_sample() -> None:
    drafts, _ = read_all(CopilotSource(), DATA)
    told = [
        (p.tool_call_id, p.type, p.tool_state, extra(p)["status"], extra(p).get("exit_code"))
        for p in calls(drafts[TOOLS].messages)
    ]
    assert told == [
        ("call_cptools_0_0", "tool-bash", "output-available", "ok", 0),
        ("call_cptools_1_0", "tool-view", "output-available", "ok", None),
        ("call_cptools_1_1", "tool-bash", "output-available", "error", 3),
        ("call_cptools_2_0", "tool-edit", "output-available", "ok", None),
    ]
    bash = call(drafts[TOOLS], "call_cptools_0_0")
    assert bash.data["output"] == "a.txt\nb.txt\n<shellId: 0 completed with exit code 0>"
    assert extra(bash)["duration_ms"] == 70
    edit = extra(call(drafts[TOOLS], "call_cptools_2_0"))["structured"]
    assert edit["structuredPatch"][0]["lines"][:2] == ["-alpha", "+ALPHA"]
    view = extra(call(drafts[TOOLS], "call_cptools_1_0"))["structured"]
    assert "structuredPatch" not in view
    assert drafts[TOOLS].messages[1].parts[0].data["text"] == "Look first."


def test_a_failed_request_is_an_error() -> None:
    drafts, _ = read_all(CopilotSource(), DATA)
    error = drafts[FAILED].messages[-1]
    assert error.parts[0].data["data"] == {
        "message": "400 mock: invalid request", "status": 400, "error_type": "query",
    }  # fmt: skip


def test_requests_without_an_answer_are_counted_once(tmp_path: Path, events: Events) -> None:
    events("user.message", content="go")
    events.used("r1")
    events.used("r1")
    events.answer("r2", "said")
    events.used("r3")
    events("session.shutdown", modelMetrics={"m": {"usage": {"inputTokens": 999}}})
    draft = read(tmp_path)
    assert [(m.role, words(m)) for m in draft.messages] == [
        ("user", "go"), ("assistant", ""), ("assistant", "said"), ("assistant", ""),
    ]  # fmt: skip
    assert draft.messages[1].metadata["backscroll"]["no_answer"] is True
    assert tokens(draft.messages) == {"input": 10, "output": 8, "reasoning": 2,
                                      "cache_read": 6, "cache_write": 4}  # fmt: skip


def test_an_event_that_was_written_twice_counts_once(tmp_path: Path, events: Events) -> None:
    events("user.message", content="go")
    events("session.error", errorType="query", message="no")
    events.answer("r1", "said", ("t", "view"))
    events.used("r1")
    events("session.info", message="noted")
    once = read(tmp_path)
    for place, row in list(enumerate(events.rows)):
        write_lines(events.path, [*events.rows[:place], row, *events.rows[place:]])
        draft = read(tmp_path)
        assert [(m.role, words(m), len(m.parts)) for m in draft.messages] == [
            (m.role, words(m), len(m.parts)) for m in once.messages
        ]
        assert tokens(draft.messages) == tokens(once.messages)


def test_a_fork_made_by_copying_is_known_by_who_spent(tmp_path: Path, events: Events) -> None:
    events("user.message", content="one")
    events.used("r1", source=TOOLS)
    last = events.answer("r1", "two")
    events("user.message", content="three")
    events.used("r2")
    events.answer("r2", "four")
    draft = read(tmp_path)
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", TOOLS)
    assert draft.lineage.parent_message_source_id == last
    assert [m.inherited_from for m in draft.messages] == ["e1", last, None, None]
    own = [m for m in draft.messages if m.inherited_from is None]
    assert tokens(own)["output"] == 4


def test_failed_and_denied_calls(tmp_path: Path, events: Events) -> None:
    events.answer("r", "", ("a", "view"), ("b", "bash"), ("c", "bash"), ("d", "bash"))
    events("tool.execution_start", toolCallId="a", toolName="view", arguments={})
    events("tool.execution_complete", toolCallId="a", success=False,
           error={"message": "Path does not exist", "code": "failure"})  # fmt: skip
    events("tool.execution_complete", toolCallId="b", success=False,
           error={"message": "The user rejected this tool call.", "code": "rejected"})  # fmt: skip
    events("tool.execution_complete", toolCallId="c", success=True,
           result={"content": "x", "contents": [{"type": "image", "data": "QUJD",
                                                 "mimeType": "image/png"}]})  # fmt: skip
    events("tool.execution_complete", toolCallId="c", success=True, result={"content": "again"})
    events("tool.execution_complete", toolCallId="z", toolName="late", success=True,
           result={"content": "alone"})  # fmt: skip
    draft = read(tmp_path)
    assert call(draft, "a").data["errorText"] == "Path does not exist"
    assert (call(draft, "a").tool_state, extra(call(draft, "a"))["duration_ms"]) == (
        "output-error", 1000,
    )  # fmt: skip
    assert call(draft, "b").tool_state == "output-denied"
    assert extra(call(draft, "b"))["status"] == "denied"
    assert [item["type"] for item in call(draft, "c").data["output"]] == ["text", "file"]
    assert call(draft, "d").tool_state == "input-available"
    assert call(draft, "z").data["output"] == "alone"
    check_records(draft)


def test_compaction_rewind_notices_and_unknown_events(tmp_path: Path, events: Events) -> None:
    events("user.message", content="one", attachments=[{"type": "file", "path": "/w/a.py",
                                                        "displayName": "a.py"}])  # fmt: skip
    events.answer("r1", "two")
    events("session.compaction_start")
    events("session.compaction_complete", success=True, summaryContent="All.",
           preCompactionTokens=90)  # fmt: skip
    second = events("user.message", content="three")
    events.answer("r2", "four")
    events("session.snapshot_rewind", upToEventId=second, eventsRemoved=2)
    events("user.message", content="five", source="skill-x")
    events("session.model_change", newModel="m2")
    events("session.info", message="hello")
    events("abort", reason="user initiated")
    events("hologram.shown", depth=3)
    draft = read(tmp_path)
    assert [m.source_id for m in draft.messages if "hidden_at" in m.metadata] == [second, "e6"]
    assert {m.metadata.get("hidden_at") for m in draft.messages} == {None, ms(7)}
    compaction = next(m for m in draft.messages if m.metadata.get("compaction"))
    assert compaction.parts[0].data["data"] == {
        "summary": "All.", "tail_start_id": None, "auto": True, "pre_tokens": 90,
    }  # fmt: skip
    assert draft.messages[0].parts[1].data["url"] == "file:///w/a.py"
    assert prompts(visible(draft)) == ["one"]
    names = [p.data["data"]["name"] for m in draft.messages for p in m.parts
             if p.type == "data-event"]  # fmt: skip
    assert names == ["info", "abort", "hologram.shown"]
    assert draft.model == {"provider_id": "github-copilot", "model_id": "m2"}
    assert draft.messages[-1].parts[0].data["data"]["details"] == {"depth": 3}


def test_subagents_are_sessions_of_their_own(tmp_path: Path, events: Events) -> None:
    events("user.message", content="go")
    events.used("r1")
    owner = events.answer("r1", "delegating", ("t", "task"))
    events("subagent.started", agent="ag", toolCallId="t", agentName="explore",
           agentDisplayName="Explorer")  # fmt: skip
    events.used("r2")
    events("assistant.message", agent="ag", messageId="c1", apiCallId="r2", model="m3",
           content="looking", toolRequests=[{"toolCallId": "v", "name": "view"}])  # fmt: skip
    events("tool.execution_complete", agent="ag", toolCallId="v", success=True,
           result={"content": "seen"})  # fmt: skip
    events("assistant.message", parentToolCallId="t", messageId="c2", content="found")
    events("subagent.completed", agent="ag", toolCallId="t")
    events("tool.execution_complete", toolCallId="t", success=True, result={"content": "found"})
    drafts, problems = read_all(CopilotSource(), tmp_path)
    assert problems == []
    child = drafts[f"{SID}:t"]
    assert child.lineage is not None and child.lineage.kind == "subagent"
    assert child.lineage.parent_message_source_id == owner
    assert child.lineage.tool_call_id == "t"
    assert [words(m) for m in child.messages] == ["looking", "found"]
    assert call(child, "v").data["output"] == "seen"
    assert child.title == "Explorer"
    part = call(drafts[SID], "t")
    assert extra(part)["child_session_source_id"] == child.source_id
    assert extra(part)["status"] == "ok"
    assert tokens(drafts[SID].messages)["output"] == tokens(child.messages)["output"] == 4
    check_records(child)


def test_workspace_file() -> None:
    body = b"id: x\nname: \"quoted: \\\"it\\\"\"\ncwd: '/it''s'\nempty: null\n# no\nlist:\n- a\n"
    assert parse_workspace(body) == {
        "id": "x", "name": 'quoted: "it"', "cwd": "/it's", "empty": "", "list": "",
    }  # fmt: skip
    assert parse_workspace(b"name: |-\n  two\n  lines\nuser_named: true\n") == {
        "name": "two\nlines", "user_named": "true",
    }  # fmt: skip


def test_the_older_flat_file(tmp_path: Path, events: Events) -> None:
    events("user.message", content="old")
    flat = tmp_path / "session-state" / f"{SID}.jsonl"
    shutil.move(events.path, flat)
    events.path.parent.rmdir()
    assert prompts(read(tmp_path).messages) == ["old"]
    assert only(CopilotSource(), flat).source_id == SID
    found = CopilotSource().units_at(tmp_path, [str(flat)])
    assert found is not None and [unit.key for unit in found] == [SID]


def test_damage_costs_itself(tmp_path: Path, events: Events) -> None:
    events("user.message", content="one")
    with events.path.open("ab") as file:
        file.write(b'{"no": \n[1]\n{"type":"user.message","data":7,"id":"e1"}\n{"type":"ass')
    drafts, problems = read_all(CopilotSource(), tmp_path)
    assert prompts(drafts[SID].messages) == ["one", ""]
    assert sorted(problem.line for problem in problems) == [3, 4, 6]
    events.path.write_text("")
    drafts, problems = read_all(CopilotSource(), tmp_path)
    assert (drafts, problems) == ({}, [])


def test_a_folder_that_went_away_costs_itself(tmp_path: Path, events: Events) -> None:
    events("user.message", content="one")
    (unit,) = CopilotSource().units(tmp_path, [])
    shutil.rmtree(events.path.parent)
    reading = CopilotSource().read(tmp_path, unit)
    assert (reading.sessions, len(reading.problems)) == ([], 1)


def test_the_index_keeps_what_a_gone_folder_held(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA, home)
    shutil.rmtree(home / "session-state" / TOOLS)
    drafts, problems = read_all(CopilotSource(), home)
    assert problems == []
    assert set(drafts) == {TOOLS, FAILED}
    draft = drafts[TOOLS]
    assert draft.path.endswith("session-store.db")
    assert draft.metadata["backscroll"] == {"from": "index"}
    assert [(m.role, words(m)) for m in draft.messages] == [
        ("user", "MOCK:cptools edit"), ("assistant", "Done: `a.txt` now says ALPHA."),
        ("user", "MOCK:hello2 go on"), ("assistant", "Second answer."),
    ]  # fmt: skip
    assert tokens(draft.messages) == {"input": 7900 - 6144, "output": 152 - 12, "reasoning": 12,
                                      "cache_read": 6144, "cache_write": 0}  # fmt: skip
    check_records(draft)


def test_the_index_with_a_writer_and_damage(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(DATA / "session-store.db", home)
    writer = sqlite3.connect(home / "session-store.db")
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("INSERT INTO sessions(id, cwd) VALUES ('new', '/w')")
    writer.execute("INSERT INTO turns(session_id, turn_index, user_message) VALUES ('new', 0, 'q')")
    writer.commit()
    writer.execute("BEGIN IMMEDIATE")
    before = {k: v for k, v in snapshot(home).items() if not k.endswith("-shm")}
    drafts, problems = read_all(CopilotSource(), home)
    assert problems == [] and prompts(drafts["new"].messages) == ["q"]
    assert {k: v for k, v in snapshot(home).items() if not k.endswith("-shm")} == before
    writer.close()
    (home / "session-store.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    drafts, problems = read_all(CopilotSource(), home)
    assert drafts == {} and len(problems) == 1


@pytest.mark.parametrize("step", [None, 1999])
def test_a_session_followed_is_a_session_read(tmp_path: Path, step: int | None) -> None:
    root = tmp_path / "home"
    shutil.copytree(DATA, root)
    for path in sorted(root.rglob("events.jsonl")):
        grows_like_a_whole(CopilotSource, root, path, step=step)


def test_a_poll_reads_the_session_that_grew(tmp_path: Path) -> None:
    root = tmp_path / "home"
    shutil.copytree(DATA, root)
    source = CopilotSource()
    folder = root / "session-state" / TOOLS
    for path in (folder / "events.jsonl", folder / "workspace.yaml", folder):
        found = source.units_at(root, [str(path)])
        assert found is not None and [unit.key for unit in found] == [TOOLS]
    assert source.units_at(root, [str(folder / "files" / "x")]) == []
    assert source.units_at(root, [str(root / "session-store.db-wal")]) is None


def test_secrets_beside_the_sessions_are_not_opened(tmp_path: Path, events: Events) -> None:
    (tmp_path / "config.json").mkdir()
    (tmp_path / "session-state" / SID / "session.key").mkdir()
    assert read(tmp_path).source_id == SID


def test_source_is_untouched(tmp_path: Path) -> None:
    before = snapshot(DATA)
    database = synced(CopilotSource(), DATA, tmp_path / "store.db")
    total = database.connection.execute("SELECT sum(total_tokens) FROM chat_sessions").fetchone()
    database.close()
    assert total[0] == 7900 + 152
    assert snapshot(DATA) == before
