"""The parts of a recording, each alone."""

from __future__ import annotations

from store.ids import IdMinter
from store.recorder.message import Messages
from store.recorder.odd_chunks import OddChunks
from store.recorder.queue import fire
from store.recorder.session_state import SessionState
from tests.store.talks import Talk


def test_a_session_is_written_once_and_again_after_a_failure() -> None:
    session = SessionState(lambda: 5)
    assert session.take_write() is None
    session.set_activity("running")
    session.take_model({"model": {"provider_id": "p", "model_id": "m"}})
    first = session.take_write()
    assert first is not None and first.activity_json and '"running"' in first.activity_json
    assert first.model_json == '{"provider_id":"p","model_id":"m"}'
    assert session.take_write() is None
    session.put_back(first)
    assert session.take_write() == first


def test_an_odd_chunk_is_reported_once_for_a_run_and_held_for_a_message() -> None:
    refused: list[str] = []
    unknown: list[str] = []
    odd = OddChunks(refused.append, unknown.append)
    for chunk in ({"type": "text-end", "id": "1"}, {"type": "text-end", "id": "1"},
                  {"type": "of-tomorrow"}, {"type": "of-tomorrow", "transient": True}):
        odd.hold(chunk)
    assert (len(refused), unknown) == (1, ["of-tomorrow"])
    message = Messages(IdMinter(lambda: 1), lambda: 1, 6).new(None)
    odd.give_held(message)
    assert not odd.are_held
    assert [len(part.data["data"]["chunks"]) for part in message.state.parts] == [2, 1]


def test_messages_have_rising_times_and_the_ids_that_were_reserved() -> None:
    messages = Messages(IdMinter(lambda: 1), lambda: 1, 6)
    name = messages.reserve_id()
    one, two = messages.new(name), messages.new("other")
    assert one.id == name and two.id != "other"
    assert one.created_at < two.created_at == messages.newest_at


def test_a_fired_message_is_the_last_one_where_the_clock_is_behind(own_talk: Talk) -> None:
    session = own_talk.session()
    queued, newest = (own_talk.message(session, "user", words) for words in ("one", "two"))
    at = fire(own_talk.db, session, queued, at=1)
    found = own_talk.db.connection.execute(
        "SELECT id, created_at FROM chat_messages ORDER BY created_at").fetchall()
    assert [row[0] for row in found] == [newest, queued] and found[-1][1] == at
