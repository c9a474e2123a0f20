"""Damage costs just itself: torn lines, missing files, unknown records, torn compression."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.sources.codex import CodexSource
from tests.sources.codex_lines import DATA, Lines, read, said, shape, thread_id

A, B = thread_id(1), thread_id(2)
SAMPLE = sorted((DATA / "home" / "sessions").rglob("*.jsonl"))[0]


def talk() -> Lines:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    lines.turn("two", "re two", "r2")
    return lines


def test_a_torn_last_line_is_held_back_and_told(tmp_path: Path) -> None:
    path = talk().write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"timestamp":"2026-')
    drafts, problems = read(tmp_path)
    assert len(drafts[A].messages) == 4
    assert [(p.line, p.reason[:20]) for p in problems] == [(14, "unfinished last line")]
    (unit,) = CodexSource().units(tmp_path, [])
    assert CodexSource().read(tmp_path, unit).stamps[0].offset == len(whole)


def test_a_last_line_without_its_newline_is_read(tmp_path: Path) -> None:
    path = talk().write(tmp_path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    drafts, problems = read(tmp_path)
    assert problems == [] and shape(drafts[A])[-1] == ("assistant", "re two")


@pytest.mark.parametrize("junk", [b"{", b"[1]", b"null", b"\0\0\0", b"\xff\xfe", b'"x"'])
def test_a_broken_line_costs_itself(tmp_path: Path, junk: bytes) -> None:
    path = talk().write(tmp_path)
    lines = path.read_bytes().splitlines()
    lines[3:3] = [junk]
    path.write_bytes(b"\n".join(lines) + b"\n")
    drafts, problems = read(tmp_path)
    assert [said(m) for m in drafts[A].messages] == ["one", "re one", "two", "re two"]
    assert [p.line for p in problems] == [4]
    assert len(drafts[A].records) == len(lines)


ODD: list[Any] = [
    {"type": "from_the_future", "payload": {"a": 1}},
    {"type": "response_item", "payload": {"type": "hologram", "id": "h1", "light": [1, 2]}},
    {"type": "event_msg", "payload": {"type": "sang"}},
    {"type": "event_msg", "payload": {"type": 7}},
    {"type": "event_msg", "payload": {"type": "item_completed", "item": [1]}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": "much"}},
    {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": -3}},
    {"type": "event_msg", "payload": {"type": "task_complete", "error": "just words"}},
    {"type": "token_usage_record", "payload": {"usage": [], "response_id": {"x": 1}}},
    {"type": "compacted", "payload": {"message": 5, "replacement_history": 3}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [7, "x"]}},
    {"type": "response_item", "payload": {"type": "message", "role": 3, "content": {"a": 1}}},
    {"type": "response_item", "payload": {"type": "reasoning", "summary": "x", "content": 4}},
    {"type": "response_item", "payload": {"type": "function_call", "arguments": "{torn"}},
    {"type": "response_item", "payload": {"type": "function_call", "arguments": [1], "name": 4}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": {"a": [1]}}},
    {"type": "session_meta", "payload": {"id": 4, "source": [], "git": "x", "history_base": 9}},
    {"type": "turn_context", "payload": {"model": {"x": 1}, "cwd": 9}},
    {"type": "world_state", "payload": {}},
    {"type": "response_item", "payload": []},
    {"type": ["x"], "payload": {"type": "y"}},
    {"timestamp": "yesterday"},
    {},
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: json.dumps(odd)[:60])
def test_odd_records_cost_nothing_else(tmp_path: Path, odd: dict[str, Any]) -> None:
    lines = talk()
    lines.lines.insert(7, {"timestamp": lines.lines[6]["timestamp"], **odd})
    drafts, problems = read(lines.write(tmp_path))
    assert problems == []
    texts = [said(m) for m in drafts[A].messages]
    assert [text for text in texts if text in ("one", "re one", "two", "re two")] == [
        "one", "re one", "two", "re two",
    ]  # fmt: skip


def test_unknown_items_are_shown_by_their_name(tmp_path: Path) -> None:
    lines = talk()
    lines.item("hologram", light=[1, 2])
    drafts, _ = read(lines.write(tmp_path))
    part = drafts[A].messages[-1].parts[-1]
    assert part.type == "data-event" and part.data["data"]["name"] == "hologram"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2**32))
def test_any_bytes_may_be_damaged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(SAMPLE.read_bytes())
    for _ in range(chance.randint(1, 30)):
        at = chance.randrange(len(body))
        if chance.random() < 0.5:
            body[at] = chance.randrange(256)
        else:
            del body[at : at + chance.randint(1, 400)]
    path = tmp_path / SAMPLE.name
    path.write_bytes(bytes(body))
    (unit,) = CodexSource().units(path, [])
    reading = CodexSource().read(path, unit)
    for draft in reading.sessions:
        names = [message.source_id for message in draft.messages]
        assert len(names) == len(set(names))


def test_a_file_that_goes_away_costs_itself(tmp_path: Path) -> None:
    path = talk().write(tmp_path)
    other = Lines(B)
    other.turn("x", "y", "r")
    other.write(tmp_path)
    source = CodexSource()
    units = list(source.units(tmp_path, []))
    path.unlink()
    readings = {unit.key: source.read(tmp_path, unit) for unit in units}
    assert readings[A].sessions == [] and "No such file" in readings[A].problems[0].reason
    assert len(readings[B].sessions) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    talk().write(tmp_path).chmod(0)
    drafts, problems = read(tmp_path)
    assert drafts == {} and "Permission denied" in problems[0].reason


def test_threads_without_a_message_are_none(tmp_path: Path) -> None:
    Lines(A).write(tmp_path)
    empty = Lines(B).write(tmp_path)
    empty.write_text("")
    assert read(tmp_path) == ({}, [])


def packed(path: Path) -> Path:
    target = path.with_name(path.name + ".zst")
    target.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    path.unlink()
    return target


def test_compressed_rollouts_are_read(tmp_path: Path) -> None:
    expected, _ = read(talk().write(tmp_path))
    packed(talk().write(tmp_path))
    drafts, problems = read(tmp_path)
    assert problems == [] and drafts[A].messages == expected[A].messages
    (unit,) = CodexSource().units(tmp_path, [])
    assert CodexSource().read(tmp_path, unit).stamps == unit.stamps


def test_frames_that_follow_each_other_are_read(tmp_path: Path) -> None:
    path = talk().write(tmp_path)
    body, target = path.read_bytes(), path.with_name(path.name + ".zst")
    packer = zstandard.ZstdCompressor()
    half = body.index(b"\n", len(body) // 2) + 1
    target.write_bytes(packer.compress(body[:half]) + packer.compress(body[half:]))
    path.unlink()
    drafts, problems = read(tmp_path)
    assert problems == [] and len(drafts[A].messages) == 4


@pytest.mark.parametrize("how", ["cut", "junk", "empty"])
def test_a_torn_compressed_rollout_is_told(tmp_path: Path, how: str) -> None:
    lines = talk()
    lines.says("".join(random.Random(1).choices("abcdefgh", k=400_000)))
    target = packed(lines.write(tmp_path))
    body = target.read_bytes()
    target.write_bytes({"cut": body[:-9], "junk": b"junk" + body, "empty": b""}[how])
    drafts, problems = read(tmp_path)
    reasons = [problem.reason.partition(":")[0] for problem in problems]
    assert reasons == {
        "cut": ["compressed file ends too early", "unfinished last line"],
        "junk": ["compressed file is damaged"],
        "empty": [],
    }[how]
    if how == "cut":
        assert shape(drafts[A])[:2] == [("user", "one"), ("assistant", "re one")]


def test_a_plain_file_wins_over_its_compressed_copy(tmp_path: Path) -> None:
    packed(talk().write(tmp_path))
    longer = talk()
    longer.turn("three", "re three", "r3")
    path = longer.write(tmp_path)
    drafts, problems = read(tmp_path)
    assert problems == [] and drafts[A].path == str(path) and len(drafts[A].messages) == 6


def state(path: Path, thread: str, name: str) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, extra TEXT)")
    database.execute("INSERT INTO threads VALUES (?, ?, 'x')", (thread, name))
    database.commit()
    return database


@pytest.mark.parametrize("body", [b"", b"not a database at all", b"SQLite format 3\0" + b"x" * 200])
def test_a_broken_state_database_costs_its_facts(tmp_path: Path, body: bytes) -> None:
    talk().write(tmp_path)
    (tmp_path / "state_5.sqlite").write_bytes(body)
    drafts, problems = read(tmp_path)
    assert drafts[A].title == "one" and len(problems) == 1
    assert problems[0].path.endswith("state_5.sqlite")


def test_a_locked_state_database_costs_its_facts(tmp_path: Path) -> None:
    talk().write(tmp_path)
    database = state(tmp_path / "state_5.sqlite", A, "named")
    database.execute("BEGIN EXCLUSIVE")
    drafts, problems = read(tmp_path)
    assert drafts[A].title == "one" and "locked" in problems[0].reason
    database.rollback()
    assert read(tmp_path)[0][A].title == "named"
    database.close()


def test_tables_of_other_versions_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    talk().write(tmp_path)
    state(tmp_path / "state_4.sqlite", A, "older").close()
    with sqlite3.connect(tmp_path / "state_12.sqlite") as database:
        database.execute("CREATE TABLE something (id TEXT)")
    database.close()
    drafts, problems = read(tmp_path)
    assert problems == [] and drafts[A].title == "one"
