"""A wrong year in a record moves neither the records after it nor the session."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.sources.base.odd_times import DAY_MS, OddTimes
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import codex_lines
from tests.sources.claude_rows import START, File, iso

YEAR = 365 * DAY_MS
LATER, EARLIER = 36 * YEAR, -20 * YEAR


@dataclass
class Record:
    at: int


def settled(*times: int) -> list[int]:
    odd, records = OddTimes[Record](), list[Record]()
    for at in times:
        record = Record(at)
        odd.take(records, record)
        records.append(record)
    return [record.at for record in records]


@pytest.mark.parametrize("by", [LATER, YEAR, 3 * DAY_MS, EARLIER, -YEAR])
@pytest.mark.parametrize("length", [4, 5, 9])
def test_one_time_that_fits_neither_side(by: int, length: int) -> None:
    times = [START + 1000 * number for number in range(length)]
    for place in range(1, length - 1):
        odd = [*times[:place], times[place] + by, *times[place + 1 :]]
        assert settled(*odd) == [*times[:place], times[place - 1], *times[place + 1 :]]


def test_several_in_a_row() -> None:
    times = [START + number for number in range(8)]
    for by in (LATER, EARLIER):
        odd = [*times[:3], *(at + by for at in times[3:6]), *times[6:]]
        assert settled(*odd) == [*times[:3], times[2], times[2], times[2], *times[6:]]


@pytest.mark.parametrize("by", [LATER, EARLIER])
def test_the_first_one(by: int) -> None:
    times = [START + number for number in range(1, 4)]
    assert settled(START + by, *times) == [times[0], *times]


@pytest.mark.parametrize("by", [LATER, EARLIER])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_several_behind_the_first_one(by: int, length: int) -> None:
    after = [START + 10 + number for number in range(3)]
    odd = [START + by + number for number in range(length)]
    assert settled(START, *odd, *after) == [START] * (length + 1) + after
    assert settled(START, *odd, after[0]) == [START] * (length + 1) + after[:1]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_several_at_the_beginning_that_are_ahead(length: int) -> None:
    after = [START + number for number in range(length + 2)]
    odd = [START + LATER + number for number in range(length)]
    assert settled(*odd, *after) == [START] * length + after


def test_the_last_one_waits_for_another() -> None:
    times = [START, START + 1, START + 2]
    assert settled(*times, START + LATER) == [*times, times[-1]]
    after = [START + LATER, START + LATER + 1]
    assert settled(*times, *after) == [*times, *after]


@pytest.mark.parametrize(
    "gaps",
    [
        [1000, 90 * DAY_MS, 1000, YEAR, 1000],
        [1000, 3 * YEAR, 1000, 1000],
        [1000, -5 * 3_600_000, 1000],
        [0, 0, 0],
    ],
)
def test_gaps_that_sessions_have_stay(gaps: list[int]) -> None:
    times = [START]
    for gap in gaps:
        times.append(times[-1] + gap)
    assert settled(*times) == times


def test_a_clock_that_was_set_is_believed() -> None:
    ahead = [START + LATER + number for number in range(6)]
    after = [START + number for number in range(6)]
    assert settled(*ahead, *after) == [*ahead, *after]


@pytest.mark.parametrize("year", ["2062", "2003", "2099"])
@pytest.mark.parametrize("kind", ["claude-code", "codex"])
@pytest.mark.one_in(2)
def test_a_wrong_year_in_one_row_moves_nothing(kind: str, year: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    if kind == "claude-code":
        file = File()
        for number in range(4):
            file.user(f"prompt {number}")
            file.assistant(f"answer {number}", id=f"msg_{number}")
        path = file.write(root / "projects" / "-w")
        end = START + 8000
    else:
        lines = codex_lines.Lines(codex_lines.thread_id(1))
        for number in range(4):
            lines.turn(f"prompt {number}", f"answer {number}", f"r{number}")
        path = lines.write(root)
        end = lines.at - 100
    rows = path.read_text().splitlines()
    for place in range(len(rows)):
        changed = json.loads(rows[place])
        changed["timestamp"] = year + changed["timestamp"][4:]
        path.write_text("\n".join([*rows[:place], json.dumps(changed), *rows[place + 1 :]]) + "\n")
        db = open_database(tmp_path / f"{place}.db", create=True)
        Sync(db, Settings(helpers=0)).run([Target(source(kind), root)])
        said = [text for (text,) in db.connection.execute(
            "SELECT json_extract(p.data_json, '$.text') FROM chat_messages m"
            " JOIN chat_parts p ON p.message_id = m.id WHERE p.type = 'text'"
            " ORDER BY m.created_at, m.id")]  # fmt: skip
        assert said == [f"{who} {n}" for n in range(4) for who in ("prompt", "answer")], place
        first, last = db.connection.execute(
            "SELECT created_at, updated_at FROM chat_sessions").fetchone()
        assert START <= first <= last <= end, (place, iso(first), iso(last))
        times = db.connection.execute("SELECT created_at, updated_at FROM chat_messages")
        assert all(START <= at <= end for row in times for at in row), place
        db.close()
