"""One extreme value costs that value, in every source; neither its record nor its session."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.base.json_values import parse_json
from store.sources.base.values import EARLIEST_MS, LATEST_MS, epoch_ms, utc_ms
from store.sources.codex import CodexSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.codex_lines import START, Lines, extra, iso, read_one, thread_id, tools
from tests.sources.odd_values import places, put
from tests.sources.samples import SAMPLES, Sample, path_of

pytestmark = pytest.mark.long

A = thread_id(1)
DEEP = '{"a":' * 1000 + "1" + "}" * 1000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[NaN, 1]", [None, 1]),
        ('{"a": -Infinity}', {"a": None}),
        ("[1e400, 2]", [None, 2]),
        ("[12345678901234567890]", [12345678901234567890]),
        ("[" + "9" * 5000 + "]", [None]),
        ('["a\tb\0"]', ["a\tb\0"]),
        ('["\\ud800"]', ["\ufffd"]),
    ],
)
def test_a_value_that_json_does_not_have_costs_itself(text: str, value: object) -> None:
    assert parse_json(text.encode())[0] == value


@pytest.mark.parametrize("levels", [101, 300, 1000, 1500, 100_000])
def test_what_is_nested_too_deeply_is_left_out(levels: int) -> None:
    raw = b'{"before": "}]", "deep": ' + b"[" * levels + b"]" * levels + b', "after": "[{"}'
    value, repaired = parse_json(raw)
    assert (value["before"], value["after"]) == ("}]", "[{")
    assert repaired is not None and "nested deeper" in repaired
    depth, inner = 0, value["deep"]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    assert depth == 99 and "left out" in inner


@pytest.mark.parametrize(
    "stamp",
    ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z", "", "soon",
     float("nan"), float("inf"), 253370764800000, -1, 10**20, True, None, []],
)  # fmt: skip
def test_times_that_no_session_can_be_of(stamp: object) -> None:
    assert epoch_ms(stamp) is None and utc_ms(stamp) is None
    assert epoch_ms(EARLIEST_MS) == EARLIEST_MS and epoch_ms(LATEST_MS) is None


EXTREME: tuple[Any, ...] = (
    10**20, 12345678901234567890, -(10**19), 1e300, float("nan"), float("inf"),
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", 253402300799000,
    json.loads('{"a":' * 400 + "1" + "}" * 400), "\ud800", "a\0b",
)  # fmt: skip


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda sample: sample.name)
def copy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sample, Path]]:
    sample: Sample = request.param
    yield sample, path_of(sample.copied(tmp_path_factory.mktemp("sample")))


def rows(database: Database) -> tuple[dict[str, tuple[int, int]], set[str]]:
    """Return each session's times, and all messages."""
    found = database.connection.execute("SELECT id, created_at, updated_at FROM chat_sessions")
    times = {name: (created, updated) for name, created, updated in found}
    messages = database.connection.execute("SELECT id FROM chat_messages")
    return times, {row[0] for row in messages}


def synced(sample: Sample, root: Path, folder: Path) -> tuple[dict[str, tuple[int, int]], set[str]]:
    database = open_database(folder / "library.db", create=True)
    try:
        Sync(database).run([Target(type(sample.target().source)(), root)])
        return rows(database)
    finally:
        database.close()


def test_an_extreme_value_costs_itself(copy: tuple[Sample, Path], tmp_path: Path) -> None:
    """Each extreme takes the place of the fields that hold numbers, times and arguments."""
    sample, root = copy
    (tmp_path / "whole").mkdir()
    whole, _ = synced(sample, root, tmp_path / "whole")
    telling = ("timestamp", "usage", "tokens", "input", "arguments", "args", "duration_ms",
               "input_tokens", "total", "time", "created", "time_created", "completed")  # fmt: skip
    found = [place for place in places(root if root.is_dir() else root.parent)
             if place.steps and place.steps[-1] in telling]  # fmt: skip
    for number, place in enumerate(found[:: max(len(found) // 12, 1)]):
        body = place.file.read_bytes()
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            odd = EXTREME[number % len(EXTREME)]
            try:
                put(place, odd)
            except (sqlite3.Error, UnicodeEncodeError):
                continue
            times, _ = synced(sample, root, folder)
            assert times.keys() == whole.keys(), (place, odd)
            for created, updated in times.values():
                assert max(created, updated) < LATEST_MS and min(created, updated) >= 0
        finally:
            place.file.write_bytes(body)
        shutil.rmtree(folder)


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "no time"])
@pytest.mark.parametrize("at", [0, 1, 2, 5, -1])
def test_a_clock_that_is_wrong_in_one_row_moves_nothing(
    stamp: str, at: int, tmp_path: Path
) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    lines.turn("two", "re two", "r2")
    lines.lines[at]["timestamp"] = stamp
    lines.write(tmp_path)
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(CodexSource(), tmp_path)])
    ((created, updated),) = rows(database)[0].values()
    times = [row[0] for row in database.connection.execute(
        "SELECT created_at FROM chat_messages ORDER BY created_at, id")]  # fmt: skip
    database.close()
    assert START <= created <= times[0] <= times[-1] <= updated <= START + 1200
    assert len(times) == 4


def test_a_count_of_twenty_digits_costs_itself(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    lines.usage("r2", given=12345678901234567890)
    draft = read_one(lines, tmp_path)
    assert grown.words(draft.messages[1]) == "re one"
    assert grown.tokens(draft.messages)["input"] == 60


def test_arguments_of_a_thousand_levels_cost_themselves(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.item("function_call", name="shell", arguments=DEEP, call_id="c")
    lines.output("c", "done")
    lines.says("over")
    lines.write(tmp_path)
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(CodexSource(), tmp_path)])
    parts = database.connection.execute("SELECT type, data_json FROM chat_parts ORDER BY rowid")
    kinds = [kind for kind, _ in parts]
    database.close()
    assert kinds == ["text", "tool-shell", "text"]
    (part,) = tools(read_one(lines, tmp_path / "again").messages)
    assert "left out" in json.dumps(part.data["input"]) and extra(part)["status"] == "ok"


def test_created_is_the_first_messages_own_time(tmp_path: Path) -> None:
    """A clock that was put back in the middle of a session does not move its beginning."""
    from tests.sources.claude_rows import SESSION, File, read

    file = File()
    file.user("one")
    file.assistant("two", id="m1")
    file.user("three")
    file.lines[-1]["timestamp"] = "2020-01-01T00:00:00Z"
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text(file.text())
    drafts, _ = read(path)
    assert drafts[SESSION].created_at == drafts[SESSION].messages[0].created_at
    assert iso(drafts[SESSION].created_at).startswith("2026")
