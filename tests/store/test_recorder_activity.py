"""Activity: stored by a process that may be dead, or guessed from the last rows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest

from store.activity.judgement import (
    STALE_AFTER_MS,
    Unsettled,
    activity_of,
    current,
    unsettled_of,
)
from store.engine.json_edits import set_json
from store.queries import activities, sessions, summaries
from store.queries.activities import newest_active
from store.rows import SessionRow
from store.system.processes import is_alive, this_process
from tests.store.recording import record
from tests.store.talks import Talk

NOW = 1_000_000_000


def row(activity: dict[str, Any] | None, at: int = NOW) -> SessionRow:
    metadata = orjson.dumps({} if activity is None else {"activity": activity}).decode()
    return SessionRow("ses_1", None, "a", None, "{}", None, None, "[]", metadata,
                      0, 0, 0, 0, 0, 0, 0.0, at, at, None)


def dead_process() -> dict[str, Any]:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return this_process().as_json() | {"pid": child.pid, "started": 1}


def test_a_process_is_known_from_another_of_its_number() -> None:
    mine = this_process().as_json()
    assert is_alive(mine) is True
    assert is_alive(mine | {"started": 1}) is False
    assert is_alive(mine | {"boot": "another"}) is False
    assert is_alive(mine | {"host": "elsewhere"}) is None
    assert is_alive(dead_process()) is False
    assert is_alive({}) is None


@pytest.mark.parametrize(("stored", "state", "from_"), [
    ({"state": "running", **this_process().as_json()}, "running", "stored"),
    ({"state": "running", **this_process().as_json(), "started": 1}, "interrupted", "guessed"),
    ({"state": "waiting-approval", "from": "stored"}, "waiting-approval", "stored"),
    ({"state": "running", "from": "guessed"}, "running", "guessed"),
    ({"state": "no such state"}, "idle", "guessed"),
    (None, "idle", "guessed"),
])
def test_what_is_stored(stored: dict[str, Any] | None, state: str, from_: str) -> None:
    found = activity_of(row(stored), now=NOW)
    assert (found.state, found.from_) == (state, from_)


def test_a_process_elsewhere_is_believed_while_it_writes() -> None:
    stored = {"state": "running", **this_process().as_json(), "host": "elsewhere"}
    assert activity_of(row(stored), now=NOW).state == "running"
    assert activity_of(row(stored, NOW - 61_000), now=NOW).state == "unknown"


@pytest.mark.parametrize(("unsettled", "state"), [
    (Unsettled("approval-requested", "tool-x", 0), "waiting-approval"),
    (Unsettled("input-available", "tool-question", 0), "waiting-input"),
    (Unsettled("input-available", "tool-x", NOW - 1), "running"),
    (Unsettled("input-streaming", "tool-x", NOW - 60_001), "interrupted"),
    (Unsettled("streaming", "text", NOW - 1), "running"),
    (Unsettled("streaming", "text", NOW - 60_001), "idle"),
    (Unsettled(queued=True), "queued"), (None, "idle"),
    (Unsettled("failed", "data-error", 0), "error"),
    (Unsettled("failed", "data-error", 0, queued=True), "queued"),
])
def test_what_is_guessed(unsettled: Unsettled | None, state: str) -> None:
    found = activity_of(row(None), now=NOW, unsettled=unsettled)
    assert (found.state, found.from_) == (state, "guessed")


def test_what_is_open_at_the_end_of_sessions(talk: Talk) -> None:
    call = {"type": "tool-input-available", "toolCallId": "c", "toolName": "sh", "input": 1}
    ask = {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "a"}
    done = {"type": "tool-output-available", "toolCallId": "c", "output": 1}
    ids = [record(talk.db, [{"type": "start-step"}, call, *more])[0].session_id
           for more in ([], [ask], [done])]
    found = unsettled_of(talk.db, ids)
    assert {key: found[key].tool_state for key in found} == {
        ids[0]: "input-available", ids[1]: "approval-requested", ids[2]: "answered"}


def test_a_queued_message_is_seen(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [{"type": "start"}])
    own_talk.db.connection.execute(
        "UPDATE chat_messages SET metadata_json = '{\"queued_at\":5}' WHERE id = ?",
        (message_id,))
    assert unsettled_of(own_talk.db, [recording.session_id])[recording.session_id].queued


@pytest.mark.file
def test_the_pages_query_walks_indexes_only(talk: Talk) -> None:
    recording, _ = record(talk.db, [{"type": "start"}])
    seen: list[str] = []
    talk.db.file.set_trace_callback(seen.append)
    unsettled_of(talk.db, [recording.session_id])
    talk.db.file.set_trace_callback(None)
    (sql,) = seen
    assert sql.count("json_each") == 3
    plan = talk.db.connection.execute("EXPLAIN QUERY PLAN " + sql).fetchall()
    walks = ("SCAN m", "SCAN p", "SCAN q", "SCAN l")
    assert not [line for *_, line in plan if line.startswith(walks)]


@pytest.mark.parametrize(("data", "state"), [
    ({"type": "text", "text": "gro", "state": "streaming"}, "streaming"),
    ({"type": "reasoning", "text": "gro", "state": "streaming"}, "streaming"),
    ({"type": "text", "text": "grown", "state": "done"}, None),
    ({"type": "text", "text": "state streaming"}, "growing"),
])
def test_text_that_grows_is_open(talk: Talk, data: dict[str, Any], state: str | None) -> None:
    session = talk.session("Grows")
    talk.message(session, text="go on")
    talk.message(session, "assistant", parts=[{"type": "text", "text": "before"}, data])
    talk.db.connection.execute("UPDATE chat_parts SET updated_at = updated_at + 1")
    found = unsettled_of(talk.db, [session]).get(session, Unsettled())
    assert (found.tool_state, found.tool_type) == (state, data["type"] if state else "")
    if talk.db.server is not None:
        return  # It stores no JSON that is damaged.
    talk.db.connection.execute("UPDATE chat_parts SET data_json = '{' WHERE type = 'text'")
    found = unsettled_of(talk.db, [session]).get(session, Unsettled())
    assert found.tool_state == (state if data["type"] == "reasoning" else None)


@pytest.mark.parametrize(("error", "after", "state"), [
    ({"message": "overloaded"}, None, "failed"),
    ({"name": "APIError", "message": "overloaded"}, None, "failed"),
    ({"name": "MessageAbortedError", "message": "Aborted"}, None, "stopped"),
    ({"message": "overloaded"}, "text", None),
    ({"message": "overloaded"}, "prompt", "prompt"),
])
def test_a_message_that_ends_on_an_error(
    talk: Talk, error: dict[str, Any], after: str | None, state: str | None
) -> None:
    session = talk.session("Fails")
    talk.message(session, text="go on")
    call = {"type": "tool-sh", "toolCallId": "c", "state": "input-available", "input": {}}
    settled = call | {"state": "output-available", "output": 1}
    parts = [{"type": "text", "text": "before"}, call if state == "failed" else settled,
             {"type": "data-error", "data": error}]
    talk.message(session, "assistant", parts=[
        *parts, *([{"type": "text", "text": "went on"}] if after == "text" else [])])
    if after == "prompt":
        talk.message(session, text="again")
    found = unsettled_of(talk.db, [session]).get(session, Unsettled())
    last = "" if state is None else "text" if after else "data-error"
    assert (found.tool_state, found.tool_type) == (state, last)
    if talk.db.server is not None:
        return  # It stores no JSON that is damaged.
    talk.db.connection.execute("UPDATE chat_parts SET data_json = '{' WHERE type = 'data-error'")
    found = unsettled_of(talk.db, [session]).get(session, Unsettled())
    assert found.tool_state not in ("failed", "stopped")


def test_header_list_and_command_line_agree(own_talk: Talk) -> None:
    names = {"dead": this_process().as_json() | {"started": 1}, "lives": this_process().as_json(),
             "elsewhere": this_process().as_json() | {"host": "elsewhere"}}
    now = own_talk.now + 100_000
    for name, process in names.items():
        stored = {"state": "running", "from": "stored", **process}
        own_talk.session(metadata_json=orjson.dumps({"title": name, "activity": stored}).decode())
    old = own_talk.session("asked days ago")
    own_talk.call(own_talk.session("open call"), state="input-available")
    own_talk.call(old, state="approval-requested")
    own_talk.db.connection.execute(
        "UPDATE chat_sessions SET updated_at = 1000 WHERE id = ?", (old,))
    ids = [row[0] for row in own_talk.db.connection.execute("SELECT id FROM chat_sessions")]
    rows = activities.rows(own_talk.db, (), ids, now)
    assert len(rows) == 5
    for row in rows.values():
        session = sessions.get(own_talk.db, row.id)
        assert session is not None
        (summary,) = summaries.summaries_of(own_talk.db, [session], now=now)
        header = current(own_talk.db, session, now)
        assert (row.activity, row.activity_from) == (header.state, header.from_), row.title
        assert summary["activity"] == header.state
    assert {row.title: row.activity for row in rows.values()} == {
        "dead": "interrupted", "lives": "running", "elsewhere": "unknown",
        "asked days ago": "waiting-approval", "open call": "interrupted"}


@pytest.mark.parametrize(("stored", "age", "state", "from_"), [
    ({"state": "running"}, STALE_AFTER_MS, "running", "guessed"),
    ({"state": "running"}, STALE_AFTER_MS + 1, "interrupted", "guessed"),
    ({"state": "retrying"}, STALE_AFTER_MS + 1, "interrupted", "guessed"),
    ({"state": "running", "since": NOW - 1}, STALE_AFTER_MS + 1, "running", "guessed"),
    ({"state": "waiting-input"}, 30 * 86_400_000, "waiting-input", "stored"),
    ({"state": "waiting-input", **this_process().as_json(), "started": 1}, 0, "interrupted",
     "guessed"),
    ({"state": "error"}, 30 * 86_400_000, "error", "stored"),
])
def test_what_nobody_vouches_for_grows_stale(
    own_talk: Talk, stored: dict[str, Any], age: int, state: str, from_: str
) -> None:
    found = activity_of(row(stored, NOW - age), now=NOW)
    assert (found.state, found.from_) == (state, from_)
    session = own_talk.session(
        metadata_json=orjson.dumps({"activity": stored}).decode(), updated_at=NOW - age)
    (listed,) = activities.rows(own_talk.db, (), [session], NOW).values()
    assert (listed.activity, listed.activity_from) == (state, from_)
    assert activities.states_of(own_talk.db, [listed.rowid], NOW) == {listed.rowid: state}


def test_a_part_that_moves_keeps_a_stored_run_alive(own_talk: Talk) -> None:
    stored = orjson.dumps({"activity": {"state": "running", "from": "stored"}}).decode()
    session = own_talk.session(metadata_json=stored, updated_at=1)
    own_talk.call(session, state="input-available")
    found = sessions.get(own_talk.db, session)
    assert found is not None
    for later, state in ((STALE_AFTER_MS, "running"), (STALE_AFTER_MS + 1, "interrupted")):
        now = own_talk.now + later
        assert current(own_talk.db, found, now).state == state
        (listed,) = activities.rows(own_talk.db, (), [session], now).values()
        assert listed.activity == state
        assert activities.states_of(own_talk.db, [listed.rowid], now) == {listed.rowid: state}


@pytest.mark.file
def test_states_alone_are_those_of_the_rows(talk: Talk) -> None:
    for number, name in enumerate(("input-available", "approval-requested", "output-available")):
        talk.call(talk.session(f"session {number}"), state=name)
    talk.session(metadata_json='{"activity":{"state":"error"}}')
    talk.session(metadata_json='{"activity":')
    for now in (talk.now, talk.now + 120_000):
        rows = activities.rows(talk.db, range(1, 9), (), now)
        assert len(rows) == 5
        assert activities.states_of(talk.db, range(1, 9), now) == {
            rowid: row.activity for rowid, row in rows.items() if row.activity != "idle"}


def test_a_watched_session_that_rests_for_days_is_active(own_talk: Talk) -> None:
    session = own_talk.session()
    own_talk.session("rests")
    now = own_talk.now + 5 * 86_400_000
    mine = orjson.dumps(this_process().as_json()).decode()
    own_talk.db.connection.execute(
        "INSERT INTO live_activity VALUES (?, 'k', '/', 'running', 5, ?, ?, 6)",
        (session, mine, mine))
    assert [row.id for row in activities.recently_active(own_talk.db, now)] == [session]


def test_the_list_tells_a_dead_recorder(own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [{"type": "start"}])
    found = sessions.get(own_talk.db, recording.session_id)
    assert found is not None
    assert newest_active(own_talk.db, found.updated_at, ["running"]) is not None
    set_json(own_talk.db, "chat_sessions", recording.session_id,
             "json_set($json, '$.activity.started', 1)", {})
    assert newest_active(own_talk.db, found.updated_at, ["running"]) is None
