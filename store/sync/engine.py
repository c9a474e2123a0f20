"""Sync: finds what moved in the sources, newest first, and brings it into the store.

Each unit is written in a transaction that also says that it was read, so a sync that is
killed anywhere goes on where it was. Small units share a transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from store.clock import Clock, system_clock
from store.database import Database
from store.sources.protocol import Problem
from store.sources.server_url import Root
from store.sync import problems, units
from store.sync.batch import Batch, write_batch
from store.sync.forget import delete_sessions
from store.sync.locking import alone, transaction
from store.sync.pool import Results, reader_for
from store.sync.progress import Meter, Progress, Summary
from store.sync.reading import leave_out
from store.sync.roots import may_be_there, units_of
from store.sync.targets import Target
from store.sync.units import Excludes, Job
from store.sync.writer import log_changes, trim_changes

BATCH_BYTES = 4 << 20
"""A transaction is closed after so many source bytes ..."""
BATCH_SECONDS = 0.25
"""... or so long after the first of its units was read."""

BULK_PRAGMAS = ("PRAGMA cache_size = -65536", "PRAGMA wal_autocheckpoint = 8000")


def default_helpers() -> int:
    """Return how many processes read beside this one where there is much to read.

    None on few processors: there the pickling of what they read costs more than they save
    (2,000 files on two processors: 19 s with two helpers, 15.5 s with none).
    """
    return 2 if (os.cpu_count() or 1) > 3 else 0


@dataclass(slots=True)
class Settings:
    """How to sync.

    Attributes:
        keep_originals: Whether original records are kept.
        keep_deleted: Whether sessions stay when their source's file goes away.
        excludes: Says which workspaces stay out.
        helpers: Processes that read beside this one where there is much to read.
        exclusive: Whether to wait for another sync of the same store.
    """

    keep_originals: bool = True
    keep_deleted: bool = True
    excludes: Excludes = lambda workspace: False  # noqa: E731
    helpers: int = field(default_factory=default_helpers)
    exclusive: bool = True


@dataclass(slots=True)
class Sync:
    """One run over some targets.

    Attributes:
        on_progress: Called often; it decides what to show.
        stopped: Asked between units; True ends the run, and what is done stays done.
        reading: Reads the units of a run.
        changed: The sessions that were written so far.
    """

    database: Database
    settings: Settings = field(default_factory=Settings)
    clock: Clock = system_clock
    on_progress: Callable[[Progress], None] = lambda progress: None
    stopped: Callable[[], bool] = lambda: False
    reading: Callable[[list[Job], Settings], AbstractContextManager[Results]] = reader_for
    changed: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    summary: Summary = field(default_factory=Summary)
    _meter: Meter = field(default_factory=Meter)

    def run(self, targets: Sequence[Target]) -> Summary:
        """Bring what moved below the targets into the store.

        Raises:
            StoreError: The store is locked for long, read only, full or damaged.
        """
        started = time.monotonic()
        if self.settings.exclusive:
            with alone(self.database.path, self.stopped, self._waiting) as mine:
                self.progress.waiting = False
                if mine:
                    self._run(targets)
        else:
            self._run(targets)
        self.summary.stopped = self.stopped()
        self.summary.problems = self.progress.problems
        self.summary.seconds = round(time.monotonic() - started, 3)
        return self.summary

    def _waiting(self) -> None:
        self.progress.waiting = True
        self.on_progress(self.progress)

    def _run(self, targets: Sequence[Target]) -> None:
        jobs: list[Job] = []
        for target in targets:
            jobs.extend(self.list_moved(target))
        if not jobs:
            self._report()
            return
        jobs.sort(key=lambda job: (-job.unit.changed_at, job.unit.key))
        self.progress.files_total = len(jobs)
        self.progress.bytes_total = sum(job.unit.size for job in jobs)
        self._report()
        for pragma in BULK_PRAGMAS:
            self.database.connection.execute(pragma)
        self.bring_in(jobs)

    def bring_in(self, jobs: list[Job]) -> None:
        """Read and write units, in this order."""
        while jobs and not self.stopped():
            jobs = self._work(jobs)

    def list_moved(self, target: Target) -> list[Job]:
        """Return the units of a root that moved; note what went wrong or went away."""
        source, root, found = target.source, target.root, list[Problem]()
        stored = units.stored_units(self.database, source.kind, root)
        jobs, keys = [], set()
        try:
            for unit in units_of(source, root, found):
                keys.add(units.key_of(unit))
                before = stored.get(units.key_of(unit))
                if units.moved(source, unit, before, self.settings.excludes):
                    jobs.append(Job(source, root, unit, before))
        except Exception as error:
            found.append(Problem(str(root), 0, f"cannot be listed: {error}"))
        self.summary.units += len(keys)
        self.progress.problems += len(found)
        gone = [] if found else [key for key in stored if key not in keys]
        self._note_listing(target, found, keys, {key: stored[key] for key in gone})
        return jobs

    def note(self, target: Target, found: list[Problem]) -> None:
        """Keep why a root cannot be listed now; what the store has of it stays."""
        self._note_listing(target, found, set(), {})

    def _note_listing(
        self, target: Target, found: list[Problem], keys: set[str], gone: dict[str, str]
    ) -> None:
        kind, root, database = target.source.kind, target.root, self.database
        fixed = set()
        if not found:
            fixed = problems.units_with_problems(database, kind, root) - keys
        remove = {} if self.settings.keep_deleted or not may_be_there(root) else gone
        if not (fixed or remove or problems.differ(database, kind, root, "", found)):
            return
        with transaction(database.connection, database.path):
            problems.replace(database, kind, root, problems.LISTING, found, self.clock)
            for key in fixed:
                problems.replace(database, kind, root, key, (), self.clock)
            self._remove(kind, root, remove)

    def _remove(self, kind: str, root: Root, gone: dict[str, str]) -> None:
        """Take sessions out whose file went away, where the settings want that."""
        units.drop(self.database, kind, root, list(gone))
        for text in gone.values():
            for session_id in units.UnitState.parse(text).sessions:
                if delete_sessions(self.database, [session_id]):
                    log_changes(self.database, session_id, (), self.clock)
        if gone:
            trim_changes(self.database)

    def _work(self, jobs: list[Job]) -> list[Job]:
        """Read and write the jobs; return those that another sync wrote meanwhile."""
        again: list[Job] = []
        batch = Batch()
        with self.reading(jobs, self.settings) as results:
            for job, result in results:
                leave_out(result, self.settings.excludes)
                batch.add(job, result)
                if batch.size >= BATCH_BYTES or batch.age >= BATCH_SECONDS:
                    again.extend(self._write(batch))
                    batch = Batch()
                if self.stopped():
                    break
        again.extend(self._write(batch))
        return again

    def _write(self, batch: Batch) -> Iterable[Job]:
        if not batch.units:
            return ()
        outcome = write_batch(self.database, batch, self.clock)
        self.summary.read += len(batch.units) - len(outcome.again)
        self.changed.extend(outcome.changed)
        self.summary.new += outcome.new
        self.summary.updated += outcome.updated
        self.progress.sessions += outcome.new + outcome.updated
        self.progress.problems += outcome.problems
        self.progress.files_done += len(batch.units) - len(outcome.again)
        self.progress.bytes_done += batch.size - sum(job.unit.size for job in outcome.again)
        self._report()
        return outcome.again

    def _report(self) -> None:
        self._meter.measure(self.progress)
        self.on_progress(self.progress)
