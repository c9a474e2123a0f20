"""A long unit that two processes read by turns: the library is as after reading it in one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.engine.database import open_database
from store.sources.base import steps
from store.sources.claude_code import ClaudeCodeSource
from store.sync import by_turns, long_units
from store.sync.engine import Sync
from store.sync.frames import Frame, StepWritten
from store.sync.reading_states import HASH_BYTES
from store.sync.settings import Settings
from store.sync.targets import Target
from store.system.programs import CommandLine
from tests.bench import claude_corpus
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

BYTES = 6_500_000
STEP_BYTES = (1 << 20, 8 << 20)
"""Of this process; the other one's steps are larger. Its first is the third of the file, and
the last one is always this one's."""


def rows(root: Path, store: Path, helpers: int) -> dict[str, list[Any]]:
    database = open_database(store, create=True)
    Sync(database, Settings(helpers=helpers)).run([Target(ClaudeCodeSource(), root)])
    found = dump(database, (*TABLES, *SIDE_TABLES, "reading_states"))
    found["names"] = sorted(
        (bucket, *sorted(hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)))
        for bucket, hashes in database.connection.execute(
            "SELECT bucket, hashes FROM reading_names"
        )
    )
    database.close()
    return found


def nothing(file: Path) -> None:
    pass


def name_an_early_row(file: Path) -> None:
    """Append a prompt that goes on from the beginning: a rewind."""
    lines = file.read_bytes().splitlines()
    early, last = orjson.loads(lines[1]), orjson.loads(lines[0])
    last |= {"parentUuid": early["uuid"], "uuid": "from-the-beginning"}
    file.write_bytes(b"\n".join([*lines, orjson.dumps(last)]) + b"\n")


Home = tuple[Path, dict[str, list[Any]]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], None]], Home]:
    """A folder with a changed file, and the library of one process."""
    made = claude_corpus.make_long(tmp_path_factory.mktemp("long"), BYTES)

    @cache
    def changed(change: Callable[[Path], None]) -> Home:
        folder = tmp_path_factory.mktemp("home")
        file = folder / "home" / "projects" / made.parent.name / made.name
        file.parent.mkdir(parents=True)
        file.write_bytes(made.read_bytes())
        change(file)
        return folder / "home", rows(folder / "home", folder / "here.db", helpers=0)

    return changed


@pytest.mark.parametrize(
    ("change", "command", "killed_after", "written"),
    [
        (nothing, by_turns.COMMAND, 9, 1),
        (nothing, CommandLine.python("store.sync.jsontext"), 9, 0),
        (nothing, by_turns.COMMAND, 1, 0),
        (nothing, by_turns.COMMAND, 2, 1),
        (name_an_early_row, by_turns.COMMAND, 9, 1),
    ],
    ids=["to its end", "with a process that ends at once", "with one that ends when it has read",
         "with one that ends when it has written", "until it must be read whole"],
)  # fmt: skip
def test_a_unit_that_is_read_by_turns_is_as_one_that_is_read_in_one_process(
    change: Callable[[Path], None],
    command: CommandLine,
    killed_after: int,
    written: int,
    home: Callable[[Callable[[Path], None]], Home],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, here = home(change)
    received: list[Frame | None] = []

    def follow(other: by_turns.OtherProcess) -> Frame | None:
        received.append(receive(other))
        if len(received) == killed_after:
            other.close()
        return received[-1]

    receive = by_turns.OtherProcess.receive
    monkeypatch.setattr(long_units, "SHARED_BYTES", 0)
    monkeypatch.setattr(steps, "STEP_BYTES", STEP_BYTES)
    monkeypatch.setattr(by_turns, "COMMAND", command)
    monkeypatch.setattr(by_turns, "WAIT_S", 30)
    monkeypatch.setattr(by_turns.OtherProcess, "receive", follow)
    assert rows(root, tmp_path / "shared.db", helpers=1) == here
    assert sum(isinstance(one, StepWritten) for one in received) == written
