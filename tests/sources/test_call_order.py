"""Calls and results are joined by id in whatever order they stand, in every source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.ids import derived_session_id
from store.queries.context import context_ids
from store.sources.base.drafts import SessionDraft
from store.sources.codex import CodexSource
from store.sources.copilot import CopilotSource
from store.sources.gemini import GeminiSource
from store.sources.hub import HubSource
from store.sources.lionagi import LionagiSource
from store.sources.pi import PiSource
from store.sources.viben import VibenSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown, row_sources, test_copilot, test_gemini, test_lionagi, test_pi
from tests.sources.codex_lines import Lines, thread_id
from tests.sources.test_hub import FILE as HUB

Make = Callable[[Path, bool], SessionDraft]
"""Writes a session of one call, its result before or after it, and reads it."""


def viben(folder: Path, early: bool) -> SessionDraft:
    rows: list[dict[str, Any]] = [
        {"type": "tool_use", "toolUseId": "c", "toolName": "Bash", "toolInput": {"command": "ls"}},
        {"type": "tool_result", "toolUseId": "c", "toolOutput": "out", "isError": False},
    ]
    session = folder / ".viben" / "agents" / "a" / ".agent_sessions" / "s"
    session.mkdir(parents=True)
    (session / "config.yaml").write_text('id: "s"\nprompt: "go"\n')
    rows = [{"type": "user", "content": "go"}, *(rows[::-1] if early else rows)]
    rows = [{"id": f"m{n}", "taskId": "t", "timestamp": grown.at(n), **row}
            for n, row in enumerate(rows)]  # fmt: skip
    grown.write_lines(session / "messages.ui.jsonl", rows)
    return grown.only(VibenSource(), folder / ".viben")


def pi(folder: Path, early: bool) -> SessionDraft:
    block = {"type": "toolCall", "id": "c", "name": "Bash", "arguments": {"command": "ls"}}
    call = ("message", {"role": "assistant", "content": [block], "model": "m"})
    said = [{"type": "text", "text": "out"}]
    result = ("message", {"role": "toolResult", "toolCallId": "c", "toolName": "Bash",
                          "content": said, "isError": False})  # fmt: skip
    rows = [test_pi.header(), test_pi.user("e0", None, 1, "go")]
    for place, (kind, message) in enumerate([result, call] if early else [call, result]):
        rows.append(test_pi.entry(f"e{place + 1}", f"e{place}", place + 2, kind, message=message))
    grown.write_lines(folder / "--w--" / f"x_{test_pi.SID}.jsonl", rows)
    return grown.only(PiSource(), folder)


def copilot(folder: Path, early: bool) -> SessionDraft:
    events = test_copilot.Events(folder)
    events("user.message", content="go")
    steps: list[Callable[[], object]] = [
        lambda: events("assistant.message", messageId="m", content="", toolRequests=[
            {"toolCallId": "c", "name": "Bash", "arguments": {"command": "ls"}}]),
        lambda: events("tool.execution_complete", toolCallId="c", success=True,
                       result={"content": "out"}),
    ]  # fmt: skip
    for step in reversed(steps) if early else steps:
        step()
    return grown.only(CopilotSource(), folder)


def codex(folder: Path, early: bool) -> SessionDraft:
    lines = Lines(thread_id(1))
    lines.user("go")
    if early:
        lines.output("call_1", "out")
    lines.call("Bash", command="ls")
    if not early:
        lines.output("call_1", "out")
    lines.write(folder)
    return grown.only(CodexSource(), folder)


def gemini(folder: Path, early: bool) -> SessionDraft:
    call = [{"functionCall": {"id": "c", "name": "Bash", "args": {"command": "ls"}}}]
    response = {"id": "c", "name": "Bash", "response": {"output": "out"}}
    rows = [test_gemini.gemini("g", call, 2),
            test_gemini.user("r", [{"functionResponse": response}], 3)]  # fmt: skip
    test_gemini.session(folder, test_gemini.meta(), test_gemini.user("u", "go", 1),
                        *(rows[::-1] if early else rows))  # fmt: skip
    return grown.only(GeminiSource(), test_gemini.root(folder))


ALL: list[Make] = [viben, pi, copilot, codex, gemini]


@pytest.mark.parametrize("make", ALL)
def test_a_result_that_stands_first_is_its_calls(make: Make, tmp_path: Path) -> None:
    drafts = []
    for early in (False, True):
        draft = make(tmp_path / str(early), early)
        (part,) = grown.calls(draft.messages)
        assert (part.type, part.data["input"]) == ("tool-Bash", {"command": "ls"})
        assert (part.tool_state, part.data["output"]) == ("output-available", "out")
        assert len(part.records) == 2
        grown.check_records(draft)
        drafts.append(draft)
    shapes = [[(m.role, [p.type for p in m.parts]) for m in draft.messages] for draft in drafts]
    assert shapes[0] == shapes[1]


def test_lionagi_a_response_that_stands_before_its_request(tmp_path: Path) -> None:
    file = row_sources.copied(test_lionagi.FILE, tmp_path)
    whole, _ = grown.read_all(LionagiSource(), file)

    def swap(connection: Any) -> None:
        """Put each response before the request that it names."""
        rows = dict(connection.execute("SELECT id, content FROM messages").fetchall())
        for name, text in connection.execute("SELECT id, collection FROM progressions").fetchall():
            order = json.loads(text)
            for response in list(order):
                asked = json.loads(rows.get(response, "{}")).get("action_request_id")
                if asked in order:
                    order.remove(response)
                    order.insert(order.index(asked), response)
            connection.execute(
                "UPDATE progressions SET collection = ? WHERE id = ?", (json.dumps(order), name)
            )

    row_sources.written(file, swap)
    drafts, problems = grown.read_all(LionagiSource(), file)
    assert problems == [] and drafts.keys() == whole.keys()
    for name, draft in drafts.items():
        grown.check_records(draft)
        found = {p.tool_call_id: p for p in grown.calls(draft.messages)}
        for part in grown.calls(whole[name].messages):
            same = found.pop(part.tool_call_id)
            assert (same.data, set(same.records)) == (part.data, set(part.records))
        assert not found


def test_lionagi_a_failure_that_only_the_text_tells_is_marked_as_a_guess(tmp_path: Path) -> None:
    file = row_sources.copied(test_lionagi.FILE, tmp_path)
    drafts, _ = grown.read_all(LionagiSource(), file)
    told = [grown.extra(p) for d in drafts.values() for p in grown.calls(d.messages)
            if p.tool_state == "output-available"]  # fmt: skip
    failed = [extra for extra in told if extra["status"] == "error"]
    assert failed and all(extra["guessed"] is True for extra in failed)
    assert not any("guessed" in extra for extra in told if extra["status"] == "ok")


def test_hub_a_word_that_is_not_known_is_kept(tmp_path: Path) -> None:
    file = row_sources.copied(HUB, tmp_path)
    state = {"status": "cancelled", "by": "user", "input": {"a": 1}, "time": {"start": 1, "end": 2}}

    def change(connection: Any) -> None:
        connection.execute(
            "UPDATE parts SET data = json_set(data, '$.state', json(?)) WHERE type = 'tool'",
            (json.dumps(state),),
        )

    row_sources.written(file, change)
    drafts, _ = grown.read_all(HubSource(), file)
    parts = [part for draft in drafts.values() for part in grown.calls(draft.messages)]
    assert parts and {grown.extra(part)["word"] for part in parts} == {"cancelled by user"}
    assert {part.tool_state for part in parts} == {"output-error"}


def test_hub_a_sessions_word_that_is_not_known_is_kept(tmp_path: Path) -> None:
    file = row_sources.copied(HUB, tmp_path)
    row_sources.written(file, lambda c: c.execute("UPDATE sessions SET status = 'on fire'"))
    drafts, _ = grown.read_all(HubSource(), file)
    told = [draft.metadata["activity"] for draft in drafts.values()]
    assert {(one["state"], one["word"]) for one in told} == {("unknown", "on fire")}


def test_copilot_ids_that_begin_anew_with_each_answer(tmp_path: Path) -> None:
    events = test_copilot.Events(tmp_path)
    for number in range(3):
        events("user.message", content=f"go {number}")
        events.answer(f"api{number}", "", ("call_0", "Bash"))
        events("tool.execution_start", toolCallId="call_0", toolName="Bash", arguments={})
        result = {"content": f"out {number}"}
        events("tool.execution_complete", toolCallId="call_0", success=True, result=result)
    draft = grown.only(CopilotSource(), tmp_path)
    assert [p.data["output"] for p in grown.calls(draft.messages)] == ["out 0", "out 1", "out 2"]


def test_pi_an_entry_of_two_rows_is_kept_whole(tmp_path: Path) -> None:
    shell = {"role": "bashExecution", "command": "echo hi", "output": "hi\n", "exitCode": 0}
    rows = [
        test_pi.header(),
        test_pi.user("e1", None, 1, "old"),
        test_pi.answer("e2", "e1", 2, "old answer"),
        test_pi.entry("e3", "e2", 3, "message", message=shell),
        test_pi.user("e4", "e3", 4, "kept"),
        test_pi.entry("e5", "e4", 5, "compaction", summary="SUM", firstKeptEntryId="e3"),
        test_pi.user("e6", "e5", 6, "new"),
    ]
    grown.write_lines(tmp_path / "--w--" / f"x_{test_pi.SID}.jsonl", rows)
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(PiSource(), tmp_path)])
    session = derived_session_id("pi", test_pi.SID)
    texts = [
        database.connection.execute(
            "SELECT coalesce(json_extract(data_json, '$.text'), type) FROM chat_parts"
            " WHERE message_id = ?", (name,),
        ).fetchone()[0]
        for name in context_ids(database, session)
    ]  # fmt: skip
    database.connection.close()
    assert texts == ["data-compaction", "echo hi", "hi\n", "kept", "new"]
