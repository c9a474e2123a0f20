"""Chunks beyond the vectors: version 7, reset steps, refusals, halves of characters."""

from __future__ import annotations

from typing import Any

import pytest

from store.recorder.part_list import ProtocolError
from store.recorder.reducer import MessageState
from tests.store.recording import new_state, plain


def apply(state: MessageState, *chunks: dict[str, Any]) -> list[dict[str, Any]]:
    for chunk in chunks:
        state.apply(chunk)
    parts: list[dict[str, Any]] = plain(state.message())["parts"]
    return parts


def text(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"text-{kind}", "id": "t", **more}


STEP = {"type": "start-step"}
START = {"type": "tool-input-start", "toolCallId": "c", "toolName": "x"}


def test_reset_step_takes_the_step_away_and_keeps_indexes_apart() -> None:
    state = new_state()
    apply(state, STEP, text("start"), text("delta", delta="gone"), START)
    assert apply(state, {"type": "reset-step"}) == [{"type": "step-start"}]
    assert len(state.removed) == 2
    with pytest.raises(ProtocolError):
        state.apply(text("delta", delta="x"))
    apply(state, text("start"), text("end"), STEP)
    assert [part.index for part in state.parts] == [0, 3, 4]


def test_version_7_blocks_outlive_their_step() -> None:
    chunks = [STEP, text("start"), {"type": "finish-step"}, text("delta", delta="on")]
    assert apply(new_state(7), *chunks)[1]["text"] == "on"
    with pytest.raises(ProtocolError):
        apply(new_state(6), *chunks)


def test_version_7_chunks() -> None:
    approval = {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "ap",
                "reason": "writes", "isAutomatic": True}
    answer = {"type": "tool-approval-response", "approvalId": "ap", "approved": False,
              "reason": "no", "providerExecuted": True}
    parts = apply(
        new_state(), {"type": "custom", "kind": "p.x"},
        {"type": "reasoning-file", "mediaType": "image/png", "url": "u"},
        {"type": "steering-message", "id": "s", "parts": []}, START, approval, answer,
        text("start"), text("end", citations=[{"a": 1}]),
    )
    assert parts == [
        {"type": "custom", "kind": "p.x"},
        {"type": "reasoning-file", "mediaType": "image/png", "url": "u"},
        {"type": "steering-message", "id": "s", "parts": []},
        {"type": "tool-x", "toolCallId": "c", "state": "approval-responded",
         "approval": {"id": "ap", "requestReason": "writes", "isAutomatic": True,
                      "approved": False, "reason": "no"}, "providerExecuted": True},
        {"type": "text", "text": "", "state": "done", "citations": [{"a": 1}]},
    ]


@pytest.mark.parametrize("sdk", [6, 7])
def test_a_file_keeps_what_the_sdk_keeps_of_it(sdk: int) -> None:
    state = new_state(sdk)
    given = {"type": "file", "mediaType": "image/png", "url": "u", "filename": "f",
             "providerReference": {"a": "b"}, "providerMetadata": None}
    state.apply(given)
    assert state.message()["parts"] == [{"type": "file", "mediaType": "image/png", "url": "u"}]


def test_a_reused_call_id_makes_a_second_part() -> None:
    done = {"type": "tool-output-available", "toolCallId": "c", "output": 1}
    parts = apply(new_state(), STEP, START, done, STEP, START)
    assert [part["state"] for part in parts if part["type"] == "tool-x"] == [
        "output-available", "input-streaming"]


def test_a_tool_may_be_renamed_while_it_streams() -> None:
    given = {"type": "tool-input-available", "toolCallId": "c", "toolName": "y", "input": 1}
    assert apply(new_state(), START, given) == [
        {"type": "tool-y", "toolCallId": "c", "state": "input-available", "input": 1}]


def test_unknown_chunks_change_nothing() -> None:
    state = new_state()
    assert state.apply({"type": "from-the-future", "id": 1}) is False
    assert state.parts == []


@pytest.mark.parametrize("chunk", [
    {"type": "text-start"}, {"type": "tool-input-start", "toolCallId": "c"},
    {"type": "tool-output-denied", "toolCallId": "none"},
    {"type": "tool-input-delta", "toolCallId": "none", "inputTextDelta": "x"},
    {"type": "text-start", "id": ["no", "text"]},
    {"type": "tool-approval-response", "approvalId": "none", "approved": True},
])
def test_refused_chunks_change_nothing(chunk: dict[str, Any]) -> None:
    state = new_state()
    with pytest.raises(ProtocolError):
        state.apply(chunk)
    assert state.message() == {"id": "", "role": "assistant", "parts": []}


def test_a_delta_that_is_no_text_is_refused() -> None:
    state = new_state()
    apply(state, text("start"))
    with pytest.raises(ProtocolError, match="delta"):
        state.apply(text("delta", delta=5))
    with pytest.raises(ProtocolError, match="delta"):
        state.apply(text("delta"))


def test_halves_of_a_character_meet() -> None:
    parts = apply(new_state(), text("start"), text("delta", delta="\ud83d"),
                  text("delta", delta="\ude00!"))
    assert parts[0]["text"] == "😀!"


def test_text_is_not_joined_before_somebody_looks() -> None:
    state = new_state()
    state.apply(text("start"))
    for _ in range(1000):
        state.apply(text("delta", delta="word "))
    assert state.parts[0].shape["text"] == ""
    assert state.message()["parts"][0]["text"] == "word " * 1000
