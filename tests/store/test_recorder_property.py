"""Random streams: every policy, every cut, and a new process in the middle end alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.recorder.part_list import ProtocolError
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from store.recorder.reducer import UNKNOWN, MessageState
from tests.store.engines import Fresh
from tests.store.recording import feed, messages, new_state, plain

IDS, CALLS = st.sampled_from(["1", "2"]), st.sampled_from(["c1", "c2"])
WORDS = st.sampled_from(["a", " word", "漢", "😀", "\ud83d", "\ude00", "\x00", ""])
VALUES = st.sampled_from([None, 1, "x", {"a": [1, {"b": None}]}])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": IDS, "delta": WORDS, "toolCallId": CALLS, "toolName": st.sampled_from(["sh", "ask"]),
    "inputTextDelta": st.sampled_from(['{"a":', '"b', '"', "}", "[1", ",", " "]),
    "errorText": st.just("bad"), "approvalId": st.just("ap"), "approved": st.booleans(),
    "url": st.just("u"), "mediaType": st.just("m/t"), "sourceId": st.just("s"),
}
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "input": VALUES, "output": VALUES, "data": VALUES, "dynamic": st.booleans(),
    "preliminary": st.booleans(), "title": st.just("T"), "transient": st.just(True),
    "providerMetadata": st.sampled_from([{"p": {"k": 1}}, {"p": {"k": 2}}]),
    "messageMetadata": st.sampled_from([{"usage": {"input": 2}}, {"tags": ["a"]}]),
    "finishReason": st.just("stop"), "inputEncoding": st.just("text"),
}
KINDS = {
    "start": ("", "messageMetadata"), "start-step": ("", ""), "finish-step": ("", ""),
    "reset-step": ("", ""), "message-metadata": ("", "messageMetadata"),
    "finish": ("", "finishReason messageMetadata"), "error": ("errorText", ""),
    "text-start": ("id", "providerMetadata"), "text-delta": ("id delta", "providerMetadata"),
    "text-end": ("id", "providerMetadata"), "reasoning-start": ("id", ""),
    "reasoning-delta": ("id delta", ""), "reasoning-end": ("id", "providerMetadata"),
    "tool-input-start": ("toolCallId toolName", "dynamic title inputEncoding"),
    "tool-input-delta": ("toolCallId inputTextDelta", ""),
    "tool-input-available": ("toolCallId toolName", "input dynamic"),
    "tool-input-error": ("toolCallId toolName errorText", "input"),
    "tool-approval-request": ("toolCallId approvalId", ""),
    "tool-approval-response": ("approvalId approved", ""),
    "tool-output-available": ("toolCallId", "output preliminary providerMetadata"),
    "tool-output-error": ("toolCallId errorText", ""), "tool-output-denied": ("toolCallId", ""),
    "file": ("mediaType url", ""), "source-url": ("sourceId url", "title"),
    "data-x": ("", "id data transient"), "from-the-future": ("id", ""),
}


@st.composite
def a_chunk(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    needed, may = KINDS[kind]
    chunk = {"type": kind} | {name: draw(FIELDS[name]) for name in needed.split()}
    for name in may.split():
        if draw(st.booleans()):
            chunk[name] = draw((FIELDS | OPTIONAL)[name])
    return chunk


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A stream that the SDK takes from end to end."""
    state, taken = new_state(), [{"type": "start", "messageId": "m1"}]
    for chunk in draw(st.lists(a_chunk(), max_size=40)):
        try:
            state.apply(chunk)
        except ProtocolError:
            continue
        taken.append(chunk)
    return taken


def take(state: MessageState, chunk: dict[str, Any]) -> None:
    """Apply a chunk, keeping one that the SDK ignores."""
    if not state.apply(chunk):
        state.keep_odd(chunk, UNKNOWN, f"chunk of unknown type {chunk['type']}")


def expected(chunks: list[dict[str, Any]]) -> Any:
    state = new_state()
    for chunk in chunks:
        take(state, chunk)
    return plain(state.message())


PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@PROPERTY
@given(chunks=streams(), save_on=st.sampled_from(["chunk", "step", "turn"]),
       milliseconds=st.sampled_from([0, 16]), size=st.sampled_from([1, 65_536]))
def test_every_policy_ends_alike(
    fresh: Fresh, chunks: list[dict[str, Any]], save_on: Any, milliseconds: int, size: int
) -> None:
    with fresh() as db:
        recording = Recording(policy=SavePolicy(save_on, size, milliseconds))
        drive(db, recording.start())
        feed(db, recording, chunks)
        drive(db, recording.close())
        assert messages(db, recording.session_id) == [expected(chunks)]


@PROPERTY
@given(chunks=streams())
def test_the_store_follows_every_chunk(fresh: Fresh, chunks: list[dict[str, Any]]) -> None:
    with fresh() as db:
        recording = Recording(policy=SavePolicy(save_buffer_ms=0))
        drive(db, recording.start())
        state = new_state()
        for chunk in chunks:
            take(state, chunk)
            feed(db, recording, [chunk])
            assert messages(db, recording.session_id) == [plain(state.message())]


@pytest.mark.long
@PROPERTY
@given(chunks=streams(), data=st.data())
def test_another_process_goes_on_at_a_step(
    fresh: Fresh, chunks: list[dict[str, Any]], data: Any
) -> None:
    """Blocks end with the process, as they end with a step; everything else goes on."""
    whole = [*chunks, {"type": "finish-step"}]
    cuts = [n + 1 for n, chunk in enumerate(whole) if chunk["type"] == "finish-step"]
    cut = data.draw(st.sampled_from(cuts))
    with fresh() as db:
        first = Recording()
        session = drive(db, first.start())
        feed(db, first, whole[:cut])
        drive(db, first.save())  # killed: never closed
        second = Recording()
        drive(db, second.start(session))
        feed(db, second, [{"type": "start", "messageId": "m1"}, *whole[cut:]])
        drive(db, second.close())
        assert messages(db, session) == [expected(whole)]
