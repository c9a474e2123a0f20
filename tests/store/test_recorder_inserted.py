"""The SDK's own streams with odd lines put in anywhere: everything else is kept as it was."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from store.engine.database import Database
from store.recorder.direct import DirectRecorder
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from store.recorder.usage import buckets_of
from store.usage import KEYS
from tests.store.recording import (
    AT_ONCE,
    REFUSED,
    VECTORS,
    messages,
    metadata,
    session_row,
)
from tests.store.talks import Talk

ROUNDS = int(os.environ.get("BACKSCROLL_RECORDER_ROUNDS", "2"))
ODD: list[dict[str, Any]] = [
    {"type": "media-frame", "n": 1}, {"type": "tool-input-progress", "toolCallId": "zz"},
    {"type": "text-delta", "id": "nowhere", "delta": 3}, {"type": "text-end", "id": "nowhere"},
    {"type": "reasoning-end", "id": "nowhere"}, {"type": "text-delta"},
    {"type": "tool-output-available", "toolCallId": "nowhere", "output": 1},
    {"type": "tool-output-error", "toolCallId": "nowhere", "errorText": "e"},
    {"type": "tool-output-denied", "toolCallId": "nowhere"},
    {"type": "tool-approval-request", "toolCallId": "nowhere", "approvalId": "q"},
    {"type": "tool-approval-response", "approvalId": "nowhere", "approved": True},
    {"type": "tool-input-delta", "toolCallId": "nowhere", "inputTextDelta": "x"},
    {"type": "tool-input-available", "toolName": "sh", "input": {}},
    {"type": "start", "messageId": {"a": 1}}, {"type": "text-start", "id": [1]},
    {"type": ""},
]
"""Chunks that the SDK's reader refuses or ignores wherever they come."""
LINES: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"type": "text", "text": "typed"}]},
    {"queue": {"role": "user", "parts": [{"type": "text", "text": "typed"}]}},
    {"cancel": None}, {"fire": "no such message"}, {"cancel": 3},
]


def recorded(db: Database, vector: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    """Record lines as ``backscroll record`` does; return the session's id."""
    recording = Recording(policy=AT_ONCE)
    session_id = drive(db, recording.start(agent="case"))
    if initial := vector.get("initial"):
        drive(db, recording.add_message(initial))
    recorder = DirectRecorder(db, recording, lambda line, reason: None)
    stream = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    recorder.take(recorder._reader.feed(stream) + recorder._reader.end())
    recorder.close()
    return session_id


def without_odd(message: dict[str, Any]) -> dict[str, Any]:
    names = ("refused-chunk", "unknown-chunk")
    return message | {"parts": [
        part for part in message["parts"]
        if part["type"] != "data-event" or part["data"].get("name") not in names
    ]}  # fmt: skip


def answers(db: Database, session_id: str) -> list[dict[str, Any]]:
    """Return the answers as the SDK has them, without odd chunks and what only holds such."""
    found = [without_odd(each) for each in messages(db, session_id)]
    return [each for each in found if each["role"] == "assistant" and each["parts"]]


def mixed(
    chunks: list[dict[str, Any]], more: list[dict[str, Any]], random_: random.Random
) -> list[dict[str, Any]]:
    found = list(chunks)
    for _ in range(random_.randint(1, 6)):
        found.insert(random_.randint(0, len(found)), random_.choice(more))
    return found


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", sorted(VECTORS.keys() - {REFUSED}))
@pytest.mark.one_in(3)
def test_odd_chunks_anywhere_leave_the_answer_as_it_was(
    name: str, seed: int, own_talk: Talk
) -> None:
    vector = VECTORS[name]
    lines = mixed(vector["chunks"], ODD, random.Random(f"{name} {seed}"))
    session_id = recorded(own_talk.db, vector, lines)
    final = vector["final"]
    assert answers(own_talk.db, session_id) == ([final] if final["parts"] else []), lines
    kept = [
        chunk for message in messages(own_talk.db, session_id) for part in message["parts"]
        if part["type"] == "data-event" for chunk in part["data"].get("chunks", ())
    ]  # fmt: skip
    assert len(kept) == len(lines) - len(vector["chunks"])
    plain = recorded(own_talk.db, vector, vector["chunks"])
    usage = [session_row(own_talk.db, each)["total_tokens"] for each in (session_id, plain)]
    assert usage[0] == usage[1]


ONE_ANSWER = sorted(VECTORS.keys() - {REFUSED, "merge-two-models"})
"""With a message that waits, a second ``start`` after ``finish`` is the next answer's."""


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", ONE_ANSWER)
@pytest.mark.one_in(3)
def test_lines_of_people_anywhere_wait_beside_the_answer(
    name: str, seed: int, own_talk: Talk
) -> None:
    vector = VECTORS[name]
    # What goes on with an earlier answer does not once somebody has said more.
    begun = 1 if "initial" in vector else 0
    lines = vector["chunks"][:begun] + mixed(
        vector["chunks"][begun:], LINES, random.Random(f"{seed} {name}"))
    session_id = recorded(own_talk.db, vector, lines)
    final = vector["final"]
    assert answers(own_talk.db, session_id) == ([final] if final["parts"] else []), lines
    typed = [line for line in lines if "role" in line or "queue" in line]
    (stored,) = own_talk.db.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE session_id = ? AND role = 'user'", (session_id,)
    ).fetchone()
    assert stored == len(typed), lines


