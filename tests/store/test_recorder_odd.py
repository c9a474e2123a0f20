"""A recording keeps whatever comes: odd chunks, late outputs, queued messages, aborts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction
from store.errors import NotFound, Refused
from store.queries import sessions
from store.recorder.direct import DirectRecorder
from store.recorder.models import model_of
from store.recorder.procedures import drive
from store.recorder.recording import Recording, user_message
from store.recorder.reducer import INTERRUPTED
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from tests.store.recording import AT_ONCE, feed, messages, metadata, record, session_row, stored
from tests.store.talks import Talk

STREAMS = Path(__file__).parents[1] / "data" / "recorder-streams"
START, FINISH = {"type": "start", "messageId": "m1"}, {"type": "finish", "finishReason": "stop"}
CALL = {"toolCallId": "c", "toolName": "sh"}


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": said},
            {"type": "text-end", "id": "t"}]


def recorded(db: Database, stream: bytes) -> tuple[str, list[tuple[int, str]]]:
    """Record bytes as ``backscroll record`` does; return the session and what was told."""
    told: list[tuple[int, str]] = []
    recording = Recording(policy=AT_ONCE, problem=lambda reason: told.append((0, reason)))
    session_id = drive(db, recording.start(agent="case"))
    recorder = DirectRecorder(db, recording, lambda line, reason: told.append((line, reason)))
    recorder.take(recorder._reader.feed(stream) + recorder._reader.end())
    recorder.close()
    return session_id, told


def case(db: Database, name: str) -> tuple[str, list[tuple[int, str]]]:
    return recorded(db, (STREAMS / f"{name}.jsonl").read_bytes())


def words(message: dict[str, Any]) -> str:
    return "".join(str(part["text"]) for part in message["parts"] if part["type"] == "text")


def odd(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [part["data"] for part in message["parts"] if part["type"] == "data-event"]


def rows(talk: Talk, session_id: str) -> list[tuple[str, dict[str, Any]]]:
    found = talk.db.connection.execute(
        "SELECT role, metadata_json FROM chat_messages WHERE session_id = ?"
        " ORDER BY created_at, id", (session_id,))
    return [(row[0], json.loads(row[1])) for row in found]


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


# -- odd chunks


def test_a_stray_output_is_kept_and_the_rest_recorded(own_talk: Talk) -> None:
    session_id, told = case(own_talk.db, "stray_chunk")
    (message,) = messages(own_talk.db, session_id)
    assert words(message) == "one two"
    assert odd(message) == [{
        "name": "refused-chunk",
        "reason": 'No tool invocation found for tool call ID "other".',
        "chunks": [{"type": "tool-output-available", "toolCallId": "other", "output": 1}]}]
    assert [reason for _, reason in told] == [odd(message)[0]["reason"]]
    row = session_row(own_talk.db, session_id)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (5, 5)
    assert row["metadata"]["activity"]["state"] == "idle"


def test_chunks_of_the_future_are_kept_as_data_parts(own_talk: Talk) -> None:
    session_id, _ = case(own_talk.db, "future_chunk")
    (message,) = messages(own_talk.db, session_id)
    assert words(message) == "one two"
    assert [held["chunks"][0]["type"] for held in odd(message)] == [
        "tool-input-progress", "media-frame"]
    assert session_row(own_talk.db, session_id)["total_tokens"] == 10


def test_an_odd_first_line_is_named_and_kept_with_the_message(own_talk: Talk) -> None:
    session_id, told = case(own_talk.db, "rec-first")
    (message,) = messages(own_talk.db, session_id)
    assert message["id"] == "m1"
    assert words(message) == "kept?"
    assert [held["chunks"] for held in odd(message)] == [
        [{"type": "start", "messageId": {"a": 1}}]]
    assert len(told) == 1


def test_odd_chunks_without_a_message_become_one(own_talk: Talk) -> None:
    session_id, _ = recorded(own_talk.db, lines({"type": "hello"}, {"type": "world", "n": 1}))
    (message,) = messages(own_talk.db, session_id)
    assert [held["chunks"] for held in odd(message)] == [
        [{"type": "hello"}], [{"type": "world", "n": 1}]]


def test_odd_chunks_of_one_kind_share_a_part(own_talk: Talk) -> None:
    stray = {"type": "tool-input-delta", "toolCallId": "none", "inputTextDelta": "x"}
    problems: list[str] = []
    _, message_id = record(own_talk.db, [START, *[stray] * 100, *text("a"), stray],
                           problem=problems.append)
    assert [len(held["chunks"]) for held in odd(stored(own_talk.db, message_id))] == [64, 36, 1]
    assert len(problems) == 1


def test_transient_chunks_of_the_future_are_not_stored(own_talk: Talk) -> None:
    _, message_id = record(own_talk.db, [START, {"type": "new", "transient": True}])
    assert stored(own_talk.db, message_id)["parts"] == []


# -- late outputs


@pytest.mark.parametrize("chunk", [
    {"type": "tool-output-available", "toolCallId": "c", "output": 7},
    {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"},
])
def test_a_late_output_finds_its_call_in_an_earlier_message(
    chunk: dict[str, Any], own_talk: Talk
) -> None:
    call = {"type": "tool-input-available", **CALL, "input": {}}
    recording, first = record(own_talk.db, [START, call, FINISH])
    drive(own_talk.db, recording.add_message(user_message("go on")))
    second = feed(own_talk.db, recording, [
        {"type": "start", "messageId": "m2"}, *text("one "), chunk, *text("two"), FINISH])
    drive(own_talk.db, recording.close())
    (part,) = stored(own_talk.db, first)["parts"]
    assert part["state"] == chunk["type"].removeprefix("tool-")
    assert (part.get("output"), part.get("errorText")) == (
        chunk.get("output"), chunk.get("errorText"))
    assert words(stored(own_talk.db, second)) == "one two"
    assert not odd(stored(own_talk.db, second))


def test_a_late_output_leaves_what_waits_of_the_answer(own_talk: Talk) -> None:
    recording = Recording()
    drive(own_talk.db, recording.start())
    feed(own_talk.db, recording, [
        START, {"type": "tool-input-available", **CALL, "input": {}}, FINISH])
    drive(own_talk.db, recording.end_turn())
    feed(own_talk.db, recording, [{"type": "start", "messageId": "m2"},
                                  {"type": "text-start", "id": "t"}])
    feed(own_talk.db, recording, [{"type": "text-delta", "id": "t", "delta": "a" * 300}])
    waiting = recording.waiting
    feed(own_talk.db, recording, [
        {"type": "tool-output-available", "toolCallId": "c", "output": 1}])
    assert recording.waiting == waiting > 0


# -- queued messages


def test_a_message_that_is_queued_waits_behind_the_answer(own_talk: Talk) -> None:
    session_id, _ = case(own_talk.db, "queued_send")
    (answer, _), (queued, kept) = zip(
        messages(own_talk.db, session_id), rows(own_talk, session_id), strict=True)
    assert words(answer) == "one two"
    assert words(queued) == "queued"
    assert kept == ("user", {"queued_at": 1795858903076})
    row = sessions.get(own_talk.db, session_id)
    assert row is not None and row.title is None
    assert session_row(own_talk.db, session_id)["total_tokens"] == 10


def test_a_user_line_during_an_answer_is_fired_with_the_next_answer(own_talk: Talk) -> None:
    said = {"role": "user", "parts": [{"type": "text", "text": "and also"}]}
    first = [START, {"type": "text-start", "id": "t"},
             {"type": "text-delta", "id": "t", "delta": "one "}]
    rest = [{"type": "text-delta", "id": "t", "delta": "two"}, FINISH]
    session_id, _ = recorded(own_talk.db, lines(*first, said, *rest))
    assert [words(each) for each in messages(own_talk.db, session_id)] == ["one two", "and also"]
    assert "queued_at" in rows(own_talk, session_id)[1][1]
    session_id, _ = recorded(own_talk.db, lines(
        *first, said, *rest, {"type": "start", "messageId": "m2"}, *text("yes"), FINISH))
    assert [words(each) for each in messages(own_talk.db, session_id)] == [
        "one two", "and also", "yes"]
    fired = rows(own_talk, session_id)[1][1]
    assert "queued_at" not in fired and "queue_enqueued_at" in fired


@pytest.mark.parametrize("name", [None, "u1"])
def test_lines_queue_fire_and_cancel(name: str | None, own_talk: Talk) -> None:
    session_id, told = recorded(own_talk.db, lines(
        {"queue": {"id": "u1", "parts": [{"type": "text", "text": "first"}]}},
        {"queue": "second"}, {"fire": name}, START, *text("answer"), FINISH, {"cancel": None},
        {"fire": None}, {"cancel": 5}, {"queue": 5}, {"fire": "u1"}))
    found = messages(own_talk.db, session_id)
    assert [words(each) for each in found] == ["second", "first", "answer"]
    cancelled = rows(own_talk, session_id)[0][1]
    assert cancelled["hidden_at"] == cancelled["queue_canceled_at"]
    assert "queued_at" not in cancelled
    assert [line for line, _ in told] == [10, 11, 12, 13]
    assert "no queued message" in told[0][1] and "not queued" in told[3][1]


def test_a_queue_in_every_form_of_store(talk: Talk) -> None:
    recording = Recording()
    session_id = drive(talk.db, recording.start())
    queued = drive(talk.db, recording.queue(user_message("later")))
    shown = f"SELECT {talk.db.form.shown('m')} FROM chat_messages m WHERE id = ?"
    assert talk.db.connection.execute(shown, (queued,)).fetchone()[0] == 0
    assert drive(talk.db, recording.fire()) == queued
    assert talk.db.connection.execute(shown, (queued,)).fetchone()[0] == 1
    with pytest.raises(Refused, match="not queued"):
        drive(talk.db, recording.fire(queued))
    with pytest.raises(NotFound):
        drive(talk.db, recording.cancel("msg_none"))
    other = drive(talk.db, recording.queue(user_message("never")))
    drive(talk.db, recording.cancel(other))
    assert talk.db.connection.execute(shown, (other,)).fetchone()[0] == 0
    assert len(messages(talk.db, session_id)) == 2


# -- aborts


def test_an_abort_settles_what_is_open(own_talk: Talk) -> None:
    session_id, _ = case(own_talk.db, "abort_tool")
    (message,) = messages(own_talk.db, session_id)
    data = [json.loads(row[0]) for row in own_talk.db.connection.execute(
        'SELECT data_json FROM chat_parts WHERE session_id = ? ORDER BY "index"', (session_id,))]
    assert data[2] == {
        "type": "tool-bash", "toolCallId": "c", "state": "output-error", "rawInput": "{",
        "input": {}, "errorText": INTERRUPTED,
        "resultProviderMetadata": {"backscroll": {"status": "interrupted"}}}
    assert message["parts"][2]["state"] == "input-streaming", "as the SDK has it"
    assert session_row(own_talk.db, session_id)["metadata"]["activity"]["state"] == "interrupted"


def test_fork_and_rewind_work_straight_after_an_abort(own_talk: Talk) -> None:
    said = {"role": "user", "parts": [{"type": "text", "text": "go"}]}
    chunks = (STREAMS / "abort_tool.jsonl").read_bytes()
    session_id, _ = recorded(own_talk.db, lines(said) + chunks)
    first = own_talk.db.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? AND role = 'user'", (session_id,)
    ).fetchone()[0]
    row = sessions.get(own_talk.db, session_id)
    assert row is not None
    now = row.updated_at
    in_transaction(own_talk.db, lambda db: fork(
        db, session_id, first, ids=own_talk.ids, now=now))
    hidden = in_transaction(own_talk.db, lambda db: rewind(db, session_id, first, now=now))
    assert hidden.messages == 1


def test_the_host_may_abort(own_talk: Talk) -> None:
    recording, message_id = record(own_talk.db, [START, {"type": "text-start", "id": "t"}])
    feed(own_talk.db, recording, [{"type": "abort", "reason": "user stop"}])
    own = metadata(own_talk.db, message_id)["backscroll"]
    assert own["abort_reason"] == "user stop"
    assert own["settled"] == {"0": {"state": "streaming"}}


# -- models and usage


@pytest.mark.parametrize(("given", "model"), [
    ({"model": {"provider_id": "p", "model_id": "m"}}, ("p", "m")),
    ({"model": {"providerID": "p", "modelID": "m"}}, ("p", "m")),
    ({"model": {"provider": "p", "modelId": "m"}}, ("p", "m")),
    ({"model": {"id": "m"}}, ("unknown", "m")),
    ({"model": "p/m"}, ("p", "m")), ({"model": "p:m"}, ("p", "m")),
    ({"model": "m", "provider": "p"}, ("p", "m")), ({"modelId": "m"}, ("unknown", "m")),
    ({"model_id": "m", "provider_id": "p"}, ("p", "m")),
])
def test_the_model_in_every_shape(
    given: dict[str, Any], model: tuple[str, str], own_talk: Talk
) -> None:
    expected = {"provider_id": model[0], "model_id": model[1]}
    recording, _ = record(own_talk.db, [START | {"messageMetadata": given}, FINISH])
    drive(own_talk.db, recording.close())
    row = session_row(own_talk.db, recording.session_id)
    assert json.loads(row["model_json"]) == expected
    asked = Recording()
    session_id = drive(own_talk.db, asked.start())
    drive(own_talk.db, asked.add_message(user_message("x", given)))
    assert json.loads(session_row(own_talk.db, session_id)["model_json"]) == expected


@pytest.mark.parametrize("given", [
    None, 3, {"model": 3}, {"model": ""}, {"model": {}}, {"model": {"provider": "p"}},
    {"model": "x" * 500}, {"name": "m"}, {"id": "m"},
])
def test_what_names_no_model(given: object) -> None:
    assert model_of(given) is None


def test_a_whole_answer_counts_its_usage(own_talk: Talk) -> None:
    recording = Recording()
    session_id = drive(own_talk.db, recording.start())
    drive(own_talk.db, recording.add_message({
        "role": "assistant", "parts": [], "metadata": {"usage": {"inputTokens": 4}}}))
    assert session_row(own_talk.db, session_id)["prompt_tokens"] == 4
    ((_, kept),) = rows(own_talk, session_id)
    assert kept["usage"]["input"] == 4
    assert messages(own_talk.db, session_id)[0]["metadata"] == {"usage": {"inputTokens": 4}}


# -- whatever comes


KINDS = [
    "start", "start-step", "finish-step", "message-metadata", "finish", "error", "abort",
    "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta",
    "reasoning-end", "tool-input-start", "tool-input-delta", "tool-input-available",
    "tool-input-error", "tool-approval-request", "tool-approval-response",
    "tool-output-available", "tool-output-error", "tool-output-denied", "file", "source-url",
    "source-document", "custom", "steering-message", "reasoning-file", "reset-step", "data-x",
    "data-", "", "🙂",
]
KEYS = ["id", "delta", "toolCallId", "toolName", "inputTextDelta", "input", "output", "errorText",
        "approvalId", "approved", "messageMetadata", "messageId", "providerMetadata", "data",
        "url", "mediaType", "parts", "dynamic", "preliminary", "transient", "inputEncoding"]
VALUES: list[Any] = [
    None, True, 0, -1, 10**25, 1.5, "", "c", "t", "\ud83d", "\x00\x1b]52;c;x\x07", [], [1], {},
    {"a": 1}, {"usage": {"input": 10**20, "output": "x"}}, {"usage": []}, {"model": [1]},
    {"backscroll": 1}, {"backscroll": {"usage": 3, "settled": {"0": 3}}}, {"__proto__": {"a": 1}},
]


def any_line(random_: random.Random) -> dict[str, Any]:
    if random_.random() < 0.1:
        return random_.choice([
            {"role": random_.choice(["user", "assistant", "x"]),
             "parts": random_.choice([[], [{"type": "text", "text": 3}], [{"type": "tool-"}]]),
             "metadata": random_.choice(VALUES)},
            {"queue": random_.choice(VALUES)}, {"fire": random_.choice(VALUES)},
            {"cancel": random_.choice(VALUES)}])
    keys = random_.sample(KEYS, random_.randrange(8))
    return {"type": random_.choice(KINDS)} | {key: random_.choice(VALUES) for key in keys}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.one_in(2)
def test_no_stream_ends_a_recording(seed: int, own_talk: Talk) -> None:
    random_ = random.Random(seed)
    session_id, _ = recorded(own_talk.db, lines(
        *(any_line(random_) for _ in range(60)), {"type": "text-start", "id": "end"},
        {"type": "text-delta", "id": "end", "delta": "the end is kept"}))
    assert words(messages(own_talk.db, session_id)[-1]).endswith("the end is kept") or any(
        "the end is kept" in words(each) for each in messages(own_talk.db, session_id))
    for (data,) in own_talk.db.connection.execute("SELECT data_json FROM chat_parts"):
        json.loads(data)


def test_odd_chunks_go_on_in_their_part_after_a_crash(talk: Talk) -> None:
    news = {"type": "of-the-future", "id": "1"}
    first, message_id = record(talk.db, [START, news])
    drive(talk.db, first.save())
    second = Recording()
    drive(talk.db, second.start(first.session_id))
    feed(talk.db, second, [START, news])
    drive(talk.db, second.close())
    (held,) = odd(stored(talk.db, message_id))
    assert held["chunks"] == [news, news]
