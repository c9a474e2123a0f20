"""A long unit that two processes read by turns: the library is as after reading it in one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from subprocess import PIPE
from typing import Any, NoReturn

import orjson
import pytest

from store.engine.database import open_database
from store.sources.base import steps
from store.sources.claude_code import ClaudeCodeSource
from store.sync import by_turns, child, long_units
from store.sync.engine import Sync
from store.sync.frames import Frame, Start, StepWritten, Task
from store.sync.frames import send as send_frame
from store.sync.reading_states import HASH_BYTES
from store.sync.settings import Settings, nothing_excluded
from store.sync.targets import Target
from store.sync.units import Job
from store.system.children import child_environment
from store.system.programs import CommandLine
from tests.bench import claude_corpus
from tests.store.by_turns_in_small_steps import STEP_BYTES
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

BYTES = 1_700_000
"""Seven steps. The other process reads the third and the fifth, and leaves the last one."""
OTHER = CommandLine.python("tests.store.by_turns_in_small_steps")
NEVER = (0, 0)
"""The other process gets a signal after so many steps that either of the two has written."""


def rows(root: Path, store: Path, helpers: int) -> dict[str, list[Any]]:
    database = open_database(store, create=True)
    sync = Sync(database, Settings(helpers=helpers))
    told = sync.run([Target(ClaudeCodeSource(), root)])
    found = dump(database, (*TABLES, *SIDE_TABLES, "reading_states"))
    found["told"] = [told.read, told.new, told.updated, told.problems, *set(sync.changed)]
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


def six_steps(file: Path) -> tuple[list[bytes], int]:
    """Return the lines of six steps, of which this process reads the last, and one of the third."""
    lines = file.read_bytes()[: 6 * STEP_BYTES[0] - 20_000].splitlines()[:-1]
    return lines, int(len(lines) * 0.42)


def cut_a_step(file: Path) -> None:
    """Leave six steps, with damage in the third, which the other process reads."""
    lines, third = six_steps(file)
    lines[third] = b"{damage"
    file.write_bytes(b"\n".join(lines) + b"\n")


def name_an_early_row(file: Path) -> None:
    """Append a prompt that goes on from what the other process has read: a rewind."""
    lines, third = six_steps(file)
    early, last = orjson.loads(lines[third]), orjson.loads(lines[0])
    last |= {"parentUuid": early["uuid"], "uuid": "from-the-third-step"}
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
    ("change", "command", "ends_after", "written"),
    [
        (nothing, OTHER, NEVER, 2),
        (cut_a_step, OTHER, NEVER, 2),
        (nothing, CommandLine.python("store.sync.jsontext"), NEVER, 0),
        (nothing, OTHER, (1, signal.SIGKILL), 0),
        (nothing, OTHER, (2, signal.SIGKILL), 1),
        (nothing, OTHER, (3, signal.SIGKILL), 1),
        (nothing, OTHER, (1, signal.SIGSTOP), 0),
        (nothing, OTHER, (2, signal.SIGSTOP), 1),
        (name_an_early_row, OTHER, NEVER, 2),
    ],
    ids=["to an end of the other's", "to its end", "with a process that ends at once",
         "with one that ends when it has read", "with one that ends when it has written",
         "with one that ends when it has read again", "with one that is stopped when it has read",
         "with one that is stopped when it has written", "until it must be read whole"],
)  # fmt: skip
@pytest.mark.one_in(4)
def test_a_unit_that_is_read_by_turns_is_as_one_that_is_read_in_one_process(
    change: Callable[[Path], None],
    command: CommandLine,
    ends_after: tuple[int, int],
    written: int,
    home: Callable[[Callable[[Path], None]], Home],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, here = home(change)
    received: list[Frame | None] = []
    steps_written = count(1)

    def follow_sent(other: by_turns.OtherProcess, *frames: Frame) -> None:
        for frame in frames:
            end_after(other, frame)
        send(other, *frames)

    def follow_received(other: by_turns.OtherProcess) -> Frame | None:
        received.append(receive(other))
        end_after(other, received[-1])
        return received[-1]

    def end_after(other: by_turns.OtherProcess, frame: Frame | None) -> None:
        place = next(steps_written) if isinstance(frame, StepWritten) else 0
        if place and place == ends_after[0]:
            os.kill(other.pid, ends_after[1])

    send, receive = by_turns.OtherProcess.send, by_turns.OtherProcess.receive
    by_two(monkeypatch, command)
    monkeypatch.setattr(by_turns.OtherProcess, "send", follow_sent)
    monkeypatch.setattr(by_turns.OtherProcess, "receive", follow_received)
    assert rows(root, tmp_path / "shared.db", helpers=1) == here
    assert sum(isinstance(one, StepWritten) for one in received) == written


def by_two(monkeypatch: pytest.MonkeyPatch, command: CommandLine) -> None:
    """Let units of any size be read by turns, in small steps, from the first one on."""
    monkeypatch.setattr(long_units, "SHARED_BYTES", 0)
    monkeypatch.setattr(steps, "STEP_BYTES", STEP_BYTES)
    monkeypatch.setattr(by_turns, "COMMAND", command)
    monkeypatch.setattr(by_turns, "WAIT_S", 30)
    monkeypatch.setattr(child, "LOOK_S", 0.02)


def test_where_no_process_can_be_started_this_one_reads_it(
    home: Callable[[Callable[[Path], None]], Home],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*words: object, **more: object) -> NoReturn:
        raise BlockingIOError("no more processes")

    root, here = home(nothing)
    by_two(monkeypatch, OTHER)
    monkeypatch.setattr(child, "start_program", start)
    assert rows(root, tmp_path / "alone.db", helpers=1) == here


@pytest.mark.parametrize("trouble", ["store", "parent"])
def test_the_other_process_says_nothing_of_what_its_parent_notices(
    trouble: str, home: Callable[[Callable[[Path], None]], Home], tmp_path: Path
) -> None:
    root, _ = home(nothing)
    store = root.parent / "here.db"
    if trouble == "store":
        store = tmp_path / "damaged.db"
        store.write_bytes(b"no database" * 1000)
    source = ClaudeCodeSource()
    (unit,) = source.units(root, [])
    start = Start(store, True, nothing_excluded)
    task = Task(0, source.kind, root, unit, None, 0)
    with subprocess.Popen(
        by_turns.COMMAND, env=child_environment(), stdin=PIPE, stdout=PIPE, stderr=PIPE
    ) as other:
        assert other.stdin and other.stdout and other.stderr
        if trouble == "parent":
            other.stdout.close()
        send_frame(other.stdin, start)
        send_frame(other.stdin, task)
        assert other.stderr.read() == b""
    assert other.returncode == 0


def test_the_signals_of_a_terminal_do_not_reach_the_other_process(
    home: Callable[[Callable[[Path], None]], Home],
) -> None:
    root, _ = home(nothing)
    source = ClaudeCodeSource()
    (unit,) = source.units(root, [])
    database = open_database(root.parent / "here.db")
    long_unit = long_units.LongUnit(Job(source, root, unit, None), True, database)
    with by_turns.OtherProcess(long_unit, Settings()) as other:
        assert os.getpgid(other.pid) == other.pid
    database.close()
