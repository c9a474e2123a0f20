"""The SDK's own streams: its message after every chunk, in memory and in the store."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from store.engine.database import Database
from store.recorder.part_list import ProtocolError
from store.recorder.parts import Part
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from tests.store.recording import (
    ACTIONS,
    AT_ONCE,
    REFUSED,
    VECTORS,
    feed,
    leave_without_a_word,
    messages,
    metadata,
    new_state,
    plain,
    session_row,
    stored,
)
from tests.store.talks import Talk

POLICIES = [SavePolicy(), AT_ONCE, SavePolicy("step"), SavePolicy("turn"),
            SavePolicy(save_buffer_size=1)]


def test_all_streams_are_here() -> None:
    assert len(VECTORS) == 23
    assert len(ACTIONS) == 7


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", VECTORS)
def test_state_after_every_chunk(name: str, quick: bool) -> None:
    vector = VECTORS[name]
    state = new_state()
    if initial := vector.get("initial"):
        state.sdk_id = initial["id"]
        parts = copy.deepcopy(initial["parts"])
        state.restore([Part(part, i, str(i), 0) for i, part in enumerate(parts)], len(parts))
    refused = vector.get("reducer_error")
    for number, chunk in enumerate(vector["chunks"]):
        if refused and number == refused["chunk"]:
            with pytest.raises(ProtocolError) as error:
                state.apply(chunk)
            assert str(error.value) == refused["message"]
            break
        assert (quick and state.grow(chunk)) or state.apply(chunk)
        assert plain(state.message()) == vector["snapshots"][number]
    assert plain(state.message()) == vector["final"]


def start(db: Database, vector: dict[str, Any], policy: SavePolicy) -> Recording:
    recording = Recording(policy=policy)
    drive(db, recording.start(agent="vector"))
    if initial := vector.get("initial"):
        drive(db, recording.add_message(initial))
    return recording


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.one_in(2)
def test_store_after_every_chunk(name: str, talk: Talk) -> None:
    vector = VECTORS[name]
    recording = start(talk.db, vector, AT_ONCE)
    ends_early = name.startswith("protocol-error")
    assert (len(vector["snapshots"]) < len(vector["chunks"])) == ends_early
    for chunk, snapshot in zip(vector["chunks"], vector["snapshots"], strict=not ends_early):
        message_id = feed(talk.db, recording, [chunk])
        expected = snapshot if snapshot["id"] else snapshot | {"id": message_id}
        assert stored(talk.db, message_id) == expected


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("name", sorted(VECTORS.keys() - {REFUSED}))
def test_store_at_the_end(name: str, policy: SavePolicy, own_talk: Talk) -> None:
    vector = VECTORS[name]
    recording = start(own_talk.db, vector, policy)
    feed(own_talk.db, recording, vector["chunks"])
    drive(own_talk.db, recording.close())
    assert messages(own_talk.db, recording.session_id) == [vector["final"]]


def test_a_continued_message_is_one_row(own_talk: Talk) -> None:
    vector = VECTORS["tool-approval-approved-continuation"]
    recording = start(own_talk.db, vector, AT_ONCE)
    feed(own_talk.db, recording, vector["chunks"])
    count = own_talk.db.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE session_id = ?", (recording.session_id,)
    ).fetchone()[0]
    assert count == 1


def test_usage_is_the_sum_over_steps(own_talk: Talk) -> None:
    vector = VECTORS["metadata-usage-per-step"]
    recording = start(own_talk.db, vector, AT_ONCE)
    message_id = feed(own_talk.db, recording, vector["chunks"])
    row = session_row(own_talk.db, recording.session_id)
    assert [row[key] for key in ("prompt_tokens", "completion_tokens", "reasoning_tokens",
                                 "cache_read", "cache_write", "total_tokens")] == [
        240, 28, 0, 30, 0, 298]
    kept = metadata(own_talk.db, message_id)
    assert kept["usage"] == {
        "input": 240, "output": 28, "reasoning": 0, "cache_read": 30, "cache_write": 0}
    assert kept["backscroll"]["stream_usage"] == {"input": 240, "output": 28, "cache_read": 0}
    assert stored(own_talk.db, message_id)["metadata"] == vector["final"]["metadata"]
    assert row["model_json"] == '{"provider_id":"mock","model_id":"m"}'


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["name"])
def test_what_the_user_answers(action: dict[str, Any], of_any_form: Database) -> None:
    db = of_any_form
    recording = Recording()
    drive(db, recording.start())
    drive(db, recording.add_message(action["before"]))
    drive(db, answer(recording, action["call"]))
    assert messages(db, recording.session_id) == [action["after"]]


def answer(recording: Recording, call: str) -> Any:
    """Translate the SDK's call, as the vectors write it, to ours."""
    if call.startswith("c.addToolApprovalResponse"):
        reason = call.split("reason: '")[1].split("'")[0] if "reason" in call else None
        approval = call.split("id: '")[1].split("'")[0]
        return recording.respond_approval("a1", approval, "approved: true" in call, reason)
    if "errorText" in call:
        error = call.split("errorText: '")[1].split("'")[0]
        return recording.set_tool_output("a1", "c1", error_text=error)
    output = {"ok": 1} if "ok" in call else 2
    return recording.set_tool_output("a1", "c1", output)


@pytest.mark.parametrize("name", sorted(VECTORS.keys() - {REFUSED}))
@pytest.mark.one_in(3)
def test_the_rest_of_a_stream_goes_on_where_the_last_run_was_killed(
    name: str, own_talk: Talk
) -> None:
    vector = VECTORS[name]
    chunks = vector["chunks"]
    for cut in range(1, len(chunks)):
        recording = start(own_talk.db, vector, AT_ONCE)
        feed(own_talk.db, recording, chunks[:cut])
        open_texts = [part for part in vector["snapshots"][cut - 1]["parts"]
                      if part["type"] == "text" and part.get("state") == "streaming"]
        ended = recording.message is None or recording.message.finished
        leave_without_a_word(own_talk.db, recording)
        if ended or len(open_texts) > 1 or chunks[cut]["type"] == "start":
            continue
        problems: list[str] = []
        another = Recording(policy=AT_ONCE, problem=problems.append)
        drive(own_talk.db, another.start(recording.session_id))
        feed(own_talk.db, another, chunks[cut:])
        drive(own_talk.db, another.close())
        found = messages(own_talk.db, recording.session_id)
        assert [message["parts"] for message in found] == [vector["final"]["parts"]], cut
        assert not problems
        row = session_row(own_talk.db, recording.session_id)
        assert row["metadata"]["activity"]["state"] != "running"
