"""Distributes the units of a large sync to helper processes and supervises them.

Helpers take turns to hold the store's write lock, so a transaction waits no longer than the
others take.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import StoreError
from store.sources import registry
from store.sync.batch import Outcome
from store.sync.child import Child
from store.sync.frames import Failed, Frame, ReadsNow, Start, Task, Wrote
from store.sync.scheduling import Scheduler
from store.sync.settings import BULK_UNITS
from store.sync.units import Job
from store.system.programs import CommandLine, TooSlow

if TYPE_CHECKING:
    from store.sync.settings import Settings

BULK_BYTES = 24 << 20
"""Below this many bytes no helpers are started: starting them takes as long as the work."""
ASSIGNED_BYTES = 1 << 20
"""Source bytes of tasks that each helper has waiting: few, so that all end at the same time.

It gets more once half of them are begun: several at once wake it less often than one by one.
"""
MOST_DEATHS = 3
"""A sync fails when this many helpers in a row end while reading no unit."""
ENDED_EARLY = "cannot be read: the process that read it ended (too little memory?)"
COMMAND = CommandLine.python("store.sync.helper")
STOP_PATIENCE_S = 5.0
POLL_S = 0.1


def worth_sharing(jobs: list[Job], settings: Settings) -> bool:
    """Return whether there is enough work to start helpers."""
    if settings.helpers < 1 or len(jobs) <= BULK_UNITS:
        return False
    if sum(job.unit.size for job in jobs) < BULK_BYTES:
        return False
    return all(map(registry.has, {id(job.source): job.source for job in jobs}.values()))


@dataclass(frozen=True, slots=True)
class Done:
    """Finished work of a helper.

    Attributes:
        jobs: The units of one transaction.
        outcome: Their result.
        lost: A unit whose helper ended while reading it; nothing of it was written.
        why: Why it was lost.
    """

    jobs: list[Job] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    lost: Job | None = None
    why: str = ENDED_EARLY


@dataclass(slots=True)
class Pool:
    """The helpers of one store.

    Attributes:
        stopped: Called often; True ends the work after the running transactions.
    """

    store: Path
    settings: Settings
    stopped: Callable[[], bool]
    _helpers: list[_Helper] = field(default_factory=list)
    _received: queue.SimpleQueue[tuple[_Helper, Frame | None]] = field(
        default_factory=queue.SimpleQueue
    )
    _waiting: Scheduler = field(default_factory=lambda: Scheduler(()))
    _deaths: int = 0

    def work(
        self, jobs: list[Job], meanwhile: Callable[[], bool] = lambda: False
    ) -> Iterator[Done]:
        """Sync units in helpers, in about their order, and yield what is finished.

        Where no helper can be started, the units that still wait are left to the caller.

        Args:
            jobs: The units.
            meanwhile: Does some of the caller's own work, and returns whether more is left. Until
                then one helper waits, so that all of them and the caller do not share processors.

        Raises:
            StoreError: A helper cannot write to the store, or helpers keep ending early.
        """
        self._waiting = Scheduler(
            Task(number, job.source.kind, job.root, job.unit, job.stored, job.attempts, job.whole)
            for number, job in enumerate(jobs)
        )
        self._helpers = []
        busy = True
        try:
            while len(self._helpers) < self.settings.helpers and (started := self._start()):
                self._helpers.append(started)
            while self._waiting or any(helper.given for helper in self._helpers):
                if self.stopped() or not self._helpers:
                    break
                busy = busy and meanwhile()
                for helper in self._helpers[: max(1, len(self._helpers) - busy)]:
                    helper.assign(self._waiting)
                try:
                    yield from self._take(*self._received.get(not busy, POLL_S), jobs)
                except queue.Empty:
                    # Whoever takes what is done may have something to do in between.
                    yield Done()
            yield from self._end(jobs)
        finally:
            for helper in self._helpers:
                helper.kill()

    def waiting(self) -> list[int]:
        """Return the places, among the jobs, of those that no helper has been given."""
        return self._waiting.numbers()

    def take_back(self, number: int) -> None:
        """Take a waiting job away, for the caller to do it."""
        self._waiting.drop(number)

    def _start(self) -> _Helper | None:
        """Return a new helper; None where no more processes, or threads, may be started."""
        settings = self.settings
        start = Start(
            self.store, settings.keep_originals, settings.excludes, settings.keep_deleted
        )
        try:
            return _Helper(start, self._received)
        except (OSError, RuntimeError):
            return None

    def _take(self, helper: _Helper, frame: Frame | None, jobs: list[Job]) -> Iterator[Done]:
        if isinstance(frame, ReadsNow):
            helper.reads(frame.number)
        elif isinstance(frame, Wrote):
            self._deaths = 0
            yield _done(helper, frame, jobs)
        elif isinstance(frame, Failed):
            raise StoreError(frame.message)
        elif helper in self._helpers and not self.stopped():
            yield from self._replace_helper(helper, jobs)

    def _replace_helper(self, helper: _Helper, jobs: list[Job]) -> Iterator[Done]:
        """Replace a helper that ended; the unit that it was reading is reported as lost."""
        at = None if helper.was_stopped else helper.at
        lost = helper.given.pop(at, None) if at is not None else None
        self._deaths += lost is None
        if self._deaths >= MOST_DEATHS:
            raise StoreError("sync's helper processes end early (too little memory?)")
        self._waiting.give_back(helper, helper.given.values())
        helper.kill()
        started, place = self._start(), self._helpers.index(helper)
        self._helpers[place : place + 1] = [started] if started is not None else []
        if lost is not None:
            yield Done(lost=jobs[lost.number])

    def _end(self, jobs: list[Job]) -> Iterator[Done]:
        """End the helpers and yield what they had still written."""
        for helper in self._helpers:
            helper.close_stdin()
        for helper in self._helpers:
            helper.wait()
        while not self._received.empty():
            helper, frame = self._received.get()
            if isinstance(frame, Wrote):
                yield _done(helper, frame, jobs)


def _done(helper: _Helper, frame: Wrote, jobs: list[Job]) -> Done:
    for number in frame.numbers:
        helper.given.pop(number, None)
    frame.outcome.overtaken = [(jobs[number], stored) for number, stored in frame.again]
    return Done([jobs[number] for number in frame.numbers], frame.outcome)


class _Helper(Child):
    """A helper process.

    Attributes:
        given: Assigned tasks that are not written yet, by number, in order.
        at: The number of the task that is being read.
        waiting_bytes: Source bytes of the assigned tasks that are not begun.
    """

    def __init__(
        self, start: Start, received: queue.SimpleQueue[tuple[_Helper, Frame | None]]
    ) -> None:
        self.given: dict[int, Task] = {}
        self.at: int | None = None
        self.waiting_bytes = 0
        self._not_begun: dict[int, int] = {}
        super().__init__(COMMAND, lambda frame: received.put((self, frame)), start)

    def assign(self, waiting: Scheduler) -> None:
        """Assign waiting tasks to this helper, where it has few, until it has enough."""
        if self.waiting_bytes >= ASSIGNED_BYTES // 2:
            return
        tasks = list[Task]()
        while waiting and self.waiting_bytes < ASSIGNED_BYTES:
            task = waiting.next(self)
            tasks.append(task)
            size = self._not_begun[task.number] = task.unit.size
            self.waiting_bytes += size
            self.given[task.number] = task
        self.send(*tasks)

    def reads(self, number: int | None) -> None:
        """Note the task that it reads now."""
        self.at = number
        if number is not None:
            self.waiting_bytes -= self._not_begun.pop(number, 0)

    def wait(self) -> None:
        """Wait until the helper has ended and all its frames are received."""
        with contextlib.suppress(TooSlow):
            self._process.wait(STOP_PATIENCE_S)
        self.kill()
