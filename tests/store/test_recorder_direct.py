"""The command's recorder: reads of any size, a store that is locked, what stderr is told."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from store.engine.database import Database
from store.recorder.backoff import AGAIN
from store.recorder.direct import DirectRecorder, insist
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from tests.store.recording import REFUSED, VECTORS, messages

TOOL = {"type": "tool-input-start", "toolCallId": "c", "toolName": "sh"}
Told = list[tuple[int, str]]
Make = Callable[[], tuple[DirectRecorder, Recording, Told]]


@pytest.fixture
def database(db: Database) -> Database:
    return db


@pytest.fixture
def make(database: Database) -> Make:
    def made() -> tuple[DirectRecorder, Recording, Told]:
        told: Told = []
        recording = Recording(problem=lambda reason: told.append((recorder.line, reason)))
        drive(database, recording.start())
        recorder = DirectRecorder(
            database, recording, lambda line, reason: told.append((line, reason)))
        return recorder, recording, told

    return made


def wire(*chunks: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(chunk).encode() + b"\n" for chunk in chunks)


def pump(recorder: DirectRecorder, data: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    recorder.pump(reading)
    os.close(reading)
    recorder.close()


@pytest.mark.parametrize("name", sorted(set(VECTORS) - {"empty-message", REFUSED}))
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.one_in(3)
def test_reads_of_any_size_end_alike(
    name: str, size: int, database: Database, make: Make
) -> None:
    vector = VECTORS[name]
    recorder, recording, _ = make()
    if initial := vector.get("initial"):
        drive(database, recording.add_message(initial))
    chunks = vector["chunks"]
    for first in range(0, len(chunks), size):
        recorder.take(recorder._reader.feed(wire(*chunks[first : first + size])))
    recorder.close()
    final = messages(database, recording.session_id)[-1]
    assert final["parts"] == vector["final"]["parts"]
    assert final.get("metadata") == vector["final"].get("metadata")


def test_a_pipe_is_read_to_its_end(database: Database, make: Make) -> None:
    recorder, recording, told = make()
    pump(recorder, wire(
        {"type": "start"}, {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "a"},
        {"type": "text-delta", "id": "1", "delta": "b", "providerMetadata": {"p": {"k": 1}}},
        TOOL, {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"a":'},
        {"type": "text-delta", "id": "1", "delta": "c"},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "[1"},
    ))
    (message,) = messages(database, recording.session_id)
    assert message["parts"] == [
        {"type": "text", "text": "abc", "state": "streaming", "providerMetadata": {"p": {"k": 1}}},
        {"type": "tool-sh", "toolCallId": "c", "state": "input-streaming", "rawInput": '{"a":[1',
         "input": {"a": [1]}},
    ]
    assert told == []


@pytest.mark.parametrize("wrong", [
    {"type": "text-delta", "id": "2", "delta": "x"}, {"type": "text-delta", "id": "1"},
    {"type": "text-delta", "id": [], "delta": "x"}, {"type": "text-delta", "id": "1", "delta": 1},
    {"type": "tool-input-delta", "toolCallId": "none", "inputTextDelta": "x"},
    {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": None},
])
def test_a_delta_that_fits_nothing_is_named_and_the_rest_is_kept(
    wrong: dict[str, Any], database: Database, make: Make
) -> None:
    recorder, recording, told = make()
    good = {"type": "text-delta", "id": "1", "delta": "good"}
    pump(recorder, wire({"type": "text-start", "id": "1"}, good, TOOL, wrong, good))
    (message,) = messages(database, recording.session_id)
    assert message["parts"][0]["text"] == "goodgood"
    text, call, odd = message["parts"]
    if wrong.get("delta") == "x" and wrong["id"] == "2":
        assert odd == {"type": "text", "text": "x", "state": "streaming"}
    else:
        assert odd["type"] == "data-event"
        assert odd["data"]["name"] == "refused-chunk"
        assert odd["data"]["chunks"] == [wrong]
    assert [line for line, _ in told] == [4]


@pytest.mark.file
def test_what_a_locked_store_refuses_is_written_later(database: Database, make: Make) -> None:
    recorder, recording, told = make()
    database.connection.execute("PRAGMA busy_timeout = 0")
    recorder.take(recorder._reader.feed(wire({"type": "text-start", "id": "1"})))
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    grown = wire({"type": "text-delta", "id": "1", "delta": "a"}, {"type": "error",
                  "errorText": "boom"})
    recorder.take(recorder._reader.feed(grown))
    assert len(told) == 1
    assert "locked" in told[0][1]
    assert messages(database, recording.session_id)[0]["parts"][0]["text"] == ""
    other.execute("ROLLBACK")
    other.close()
    recorder.close()
    (message,) = messages(database, recording.session_id)
    assert message["parts"][0]["text"] == "a"
    sql = "SELECT metadata_json FROM chat_messages"
    assert json.loads(database.connection.execute(sql).fetchone()[0])["backscroll"] == {
        "error": "boom"}


@pytest.mark.file
def test_a_session_is_made_when_the_store_is_free_again(database: Database) -> None:
    database.connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    told: list[str] = []

    def tell(reason: str) -> None:
        told.append(reason)
        if len(told) == 2:
            other.execute("ROLLBACK")

    recording = Recording()
    session_id = insist(database, lambda: recording.start(agent="a"), tell)
    assert ["locked" in reason for reason in told] == [True, True, False]
    assert told.pop() == AGAIN
    sql = "SELECT id, agent FROM chat_sessions"
    assert database.connection.execute(sql).fetchall() == [(session_id, "a")]
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError):
        insist(database, lambda: Recording().start(), told.append)
    other.close()


def test_an_error_of_the_store_is_raised_and_nothing_counts_as_written(
    database: Database, make: Make
) -> None:
    recorder, recording, _ = make()
    recorder.take(recorder._reader.feed(wire({"type": "text-start", "id": "1"})))
    database.connection.execute("ALTER TABLE chat_parts RENAME TO away")
    ending = wire({"type": "text-delta", "id": "1", "delta": "a"}, {"type": "text-end", "id": "1"})
    with pytest.raises(sqlite3.OperationalError):
        recorder.take(recorder._reader.feed(ending))
    database.connection.execute("ALTER TABLE away RENAME TO chat_parts")
    recorder.close()
    (message,) = messages(database, recording.session_id)
    assert message["parts"] == [{"type": "text", "text": "a", "state": "done"}]
