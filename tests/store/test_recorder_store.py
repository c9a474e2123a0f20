"""What a recording leaves in a store: rows, order, usage, activity, the log of changes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from store.activity.judgement import activity_of
from store.engine.database import Database, open_database
from store.engine.json_edits import set_json
from store.engine.opening import open_target
from store.engine.server.connection import ServerCursor
from store.errors import NotFound, Refused
from store.ids import IdMinter
from store.queries import sessions
from store.recorder.direct import DirectRecorder
from store.recorder.partial_json import PartialJson
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.recording import Recording, user_message
from store.recorder.usage import UsageSum, buckets_of
from store.recorder.writing import CHANGES_KEPT
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store, opened_again
from tests.store.recording import (
    feed,
    leave_without_a_word,
    messages,
    metadata,
    record,
    session_row,
    stored,
)
from tests.store.talks import Talk

START = {"type": "start", "messageId": "m1"}
STEP, STEP_END = {"type": "start-step"}, {"type": "finish-step"}
FINISH = {"type": "finish", "finishReason": "stop"}


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": said},
            {"type": "text-end", "id": "t"}]


def usage(**buckets: int) -> dict[str, Any]:
    return {"type": "message-metadata", "messageMetadata": {"usage": buckets}}


def state_of(talk: Talk, session_id: str) -> str:
    row = sessions.get(talk.db, session_id)
    assert row is not None
    return activity_of(row, now=row.updated_at).state


def test_the_user_comes_first_and_names_the_session(talk: Talk) -> None:
    recording = Recording()
    session_id = drive(talk.db, recording.start(agent="a", workspace="/w"))
    drive(talk.db, recording.add_message(user_message("Fix\nit")))
    row = sessions.get(talk.db, session_id)
    assert row is not None
    assert (row.title, row.agent, row.workspace_root) == ("Fix", "a", "/w")
    assert state_of(talk, session_id) == "running"
    feed(talk.db, recording, [START, STEP, *text("ok"), STEP_END, FINISH])
    drive(talk.db, recording.close())
    kept = messages(talk.db, session_id)
    assert [message["role"] for message in kept] == ["user", "assistant"]
    assert kept[0]["parts"] == [{"type": "text", "text": "Fix\nit"}]
    assert state_of(talk, session_id) == "idle"


def test_messages_keep_their_order_when_the_clock_steps_back(own_talk: Talk) -> None:
    now = iter([50, *range(49, 0, -1), *[1] * 200])
    clock = lambda: next(now)  # noqa: E731
    recording = Recording(clock=clock, ids=IdMinter(lambda: 77))
    drive(own_talk.db, recording.start())
    for said in "abc":
        drive(own_talk.db, recording.add_message(user_message(said)))
    kept = messages(own_talk.db, recording.session_id)
    assert [message["parts"][0]["text"] for message in kept] == ["a", "b", "c"]
    times = [row[0] for row in own_talk.db.connection.execute(
        "SELECT created_at FROM chat_messages ORDER BY created_at")]
    assert [at - times[0] for at in times] == [0, 1, 2]


def test_rows_have_the_columns_of_their_part(talk: Talk) -> None:
    call = {"toolCallId": "c", "toolName": "sh"}
    recording, message_id = record(talk.db, [
        START, STEP, *text("x"), {"type": "tool-input-start", **call},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"a":"b'},
    ])
    rows = talk.db.connection.execute(
        'SELECT "index", type, tool_call_id, tool_state, data_json FROM chat_parts'
        ' WHERE message_id = ? ORDER BY "index"', (message_id,)).fetchall()
    assert [row[:4] for row in rows] == [
        (0, "step-start", None, None), (1, "text", None, None),
        (2, "tool-sh", "c", "input-streaming")]
    assert json.loads(rows[2][4]) == {
        "type": "tool-sh", "toolCallId": "c", "state": "input-streaming",
        "rawInput": '{"a":"b', "input": {"a": "b"}}
    drive(talk.db, recording.close())


def test_reset_step_deletes_rows_and_moves_the_message(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [START, STEP, *text("gone")])
    feed(own_talk.db, recording, [{"type": "reset-step"}, *text("kept"), STEP_END, FINISH])
    drive(own_talk.db, recording.close())
    rows = own_talk.db.connection.execute(
        'SELECT "index", type FROM chat_parts WHERE message_id = ? ORDER BY "index"',
        (message_id,)).fetchall()
    assert rows == [(0, "step-start"), (2, "text")]
    again, _ = record(own_talk.db, [START, STEP], session=recording.session_id)
    assert again.message is not None and again.message.state.parts[-1].index == 3


def test_indexes_rise_over_a_reset_step_where_another_process_goes_on(own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [START, STEP, *text("gone"), {"type": "reset-step"}])
    drive(own_talk.db, recording.close())
    again, message_id = record(own_talk.db, [START, STEP], session=recording.session_id)
    drive(own_talk.db, again.close())
    indexes = own_talk.db.connection.execute(
        'SELECT "index" FROM chat_parts WHERE message_id = ? ORDER BY "index"',
        (message_id,)).fetchall()
    assert indexes == [(0,), (2,)]


def test_every_write_is_in_the_log_of_changes(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [START, STEP, *text("x"), STEP_END, FINISH])
    logged = own_talk.db.connection.execute(
        "SELECT DISTINCT session_id, message_id FROM changes WHERE session_id = ?",
        (recording.session_id,)).fetchall()
    assert (recording.session_id, message_id) in logged


@pytest.mark.file
def test_the_log_of_changes_does_not_grow_for_ever(own_talk: Talk) -> None:
    changes = own_talk.db.connection
    changes.execute("DELETE FROM changes")
    last = 20 * 1024 - 1
    for seq in (5, last - CHANGES_KEPT, last - CHANGES_KEPT + 1, last - CHANGES_KEPT + 2, last):
        changes.execute("INSERT INTO changes VALUES (?, 'ses_x', NULL, 1)", (seq,))
    record(own_talk.db, [START])
    kept = [row[0] for row in changes.execute("SELECT seq FROM changes ORDER BY seq")]
    assert kept[:3] == [last - CHANGES_KEPT + 2, last, last + 1]


def test_growing_text_does_not_move_the_session(own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [START, STEP])
    own_talk.db.connection.execute("UPDATE chat_sessions SET updated_at = 5")
    feed(own_talk.db, recording, text("x"))
    assert session_row(own_talk.db, recording.session_id)["updated_at"] == 5
    feed(own_talk.db, recording, [STEP_END])
    assert session_row(own_talk.db, recording.session_id)["updated_at"] > 5


# -- usage


def test_usage_of_a_continued_message_is_added_once(own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [START, STEP, STEP_END, usage(input=10), FINISH])
    drive(own_talk.db, recording.close())
    again, message_id = record(
        own_talk.db, [START, STEP, STEP_END, usage(input=5, output=1),
                      {"type": "finish", "messageMetadata": {"usage": {"input": 15}}}],
        session=recording.session_id)
    drive(own_talk.db, again.close())
    row = session_row(own_talk.db, recording.session_id)
    assert (row["prompt_tokens"], row["completion_tokens"], row["total_tokens"]) == (15, 1, 16)
    assert metadata(own_talk.db, message_id)["usage"] == {
        "input": 15, "output": 1, "reasoning": 0, "cache_read": 0, "cache_write": 0}


def test_usage_of_a_stream_that_goes_on_after_a_kill_is_added_once(own_talk: Talk) -> None:
    step = [{"type": "start-step"}, {"type": "finish-step"}]
    usage = {"type": "message-metadata", "messageMetadata": {"usage": {"input": 3, "output": 1}}}
    total = {"totalUsage": {"inputTokens": 3, "outputTokens": 1}}
    recording, _ = record(own_talk.db, [{"type": "start"}, *step, usage])
    leave_without_a_word(own_talk.db, recording)
    record(own_talk.db, [{"type": "finish", "messageMetadata": total}],
           session=recording.session_id)
    assert session_row(own_talk.db, recording.session_id)["total_tokens"] == 4
    assert len(messages(own_talk.db, recording.session_id)) == 1


def test_a_host_may_tell_the_usage_of_a_step(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [START, STEP])
    assert recording.report_step_usage({"inputTokens": 30, "outputTokens": 9,
                                        "cachedInputTokens": 10, "reasoningTokens": 4})
    feed(own_talk.db, recording, [STEP_END, FINISH])
    expected = {"input": 20, "output": 5, "reasoning": 4, "cache_read": 10, "cache_write": 0}
    assert metadata(own_talk.db, message_id)["usage"] == expected
    assert "metadata" not in stored(own_talk.db, message_id)
    assert session_row(own_talk.db, recording.session_id)["total_tokens"] == 39


def test_usage_sums() -> None:
    total = UsageSum()
    total.start_step()
    total.report({"input": 3})
    total.report({"input": 4})
    total.start_step()
    total.report({"input": 1})
    assert total.total["input"] == 5
    assert not total.report_total({"usage": {"input": 99}})
    alone = UsageSum()
    assert alone.report_total({"totalUsage": {"inputTokens": 7, "outputTokens": 2}})
    assert (alone.total["input"], alone.total["output"]) == (7, 2)
    assert buckets_of({"input": -1, "output": True, "cache_read": 2.0}) == {
        "input": 0, "output": 0, "reasoning": 0, "cache_read": 2, "cache_write": 0}
    assert buckets_of("much") is None


# -- metadata


@pytest.mark.parametrize("given", [
    {}, {"a": 1}, "text", [1, 2], 5, {"backscroll": {"x": 1}}, {"usage": {"input": 1}, "k": None},
])
def test_any_metadata_comes_back(given: Any, own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [
        START, {"type": "message-metadata", "messageMetadata": given}, FINISH])
    drive(own_talk.db, recording.close())
    assert stored(own_talk.db, message_id)["metadata"] == given


def test_what_makes_no_part_is_kept_beside(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [
        START, STEP, {"type": "error", "errorText": "overloaded"},
        {"type": "abort", "reason": "stop"}])
    own = metadata(own_talk.db, message_id)["backscroll"]
    assert (own["error"], own["abort_reason"], own["sdk_message_id"]) == (
        "overloaded", "stop", "m1")
    assert own["aborted_at"] > 0


def test_a_hidden_message_stays_hidden(talk: Talk) -> None:
    recording, message_id = record(talk.db, [START, STEP])
    set_json(talk.db, "chat_messages", message_id, "json_set($json, '$.hidden_at', 9)", {})
    feed(talk.db, recording, [FINISH])
    assert metadata(talk.db, message_id)["hidden_at"] == 9


# -- how a session goes on


def test_which_message_a_stream_goes_on_with(own_talk: Talk) -> None:
    recording, first = record(own_talk.db, [START, STEP, *text("a"), STEP_END, FINISH])
    drive(own_talk.db, recording.close())
    session = recording.session_id
    _, same = record(own_talk.db, [START, STEP], session=session)
    assert same == first
    _, other = record(own_talk.db, [{"type": "start", "messageId": "m2"}], session=session)
    assert other != first
    _, unnamed = record(own_talk.db, [{"type": "start"}], session=session)
    assert unnamed not in (first, other)


def test_an_answer_never_comes_before_its_question(own_talk: Talk) -> None:
    start = {"type": "start", "messageId": "always the same"}
    recording, first = record(own_talk.db, [start, *text("one"), FINISH])
    assert feed(own_talk.db, recording, [start, *text("two"), FINISH]) == first
    drive(own_talk.db, recording.add_message(user_message("and now?")))
    again = feed(own_talk.db, recording, [start, *text("three"), FINISH])
    kept = messages(own_talk.db, recording.session_id)
    assert again != first
    assert [[part["text"] for part in message["parts"]] for message in kept] == [
        ["one", "two"], ["and now?"], ["three"]]


def test_an_answered_message_goes_on_without_a_name(own_talk: Talk) -> None:
    asks: list[dict[str, Any]] = [{"type": "start"}, STEP,
            {"type": "tool-input-available", "toolCallId": "c", "toolName": "sh", "input": {}},
            {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "ap"},
            STEP_END, {"type": "finish", "finishReason": "tool-calls"}]
    recording, first = record(own_talk.db, asks)
    drive(own_talk.db, recording.close())
    session = recording.session_id
    assert state_of(own_talk, session) == "waiting-approval"
    answers = Recording()
    drive(own_talk.db, answers.start(session))
    assert drive(own_talk.db, answers.respond_approval(first, "ap", True))
    assert state_of(own_talk, session) == "idle"
    drive(own_talk.db, answers.close())
    again, message_id = record(
        own_talk.db, [{"type": "start"}, {"type": "tool-output-available", "toolCallId": "c",
                                          "output": 1}, STEP, *text("b"), FINISH],
        session=session)
    assert message_id == first
    late, message_id = record(
        own_talk.db, [{"type": "tool-output-error", "toolCallId": "c", "errorText": "no"}],
        session=session)
    assert message_id == first


def test_a_client_tool_waits_for_input(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [
        START, STEP, {"type": "tool-input-available", "toolCallId": "c", "toolName": "ask",
                      "input": {}}, STEP_END, {"type": "finish", "finishReason": "tool-calls"}])
    assert state_of(own_talk, recording.session_id) == "waiting-input"
    drive(own_talk.db, recording.set_tool_output("m1", "c", {"ok": 1}))
    assert state_of(own_talk, recording.session_id) == "idle"
    with pytest.raises(NotFound):
        drive(own_talk.db, recording.set_tool_output("m9", "c", 1))


@pytest.mark.parametrize(("ending", "state"), [
    ([FINISH], "idle"), ([{"type": "abort"}], "interrupted"), ([], "interrupted"),
    ([{"type": "error", "errorText": "x"}], "error"),
    ([{"type": "error", "errorText": "x"}, {"type": "finish", "finishReason": "error"}], "error"),
    ([{"type": "text-delta", "id": "none", "delta": "x"}, FINISH], "idle"),
])
def test_activity_after_each_ending(ending: list[Any], state: str, own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [START, STEP, *text("a"), *ending])
    drive(own_talk.db, recording.close())
    assert state_of(own_talk, recording.session_id) == state


def test_after_a_refused_chunk_the_rest_is_recorded(own_talk: Talk) -> None:
    problems: list[str] = []
    bad = {"type": "text-delta", "id": "none", "delta": "x"}
    recording, message_id = record(own_talk.db, [START, bad, bad, *text("kept")],
                                   problem=problems.append)
    assert [part["text"] for part in stored(own_talk.db, message_id)["parts"]] == ["xx", "kept"]
    assert len(problems) == 1 and "none" in problems[0]


def test_an_id_from_us_is_the_id_of_the_row(own_talk: Talk) -> None:
    recording = Recording()
    drive(own_talk.db, recording.start())
    minted = recording.generate_message_id()
    assert feed(own_talk.db, recording, [{"type": "start", "messageId": minted}]) == minted


def test_a_message_is_not_stored_twice(own_talk: Talk) -> None:
    recording = Recording()
    drive(own_talk.db, recording.start())
    given = user_message("x") | {"id": "u1"}
    drive(own_talk.db, recording.add_message(given))
    with pytest.raises(Refused, match="already"):
        drive(own_talk.db, recording.add_message(given))


def test_a_session_that_another_process_records_is_refused(own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [START])
    set_json(own_talk.db, "chat_sessions", recording.session_id,
             "json_set(json_remove($json, '$.activity.started'), '$.activity.pid', 1)", {})
    with pytest.raises(Refused, match="process 1"):
        record(own_talk.db, [], session=recording.session_id)
    with pytest.raises(NotFound):
        record(own_talk.db, [], session="ses_none")


# -- failure


@pytest.mark.file
def test_a_failed_write_is_written_with_the_next(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [START, STEP])
    other = sqlite3.connect(own_talk.db.path, isolation_level=None)
    own_talk.db.connection.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    for chunk in [*text("kept"), {"type": "finish-step"}, usage(input=4)]:
        drive(own_talk.db, recording.receive(chunk))
    with pytest.raises(sqlite3.OperationalError):
        drive(own_talk.db, recording.save())
    other.execute("ROLLBACK")
    drive(own_talk.db, recording.close())
    assert stored(own_talk.db, message_id)["parts"][1]["text"] == "kept"
    assert session_row(own_talk.db, recording.session_id)["prompt_tokens"] == 4


def test_a_session_that_went_away_is_told(own_talk: Talk) -> None:
    recording, _ = record(own_talk.db, [START, STEP])
    own_talk.db.connection.execute("DELETE FROM chat_sessions WHERE id = ?",
                                   (recording.session_id,))
    with pytest.raises(NotFound):
        feed(own_talk.db, recording, [STEP_END])


def test_nothing_is_written_before_a_turn_ends(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [START, STEP], policy=SavePolicy("turn"))
    before = own_talk.db.connection.total_changes
    feed(own_talk.db, recording, [*text("x" * 100_000), STEP_END, STEP])
    assert own_talk.db.connection.total_changes == before
    feed(own_talk.db, recording, [FINISH])
    assert len(stored(own_talk.db, message_id)["parts"]) == 3
    drive(own_talk.db, recording.close())


def test_policies_are_checked() -> None:
    with pytest.raises(ValueError, match="save_on"):
        SavePolicy("often")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="save_buffer_ms"):
        SavePolicy(save_buffer_ms=-1)
    for endless in (10**400, float("inf")):
        assert SavePolicy(save_buffer_ms=endless).wait_s() > 1e6  # type: ignore[arg-type]


def test_a_read_only_store_is_refused(own_talk: Talk) -> None:
    database = open_database(own_talk.db.path, write=False)
    with pytest.raises(Refused):
        drive(database, Recording().start())
    database.close()


# -- long inputs


def test_a_tool_input_is_not_parsed_for_each_delta(
    own_talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    value = PartialJson.value

    def counted(self: PartialJson) -> Any:
        parsed.append(len(self.text))
        return value(self)

    monkeypatch.setattr(PartialJson, "value", counted)
    call = {"toolCallId": "c", "toolName": "sh"}
    recording, message_id = record(own_talk.db, [START, {"type": "tool-input-start", **call}],
                                   policy=SavePolicy())
    given = json.dumps({"text": "word " * 4_000})
    for first in range(0, len(given), 20):
        drive(own_talk.db, recording.receive(
            {"type": "tool-input-delta", "toolCallId": "c",
             "inputTextDelta": given[first : first + 20]}))
    assert parsed == []
    drive(own_talk.db, recording.close())
    assert parsed == [len(given)]
    assert stored(own_talk.db, message_id)["parts"][0]["input"] == json.loads(given)


def test_a_long_input_is_parsed_at_a_slower_pace_than_it_is_saved(own_talk: Talk) -> None:
    now = [1_000]
    recording = Recording(clock=lambda: now[0], ids=IdMinter())
    drive(own_talk.db, recording.start())
    message_id = feed(own_talk.db, recording, [
        START, {"type": "tool-input-start", "toolCallId": "c", "toolName": "sh"}])

    def row_after(piece: str, milliseconds: int) -> Any:
        now[0] += milliseconds
        delta = {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": piece}
        drive(own_talk.db, recording.receive(delta))
        drive(own_talk.db, recording.save())
        return json.loads(own_talk.db.connection.execute(
            "SELECT data_json FROM chat_parts WHERE message_id = ?", (message_id,)
        ).fetchone()[0])

    row_after('{"a":"' + "x" * 70_000, 300)
    early, late = row_after("y", 10), row_after("z", 300)
    assert early["rawInput"].endswith("xy") and early["input"]["a"].endswith("x")
    assert late["input"]["a"].endswith("xyz")
    assert stored(own_talk.db, message_id)["parts"][0]["input"]["a"].endswith("xyz")


# -- on a server


class _Lost(sqlite3.OperationalError):
    is_lost = True


@pytest.mark.parametrize("committed", [False, True])
def test_a_commit_that_was_not_answered_is_written_once(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    db = open_target(new_server_store(postgres), write=True)
    recording, message_id = record(db, [START, STEP])
    for chunk in [*text("kept"), {"type": "finish-step"}, usage(input=4)]:
        drive(db, recording.receive(chunk))
    run = type(db.connection).execute

    def lost(self: Any, sql: str, *values: Any) -> Any:
        if sql != "COMMIT":
            return run(self, sql, *values)
        monkeypatch.undo()
        run(self, "COMMIT" if committed else "ROLLBACK")
        self.close()
        raise _Lost("gone")

    monkeypatch.setattr(type(db.connection), "execute", lost)
    if committed:
        drive(db, recording.save())
    else:
        with pytest.raises(_Lost):
            drive(db, recording.save())
    drive(db, recording.close())
    assert stored(db, message_id)["parts"][1]["text"] == "kept"
    assert session_row(db, recording.session_id)["prompt_tokens"] == 4
    db.close()


def _saved_at_once(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, fail: Callable[[Any, Callable[[], Any]], Any]
) -> tuple[Database, Recording, str]:
    """Save a delta by the one statement of a usual batch, which is sent by ``fail``."""
    db = open_target(new_server_store(postgres), write=True)
    recording, message_id = record(db, [START, STEP, text("kept")[0]])
    drive(db, recording.save())
    drive(db, recording.receive(text("kept")[1]))
    run = type(db.connection).execute

    def sent(self: Any, sql: str, *values: Any) -> Any:
        if not sql.startswith("WITH locked"):
            return run(self, sql, *values)
        monkeypatch.undo()
        return fail(self, lambda: run(self, sql, *values))

    monkeypatch.setattr(type(db.connection), "execute", sent)
    drive(db, recording.save())
    return db, recording, message_id


@pytest.mark.parametrize("written", [False, True])
def test_a_statement_that_was_not_answered_is_written_once(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    count = "SELECT count(*) FROM changes"
    before: list[int] = []

    def lost(connection: Any, run: Callable[[], Any]) -> Any:
        before.extend(connection.execute(count).fetchone())
        if written:
            run()
        connection.close()
        raise _Lost("gone")

    db, recording, message_id = _saved_at_once(postgres, monkeypatch, lost)
    assert stored(db, message_id)["parts"][1]["text"] == "kept"
    drive(db, recording.save())
    # Where it was not there, a second entry has taken its number.
    assert db.connection.execute(count).fetchone()[0] - before[0] == (1 if written else 2)
    db.close()


def test_a_statement_does_not_wait_for_who_has_its_session(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Any] = []

    def beside(connection: Any, run: Callable[[], Any]) -> Any:
        other = open_target(connection.url.dsn, write=True)
        other.connection.execute("BEGIN IMMEDIATE")
        try:
            cursor = run()
        finally:
            other.connection.execute("COMMIT")
            other.close()
        row = cursor.fetchone()
        refused.append(row[0])
        return ServerCursor([row])

    db, _, message_id = _saved_at_once(postgres, monkeypatch, beside)
    assert refused == [None]
    assert stored(db, message_id)["parts"][1]["text"] == "kept"
    db.close()


def test_a_session_has_one_recorder_on_all_machines(postgres: Server) -> None:
    db = open_target(new_server_store(postgres), write=True)
    recording, _ = record(db, [START])
    other = opened_again(db)
    with pytest.raises(Refused, match="another connection"):
        record(other, [], session=recording.session_id)
    drive(db, recording.close())
    record(other, [], session=recording.session_id)
    other.close()
    record(db, [], session=recording.session_id)
    db.close()


def test_a_direct_recorder_survives_a_server_that_drops_it(postgres: Server) -> None:
    db = open_target(new_server_store(postgres), write=True)
    recording = Recording(policy=SavePolicy(save_buffer_ms=0))
    session_id = drive(db, recording.start())
    told: list[str] = []
    recorder = DirectRecorder(db, recording, lambda line, reason: told.append(reason))
    chunks = [START, STEP, *text("kept"), usage(input=4), STEP_END, FINISH]
    for number, chunk in enumerate(chunks, 1):
        recorder.take([(chunk, 20, number)])
        other = opened_again(db)
        other.connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()").fetchall()
        other.close()
    recorder.close()
    (message_id,) = db.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ?", (session_id,)).fetchone()
    assert stored(db, message_id)["parts"][1]["text"] == "kept"
    assert session_row(db, session_id)["prompt_tokens"] == 4
    db.close()
