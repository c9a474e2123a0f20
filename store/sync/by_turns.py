"""Reads and writes a long new unit in two processes by turns.

``python -m store.sync.by_turns`` is the other process. Each step is read, mapped and written by
one of the two, which names the place after it to the other one as soon as it has read it. So one
reads while the other one writes, and no rows pass between them.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import IO

from store.engine.database import open_database
from store.errors import StoreError
from store.sources import registry
from store.sources.base.protocol import Place, Step
from store.sync.batch import BULK_PRAGMAS, Batch, Outcome, write_batch
from store.sync.child import Child, pipes_to_parent
from store.sync.frames import Frame, Start, StepRead, StepWritten, Task, receive, send
from store.sync.library import connect_library
from store.sync.locking import write_turn
from store.sync.long_units import LongUnit
from store.sync.reading import ReadUnit, leave_out
from store.sync.reading_states import HASH_BYTES, hashes_of
from store.sync.settings import Settings
from store.sync.units import Job
from store.system.clock import system_clock
from store.system.collection import paused_collection
from store.system.programs import CommandLine

COMMAND = CommandLine.python("store.sync.by_turns")
WAIT_S = 0.0
"""How long the other process is waited for, before each step, while it starts."""


def readings_by_turns(unit: LongUnit, settings: Settings) -> Iterator[ReadUnit]:
    """Yield those readings of a new unit that are to be written here, as ``readings`` does.

    Where the other process ends early, or the unit must be read whole, that is done here.

    Args:
        unit: Nothing of it was read.
        settings: How to sync.
    """
    try:
        other = OtherProcess(unit, settings)
    except (OSError, RuntimeError):  # no more processes, or threads, may be started
        yield from unit.readings()
        return
    yield from _readings_with(other, unit)


def _readings_with(other: OtherProcess, unit: LongUnit) -> Iterator[ReadUnit]:
    passed, outcome, follows, theirs = _Passed(), None, False, False
    with other:
        step = _step_at(unit, None, passed)
        while step is not None:
            # The other process is started while the first steps are read and written here.
            shares = step.more and (theirs or (follows and other.is_ready()))
            if shares and step.place is not None:
                other.send(passed.told(step.place))
            if theirs:
                outcome = _go_on_behind(unit, other)
                if outcome is None:
                    break
            result = unit.take(step, passed.last)
            result.follows, result.elsewhere = follows, outcome
            yield result
            if not step.more or result.saved is None:
                return
            follows, outcome = True, None
            unit.job.stored = result.saved
            if result.excluded:
                other.close()
            place = step.place
            if shares:
                other.send(StepWritten(result.saved, Outcome()))
                del step, result
                read = other.receive()
                if not isinstance(read, StepRead):
                    break
                place, theirs = read.place, True
                passed.hear(read)
            assert place is not None
            step = _step_at(unit, place, passed)
        else:
            outcome = _go_on_behind(unit, other) if theirs else outcome
    unit.reload()
    yield from unit.readings(follows=follows, elsewhere=outcome)


def _step_at(unit: LongUnit, place: Place | None, passed: _Passed) -> Step | None:
    """Return the step at a place; None where reading cannot go on there.

    Args:
        unit: The unit.
        place: Where to continue; None for the beginning.
        passed: The names before the place; those of the step are added.
    """
    steps = unit.steps(place, passed.known, fresh=place is None, whole=False)
    try:
        step = next(steps, None)
    except Exception:  # it is read again in one process, which reports what is wrong
        return None
    if step is None or (step.place is None and step.more):
        return None
    if step.place is not None:
        passed.add(step.place)
    return step


def _go_on_behind(unit: LongUnit, other: OtherProcess) -> Outcome | None:
    """Wait until the other process has written its step; None where it did not."""
    written = other.receive()
    if not isinstance(written, StepWritten):
        return None
    unit.reload()
    return written.outcome if unit.state is not None else None


class _Passed:
    """The names of the steps so far, by their hashes: ``Known``.

    Attributes:
        last: The hashes of the names of the step that was read here last.
    """

    def __init__(self) -> None:
        self.last: set[bytes] = set()
        self._hashes: set[bytes] = set()

    def add(self, place: Place) -> None:
        """Add the names of a step that was read here."""
        self.last = hashes_of(place.names)
        self._hashes |= self.last

    def told(self, place: Place) -> StepRead:
        """Return what to tell the other process of the place of that step."""
        return StepRead(replace(place, names=()), b"".join(self.last))

    def hear(self, read: StepRead) -> None:
        """Add the names of a step that the other process has read."""
        hashes = read.hashes
        self._hashes.update(
            [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
        )

    def known(self, names: Collection[str]) -> bool:
        return not self._hashes.isdisjoint(hashes_of(names))


class OtherProcess(Child):
    """The other process while it runs; it is killed with the block."""

    def __init__(self, unit: LongUnit, settings: Settings) -> None:
        """Start it.

        Args:
            unit: The unit.
            settings: How to sync.
        """
        job = unit.job
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._is_ready: bool | None = None
        keep, deleted = settings.keep_originals, settings.keep_deleted
        super().__init__(
            COMMAND, self._frames.put,
            Start(unit.database.path, keep, settings.excludes, deleted),
            Task(0, job.source.kind, job.root, job.unit, None, job.attempts),
        )  # fmt: skip

    def __enter__(self) -> OtherProcess:
        """Return this."""
        return self

    def __exit__(self, *error: object) -> None:
        """Kill the process."""
        self.close()

    def is_ready(self) -> bool:
        """Return whether it can take a step."""
        if self._is_ready is None:
            with contextlib.suppress(queue.Empty):
                self._is_ready = self._frames.get(timeout=WAIT_S) is not None
        return bool(self._is_ready)

    def receive(self) -> Frame | None:
        """Return its next frame; None once it has ended."""
        return self._frames.get()

    def close(self) -> None:
        """Kill it; a running transaction is rolled back."""
        self._is_ready = False
        self.kill()


def main() -> None:
    """Read and write steps of the unit that stdin names, until stdin closes."""
    questions, answers = pipes_to_parent()
    start, task = receive(questions), receive(questions)
    if not isinstance(start, Start) or not isinstance(task, Task):
        return
    # The parent goes on alone then, and reports what is wrong with the store.
    with contextlib.suppress(StoreError, BrokenPipeError), paused_collection():
        _read_and_write(start, task, questions, answers)


def _read_and_write(start: Start, task: Task, questions: IO[bytes], answers: IO[bytes]) -> None:
    """Open the store and take turns.

    Args:
        start: The store and the settings.
        task: The unit.
        questions: Frames of the parent.
        answers: Frames to it.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
        BrokenPipeError: The parent is gone.
    """
    with contextlib.closing(open_database(start.store)) as database:
        for pragma in BULK_PRAGMAS:
            database.connection.execute(pragma)
        source = registry.source(task.kind)
        connect_library(source, database, start.keep_deleted)
        job = Job(source, task.root, task.unit, None, task.attempts)
        unit = LongUnit(job, start.keep_originals, database)
        send(answers, task)
        _take_turns(unit, start, questions, answers)


def _take_turns(unit: LongUnit, start: Start, questions: IO[bytes], answers: IO[bytes]) -> None:
    """Read and write every other step; what is read whole, and the last one, are the parent's."""
    passed = _Passed()
    while isinstance(read := receive(questions), StepRead):
        passed.hear(read)
        step = _step_at(unit, read.place, passed)
        if step is None or step.place is None or not step.more:
            return
        send(answers, passed.told(step.place))
        written = receive(questions)
        if not isinstance(written, StepWritten):
            return
        unit.reload()
        if unit.job.stored != written.saved or unit.state is None:
            return
        result = unit.take(step, passed.last)
        result.follows = True
        leave_out(result, start.excludes)
        batch = Batch(start.keep_deleted)
        batch.add(unit.job, result)
        with write_turn(unit.database.path):
            outcome = write_batch(unit.database, batch, system_clock)
        if outcome.overtaken or result.saved is None or result.excluded:
            return
        send(answers, StepWritten(result.saved, outcome))
        del step, result, batch


if __name__ == "__main__":
    main()