def test_data_before_the_start_belongs_to_the_answer_also_where_a_message_waits(
    own_talk: Talk,
) -> None:
    plan = {"type": "data-plan", "id": "p", "data": {"steps": 2}}
    words = [{"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "a"}]
    start, finish = {"type": "start", "messageId": "m"}, {"type": "finish"}
    session_id = recorded(own_talk.db, {}, [plan, LINES[0], start, *words, finish])
    (answer,) = answers(own_talk.db, session_id)
    assert answer["id"] == "m"
    assert [part["type"] for part in answer["parts"]] == ["data-plan", "text"]


def test_a_stray_chunk_before_the_start_leaves_the_stored_answer_findable(
    own_talk: Talk,
) -> None:
    vector = VECTORS["tool-approval-approved-continuation"]
    for stray in ODD:
        session_id = recorded(own_talk.db, vector, [stray, *vector["chunks"]])
        assert answers(own_talk.db, session_id) == [vector["final"]], stray


@pytest.mark.parametrize("name", sorted(VECTORS.keys() - {REFUSED}))
@pytest.mark.one_in(3)
def test_an_abort_at_any_place_settles_what_came_so_far(name: str, own_talk: Talk) -> None:
    vector = VECTORS[name]
    next_one = [{"type": "start", "messageId": "next"}, {"type": "text-start", "id": "n"},
                {"type": "text-delta", "id": "n", "delta": "goes on"}, {"type": "finish"}]
    for place in range(1, len(vector["chunks"]) + 1):
        chunks = vector["chunks"][:place]
        session_id = recorded(own_talk.db, vector, [*chunks, {"type": "abort"}])
        so_far = vector["snapshots"][place - 1]
        found = answers(own_talk.db, session_id)
        if so_far["parts"]:
            (only,) = found
            assert only["parts"] == so_far["parts"], chunks
        open_parts = own_talk.db.connection.execute(
            "SELECT data_json FROM chat_parts WHERE session_id = ? AND (tool_state IN"
            " ('input-streaming', 'input-available', 'approval-requested', 'approval-responded')"
            f" OR {own_talk.db.sql.fact('data_json', 'state')} = 'streaming')",
            (session_id,)).fetchall()
        assert open_parts == [], chunks
        assert session_row(own_talk.db, session_id)["metadata"]["activity"]["state"] != "running"
        both = recorded(own_talk.db, vector, [*chunks, {"type": "abort"}, *next_one])
        assert answers(own_talk.db, both)[-1]["parts"][-1]["text"] == "goes on", chunks


@pytest.mark.parametrize("seed", range(8 * ROUNDS))
def test_the_usage_of_a_message_is_the_sum_of_its_steps(seed: int, own_talk: Talk) -> None:
    random_ = random.Random(seed)
    lines: list[dict[str, Any]] = [{"type": "start", "messageId": "m"}]
    total = dict.fromkeys(KEYS, 0)
    for step in range(random_.randint(1, 4)):
        usage = {key: random_.randint(0, 9) for key in random_.sample(KEYS, 3)}
        total = {key: total[key] + usage.get(key, 0) for key in KEYS}
        reported = {"type": "message-metadata", "messageMetadata": {"usage": usage}}
        lines += [{"type": "start-step"}, {"type": "text-start", "id": f"t{step}"},
                  {"type": "text-delta", "id": f"t{step}", "delta": "words"},
                  {"type": "text-end", "id": f"t{step}"}]
        ended: dict[str, Any] = {"type": "finish-step"}
        lines += [ended, reported] if random_.random() < 0.5 else [reported, ended]
    wrong = {"usage": {"input": 1000, "output": 1000}}
    lines.append({"type": "finish", "messageMetadata": wrong})
    at = len(lines)
    lines = [lines[0], *mixed(lines[1:], ODD, random_)]
    assert len(lines) > at
    session_id = recorded(own_talk.db, {}, lines)
    (message_id,) = own_talk.db.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ?", (session_id,)).fetchone()
    assert metadata(own_talk.db, message_id)["usage"] == total, lines
    (answer,) = answers(own_talk.db, session_id)
    # The SDK merges what comes, so that its own value ends as the last one said.
    assert buckets_of(answer["metadata"]["usage"]) != total
    assert answer["metadata"]["usage"]["input"] == 1000
