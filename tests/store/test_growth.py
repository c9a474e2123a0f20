"""Long files that grow, read by a new process each time: the library is as after one sync.

Long files are gone on with from what the library keeps. Here every file counts as long, and
what is read again before a new row is short, so that small files show all that can happen.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.engine.database import Database, open_database
from store.sources.base import steps as stepping
from store.sources.base.protocol import Source, Step
from store.sources.claude_code import ClaudeCodeSource
from store.sources.claude_code.steps import SessionSteps
from store.sources.codex import CodexSource
from store.sources.codex.steps import ThreadSteps
from store.sync import long_units
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.samples import DATA
from tests.store import codex_sessions
from tests.store.claude_sessions import SESSION, session
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

pytestmark = pytest.mark.long

DEPENDENCIES = ("unit_facts", "unit_wants", "unit_files")
SEEDS = int(os.environ.get("BACKSCROLL_GROWTH_SEEDS", "12"))
CODEX = sorted((DATA / "codex" / "home").rglob("rollout-*.jsonl"))[::4]
CLAUDE = DATA / "claude-code" / "home" / ".claude" / "projects"


class Growing:
    """A library of a folder with one session that grows, synced from cold each time."""

    reader: type[Any] = SessionSteps
    file = f"projects/project/{SESSION}.jsonl"

    def __init__(self, folder: Path, patched: pytest.MonkeyPatch) -> None:
        self.folder, self.patched = folder, patched
        self.root = folder / "home"
        self.path = self.root / self.file
        self.project = self.path.parent
        self.project.mkdir(parents=True)
        self.steps: Counter[str] = Counter()
        self.clock = 10**18
        self.rows: dict[str, list[Any]] = {}
        count = self.count
        whole = self.reader.steps

        def steps(reader: Any, *arguments: Any, **names: Any) -> Iterator[Step]:
            for step in whole(reader, *arguments, **names):
                count(step)
                yield step

        patched.setattr(self.reader, "steps", steps)

    def source(self) -> Source:
        return ClaudeCodeSource()

    def count(self, step: Step) -> None:
        self.steps["on" if step.goes_on else "first" if step.more else "whole"] += 1

    def append(self, body: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(body)
        self.tick()

    def tick(self) -> None:
        # Two writes within one tick of the file system's clock would look like none.
        self.clock += 1_000_000
        os.utime(self.path, ns=(self.clock, self.clock))

    def sync(self, name: str = "live.db", **settings: Any) -> Sync:
        database = open_database(self.folder / name, create=True)
        sync = Sync(database, Settings(helpers=0, **settings))
        sync.run([Target(self.source(), self.root)])
        self.rows = rows_of(database)
        database.close()
        return sync

    def at_once(self) -> dict[str, list[Any]]:
        """Return the rows of a sync of the files as they are, read whole."""
        (self.folder / "once.db").unlink(missing_ok=True)
        before = self.rows
        with self.patched.context() as patched:
            patched.setattr(long_units, "LONG_BYTES", 1 << 60)
            self.sync("once.db")
        self.rows, found = before, self.rows
        return found


class GrowingRollout(Growing):
    """The same with a rollout of Codex."""

    reader = ThreadSteps
    file = f"sessions/2026/11/27/{codex_sessions.NAME}"

    def source(self) -> Source:
        return CodexSource()


def rows_of(database: Database) -> dict[str, list[Any]]:
    found = dump(database, (*TABLES, *SIDE_TABLES, *DEPENDENCIES))
    problems = database.connection.execute("SELECT unit, path, line, reason FROM source_problems")
    units = database.connection.execute("SELECT key, stamp_json FROM source_units")
    return {**found, "problems": sorted(problems), "units": sorted(units)}


def sized(patched: pytest.MonkeyPatch, window: int, kept: int, step: int) -> None:
    patched.setattr(long_units, "LONG_BYTES", 0)
    patched.setattr(stepping, "WINDOW_BYTES", window)
    patched.setattr(stepping, "KEPT_BYTES", kept)
    patched.setattr(stepping, "STEP_BYTES", (step,))


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Growing:
    sized(monkeypatch, 1_500, 4_000, 1 << 20)
    return Growing(tmp_path, monkeypatch)


def cuts(body: bytes, rng: random.Random, pieces: int) -> list[bytes]:
    """Cut a file at lines or anywhere."""
    edges = [rng.randrange(len(body) + 1) for _ in range(pieces)]
    if rng.random() < 0.5:
        edges = [body.rfind(b"\n", 0, edge) + 1 for edge in edges]
    edges = sorted({0, *edges, len(body)})
    return [body[a:b] for a, b in zip(edges, edges[1:], strict=False)]


@pytest.mark.parametrize(
    ("make", "content"),
    [(Growing, session), (GrowingRollout, codex_sessions.session)],
    ids=["claude-code", "codex"],
)
@pytest.mark.parametrize("first", range(0, SEEDS, 4))
def test_cold_appends_cut_anywhere_come_to_what_one_sync_gives(
    make: type[Growing], content: Any, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: Counter[str] = Counter()
    for seed in range(first, first + 4):
        rng = random.Random(seed)
        body = content(str(seed), rng.choice((30, 100)), rng.choice((0, 0.02, 0.1, 0.3)))
        sized(
            monkeypatch, rng.choice((500, 2_000, 6_000)), rng.choice((3_000, 20_000)),
            rng.choice((3_000, 8_000, 100_000)),
        )  # fmt: skip
        with monkeypatch.context() as patched:
            growing = make(tmp_path / str(seed), patched)
            for piece in cuts(body, rng, 6):
                growing.append(piece)
                growing.sync()
                if rng.random() < 0.3:
                    assert growing.rows == growing.at_once(), seed
            assert growing.rows == growing.at_once(), seed
        steps += growing.steps
        shutil.rmtree(growing.folder)
    assert steps["on"] > 0


@pytest.mark.parametrize(
    "path",
    sorted(
        one for one in CLAUDE.glob("*/*.jsonl")
        if not one.name.startswith("agent-") and one.stat().st_size
    ),
    ids=lambda path: path.stem[:20],
)
def test_every_sample_grows_by_cold_appends_as_it_is_read_at_once(
    path: Path, growing: Growing
) -> None:
    rng = random.Random(path.name)
    side = path.with_suffix("")
    growing.path = growing.project / path.name
    if side.is_dir():
        shutil.copytree(side, growing.project / side.name)
    for piece in cuts(path.read_bytes(), rng, 4):
        growing.append(piece)
        growing.sync()
    assert growing.rows == growing.at_once()


@pytest.mark.parametrize("path", CODEX, ids=lambda path: path.stem[-12:])
def test_every_rollout_grows_by_cold_appends_as_it_is_read_at_once(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sized(monkeypatch, 1_500, 4_000, 1 << 20)
    growing = GrowingRollout(tmp_path, monkeypatch)
    growing.path = growing.project / path.name
    for piece in cuts(path.read_bytes(), random.Random(path.name), 4):
        growing.append(piece)
        growing.sync()
    assert growing.rows == growing.at_once()


def lines_of(seed: str = "plain", steps: int = 40) -> list[bytes]:
    return session(seed, steps, 0).splitlines(keepends=True)


def test_one_line_more_is_read_with_what_lies_right_before_it(growing: Growing) -> None:
    *lines, last = lines_of()
    growing.append(b"".join(lines))
    growing.sync()
    read: list[int] = []
    with growing.patched.context() as patched:
        whole = stepping.read_bytes

        def noted(file: Any, size: int) -> bytes:
            read.append(size)
            return whole(file, size)

        patched.setattr(stepping, "read_bytes", noted)
        growing.steps.clear()
        growing.append(last)
        sync = growing.sync()
    assert growing.steps == {"on": 1}
    assert sum(read) < len(b"".join(lines)) / 2
    assert (sync.summary.read, sync.summary.new, sync.summary.updated) == (1, 0, 1)
    assert growing.rows == growing.at_once()


def test_a_first_reading_in_steps_is_gone_on_with_after_a_kill(growing: Growing) -> None:
    growing.patched.setattr(stepping, "STEP_BYTES", (20_000,))
    growing.append(b"".join(lines_of(steps=80)))
    database = open_database(growing.folder / "live.db", create=True)
    killed = Sync(database, Settings(helpers=0))
    killed.stopped = lambda: bool(killed.changed)
    killed.run([Target(ClaudeCodeSource(), growing.root)])
    (some,) = database.connection.execute("SELECT count(*) FROM chat_messages").fetchone()
    database.close()
    assert some > 0
    assert growing.steps == {"first": 1}
    sync = growing.sync()
    assert growing.steps["whole"] == 0 < growing.steps["on"]
    assert growing.rows == growing.at_once()
    assert some < len(growing.rows["chat_messages"])
    assert (sync.summary.read, sync.summary.updated) == (1, 1)


def test_a_transaction_that_is_undone_leaves_the_place_before_it(growing: Growing) -> None:
    *lines, one, two = lines_of()
    growing.append(b"".join(lines))
    growing.sync()
    growing.append(one)
    with growing.patched.context() as patched:
        patched.setattr("store.sync.batch.reading_states.save", _fail)
        with pytest.raises(RuntimeError):
            growing.sync()
    growing.append(two)
    growing.steps.clear()
    growing.sync()
    assert growing.steps == {"on": 1}
    assert growing.rows == growing.at_once()


def _fail(*_: Any) -> None:
    raise RuntimeError


def change(folder: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(folder / "live.db")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reading_states SET state_json = '{}'",
        "UPDATE reading_states SET state_json = 'no'",
        "UPDATE reading_states SET context = x'00'",
        "UPDATE reading_states SET state_json = json_set(state_json, '$.form', 0)",
        "UPDATE reading_states SET state_json = json_set(state_json, '$.version', 0)",
        "UPDATE reading_states SET state_json = json_set(state_json, '$.place.offset', 3)",
        "UPDATE reading_states SET state_json = json_set(state_json, '$.place', json('{}'))",
        "UPDATE reading_states SET state_json = json_set(state_json, '$.stored', 'x')",
        "DELETE FROM reading_states",
    ],
)
def test_a_damaged_or_older_state_has_the_file_read_whole(
    statement: str, growing: Growing
) -> None:
    *lines, last = lines_of()
    growing.append(b"".join(lines))
    growing.sync()
    change(growing.folder, statement)
    growing.append(last)
    growing.steps.clear()
    growing.sync()
    assert growing.steps == {"whole": 1}
    assert growing.rows == growing.at_once()


def test_a_state_with_fields_of_another_version_has_the_file_read_whole(growing: Growing) -> None:
    *lines, last = lines_of()
    growing.append(b"".join(lines))
    growing.sync()
    stop, unknown = growing.reader.stop, [{"of_a_later_version": 1}]
    growing.patched.setattr(
        growing.reader, "stop",
        lambda reader, state: stop(reader, state | (unknown.pop() if unknown else {})))
    growing.append(last)
    growing.steps.clear()
    growing.sync()
    assert growing.steps == {"whole": 1}
    assert growing.rows == growing.at_once()


def test_a_newer_version_of_the_source_reads_all_again(growing: Growing) -> None:
    lines = lines_of()
    growing.append(b"".join(lines[:-1]))
    growing.sync()
    growing.patched.setattr(ClaudeCodeSource, "version", ClaudeCodeSource.version + 1)
    growing.append(lines[-1])
    growing.steps.clear()
    growing.sync()
    assert growing.steps == {"whole": 1}
    assert growing.rows == growing.at_once()


@pytest.mark.parametrize("what", ["cut", "replaced", "changed", "head"])
def test_a_file_that_is_another_one_now_is_read_whole(what: str, growing: Growing) -> None:
    lines = lines_of()
    growing.append(b"".join(lines[:-1]))
    growing.sync(keep_deleted=False)
    if what == "cut":
        growing.path.write_bytes(b"".join(lines[: len(lines) // 2]))
    elif what == "replaced":
        staged = growing.folder / "staged"
        staged.write_bytes(b"".join(lines[2:]) + b"\n" * 40_000)
        staged.replace(growing.path)
    else:
        edited = [*lines]
        told = [at for at, line in enumerate(lines) if b'"text ' in line]
        at = told[0 if what == "head" else -2]
        edited[at] = edited[at].replace(b'"text ', b'"TEXT ')
        with growing.path.open("r+b") as file:
            file.write(b"".join(edited))
    growing.tick()
    growing.steps.clear()
    growing.sync(keep_deleted=False)
    assert growing.steps == {"whole": 1}
    found, wanted = growing.rows, growing.at_once()
    assert {**found, "system_prompts": []} == {**wanted, "system_prompts": []}


def test_what_reaches_far_back_has_the_file_read_whole(growing: Growing) -> None:
    lines = lines_of()
    rows = [row for row in map(orjson.loads, lines) if "uuid" in row]
    growing.append(b"".join(lines))
    growing.sync()
    rewind = {**rows[-1], "uuid": "far", "parentUuid": rows[0]["uuid"], "type": "user",
              "message": {"role": "user", "content": "back to the start"}}  # fmt: skip
    growing.steps.clear()
    growing.append(orjson.dumps(rewind) + b"\n")
    growing.sync()
    assert growing.steps == {"whole": 1}
    assert growing.rows == growing.at_once()
    assert any("hidden_at" in row[3] for row in growing.rows["chat_messages"])


def test_what_a_user_set_survives_a_line_more(growing: Growing) -> None:
    *lines, last = lines_of()
    growing.append(b"".join(lines))
    growing.sync()
    newest = "(SELECT id FROM chat_messages ORDER BY created_at DESC, id DESC LIMIT 1)"
    change(
        growing.folder,
        "UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.hidden_at', 7, "
        f"'$.backscroll.hidden_by', 'user') WHERE id = {newest}",
    )
    change(
        growing.folder,
        "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.user.title', 'mine')",
    )
    growing.append(last)
    growing.sync()
    assert growing.steps["on"] == 1
    (title,) = {orjson.loads(row[7])["user"]["title"] for row in growing.rows["chat_sessions"]}
    assert title == "mine"
    hidden = [row for row in growing.rows["chat_messages"] if '"hidden_by":"user"' in row[3]]
    assert len(hidden) == 1


def test_a_session_that_was_removed_from_the_library_comes_back_whole(growing: Growing) -> None:
    *lines, last = lines_of()
    growing.append(b"".join(lines))
    growing.sync()
    change(growing.folder, "DELETE FROM chat_sessions")
    for table in ("chat_messages", "chat_parts", "record_refs", "original_records"):
        change(growing.folder, f"DELETE FROM {table}")
    growing.append(last)
    growing.sync()
    assert growing.rows == growing.at_once()


def test_records_that_are_kept_from_now_on_are_read_whole(growing: Growing) -> None:
    *lines, last = lines_of()
    growing.append(b"".join(lines))
    growing.sync(keep_originals=False)
    growing.append(last)
    growing.steps.clear()
    growing.sync()
    assert growing.steps == {"whole": 1}
    assert growing.rows == growing.at_once()
