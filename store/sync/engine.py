"""Sync: finds changed units in the sources and writes them to the store, newest first.

Each unit is written in the transaction that also records it as read, so a killed sync
continues where it stopped. Small units share a transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from store.engine.database import Database
from store.engine.server_url import Root, ServerUrl
from store.sources.base.protocol import Problem, Unit
from store.sync import depending, outlines, problems, units
from store.sync.aliases import known_path
from store.sync.batch import BULK_PRAGMAS, Batch, Outcome, write_batch
from store.sync.copies import original_of, stored_path, take_path
from store.sync.depending import Where
from store.sync.forget import delete_session, take_out
from store.sync.jsontext import clean
from store.sync.library import connect_library
from store.sync.locking import sync_lock, transaction, write_turn
from store.sync.long_units import LongUnit, read_in_steps
from store.sync.progress import Meter, Progress, Summary
from store.sync.reading import ReadUnit, leave_out, path_of
from store.sync.roots import (
    IN_PLACE_OF_A_FOLDER,
    identity,
    may_be_there,
    units_of,
    why_unreadable,
)
from store.sync.server_places import is_there, known_place
from store.sync.settings import BULK_UNITS, Settings
from store.sync.targets import Target
from store.sync.units import Job
from store.sync.wanted import nothing_wanted, take_wanted
from store.sync.writer import trim_changes
from store.system.clock import Clock, system_clock
from store.text import figures

if TYPE_CHECKING:
    from store.sync.pool import Pool

MOST_ROUNDS = 6
"""How many times new facts may lead to further readings, as with forks of forks."""

Results = Iterator[tuple[Job, ReadUnit]]


def read_here(jobs: list[Job], settings: Settings, database: Database) -> Results:
    """Yield each job's reading, read in this process; a long unit yields one per step.

    Args:
        jobs: The units.
        settings: How to sync.
        database: The library; each reading is written before the next is requested.
    """
    shared = partial(_by_turns, settings) if settings.helpers > 0 else None
    for job in jobs:
        for result in read_in_steps(job, settings.keep_originals, database, shared):
            yield job, result


def _by_turns(settings: Settings, unit: LongUnit) -> Iterator[ReadUnit]:
    # Imported here: most syncs have no unit for two processes.
    from store.sync.by_turns import readings_by_turns

    return readings_by_turns(unit, settings)


def each_target_once(database: Database, targets: Sequence[Target]) -> list[Target]:
    """Return the targets without duplicates, each root by the path that the store knows."""
    found: dict[tuple[str, str], Target] = {}
    for one in targets:
        root = one.root
        if isinstance(root, ServerUrl):
            root = known_place(database, one.source, root)
        else:
            root = known_path(database, one.source.kind, root)
        found.setdefault((one.source.kind, identity(root)), Target(one.source, root))
    return list(found.values())


def _unreadable(found: Sequence[Problem]) -> dict[str, bool]:
    """Return a line for each path among the problems that cannot be read.

    The value of a line is whether it is about a folder.
    """
    lines = {}
    for path, told in {one.path: one.reason for one in found}.items():
        reason = told if told == IN_PLACE_OF_A_FOLDER else why_unreadable(Path(path))
        # A link to nothing may be a folder's, or a file's.
        is_folder = os.path.isdir(path) or (told == reason and not os.path.splitext(path)[1])
        if reason is not None:
            lines[f"{path} {reason}"] = is_folder
    return lines


@dataclass(slots=True)
class Sync:
    """One sync of some targets.

    Attributes:
        on_progress: Called often; the callee limits how much it shows.
        stopped: Called between units; True ends the run and keeps what is committed.
        wanted: Called between units for the id of a session that is listed and to be read
            next; None where there is none.
        reading: Reads the units that are not given to helpers.
        changed: Ids of the sessions written so far.
        targets: All targets of the store, where this run reads only some of them: new facts
            may require another reading of any of their units.
        named: Whether the user named the targets, so that one that fails is a failure.
    """

    database: Database
    settings: Settings = field(default_factory=Settings)
    clock: Clock = system_clock
    on_progress: Callable[[Progress], None] = lambda progress: None
    stopped: Callable[[], bool] = lambda: False
    wanted: Callable[[], str | None] = nothing_wanted
    reading: Callable[[list[Job], Settings, Database], Results] = read_here
    changed: list[str] = field(default_factory=list)
    targets: Sequence[Target] = ()
    named: bool = False
    progress: Progress = field(default_factory=Progress)
    summary: Summary = field(default_factory=Summary)
    _meter: Meter = field(default_factory=Meter)
    _again: list[Where] = field(default_factory=list)
    _read: set[Where] = field(default_factory=set)
    _listing: Iterator[int] = field(default_factory=lambda: iter(()))
    _listed: dict[Target, dict[str, Unit]] = field(default_factory=dict)
    _unlisted: set[Target] = field(default_factory=set)
    """Targets with a folder or file that cannot be read."""

    def run(self, targets: Sequence[Target]) -> Summary:
        """Sync the changed units of the targets; return the summary.

        Raises:
            StoreError: The store is locked for long, read only, full or damaged.
        """
        started = time.monotonic()
        if self.settings.exclusive:
            with sync_lock(self.database.path, self.stopped, self._waiting) as mine:
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
        targets = each_target_once(self.database, targets)
        self.targets = self.targets or targets
        for target in targets:
            connect_library(target.source, self.database, self.settings.keep_deleted)
        jobs: list[Job] = []
        for target in targets:
            jobs.extend(self.list_moved(target))
        if jobs or self._again or depending.pending_news(self.database):
            self._bring_in_all(jobs)
        else:
            self._report()
        if not self.stopped():
            self._name_denied(targets)
        if self.named and not self.stopped():
            self._name_unread(targets)
        if not self.stopped() and outlines.are_left(self.database):
            self.changed += outlines.settle(
                self.database, targets, self.clock, lambda target, key: (
                    target not in self._unlisted or key in self._listed[target]))

    def _name_denied(self, targets: Sequence[Target]) -> None:
        """Note the places with files none of which may be read."""
        for kind, root, listed in (
            (one.source.kind, one.root, self._listed.get(one, {})) for one in targets
        ):
            keys = problems.units_with_problems(self.database, kind, root) if listed else set()
            if keys >= listed.keys() and listed:
                paths = [unit.stamps[0].path for unit in listed.values() if unit.stamps]
                reasons = [why_unreadable(Path(path)) for path in paths]
                if paths and all(reasons):
                    count = figures.count_of(len(paths), "file")
                    self.summary.unreadable.append(f"{root}: {count}, the first {reasons[0]}")

    def _name_unread(self, targets: Sequence[Target]) -> None:
        """Note the servers that could not be listed, or not read whole."""
        for target in targets:
            source, root = target.source, target.root
            if not isinstance(root, ServerUrl):
                continue
            listed = self._listed.get(target, {})
            stored = units.stored_units(self.database, source.kind, root)
            left = sum(
                units.moved(source, unit, stored.get(key), self.settings.excludes)
                for key, unit in listed.items()
            )
            if left:
                count = f"{left:,} of its {len(listed):,} sessions could not be read"
                self.summary.unreadable.append(f"{root.named or root} {count}")
            elif not listed:
                found = problems.of_listing(self.database, source.kind, root)
                self.summary.unreadable += [f"{root.named or root} {one}" for one in found]

    def _bring_in_all(self, jobs: list[Job]) -> None:
        jobs.sort(key=lambda job: (
            not units.has_moved_files(job), -job.unit.changed_at, job.unit.key))
        self.progress.files_total = len(jobs)
        self.progress.bytes_total = sum(job.unit.size for job in jobs)
        self._report()
        for pragma in BULK_PRAGMAS:
            self.database.connection.execute(pragma)
        new = [job for job in jobs if job.stored is None]
        if sum(job.unit.size for job in new) >= self.settings.outline_bytes:
            self.progress.listing = True
            self._listing = outlines.list_first(
                self.database, new, self.settings.excludes, self.clock, self.stopped
            )
            # Helpers take both processors while they start: the newest sessions come before them.
            while not self.progress.files_listed and self._list_on():
                pass
        self.bring_in(jobs)

    def _list_on(self) -> bool:
        """List the next unit of those that are listed first; return whether more follow."""
        listed = next(self._listing, None)
        self.progress.listing = listed is not None
        if listed is not None and listed != self.progress.files_listed:
            self.progress.files_listed = listed
            self._report()
        return listed is not None

    def bring_in(self, jobs: list[Job]) -> None:
        """Read and write units in about this order, then the units that depend on them."""
        for _ in range(MOST_ROUNDS):
            while jobs and not self.stopped():
                jobs = self._share(jobs)
            if self.stopped():
                return
            jobs = self._concerned()
            if not jobs:
                return
            self.progress.files_total += len(jobs)
            self.progress.bytes_total += sum(job.unit.size for job in jobs)

    def _concerned(self) -> list[Job]:
        """Return the units to read again because of other units."""
        news = depending.pending_news(self.database)
        again, self._again = self._again, []
        if not news and not again:
            return []
        roots = {(t.source.kind, clean(str(t.root))): t for t in self.targets}
        for source in {id(t.source): t.source for t in self.targets}.values():
            # The files beside the units may have changed since they were read.
            connect_library(source, self.database, self.settings.keep_deleted)
        jobs: list[Job] = []
        wanting = [
            where for where, told in depending.waiting_for(self.database, news).items()
            # Facts of the same root were already visible when this unit was read in this run.
            if where not in self._read or any(one.provider[:2] != where[:2] for one in told)
        ]  # fmt: skip
        with transaction(self.database.connection, self.database.path):
            # They count as moved until they were read, also for a sync after this one.
            units.read_again(self.database, wanting)
            depending.drop_news(self.database, news)
        for where in dict.fromkeys([*again, *wanting]):
            target = roots.get(where[:2])
            unit = self._unit(target, where[2]) if target is not None else None
            if target is not None and unit is not None:
                job = Job(target.source, target.root, unit, None, whole=True)
                job.stored = units.stored_unit(self.database, job)
                jobs.append(job)
        jobs.sort(key=lambda job: (-job.unit.changed_at, job.unit.key))
        return jobs

    def _unit(self, target: Target, key: str) -> Unit | None:
        """Return a unit of a root; None where its files are gone."""
        if target not in self._listed:
            try:
                found = {units.key_of(u): u for u in units_of(target.source, target.root, [])}
            except Exception:  # list_moved reports errors of a listing as problems.
                found = {}
            self._listed[target] = found
        return self._listed[target].get(key)

    def listed(self, target: Target) -> Iterable[Unit]:
        """Return the units of a root's last listing."""
        return self._listed.get(target, {}).values()

    def list_moved(self, target: Target) -> list[Job]:
        """Return jobs for a root's changed units; store its problems and removed units."""
        source, root, found = target.source, target.root, list[Problem]()
        stored = units.stored_units(self.database, source.kind, root)
        beside = depending.with_moved_files(self.database, source.kind, root)
        jobs, keys = [], set()
        listed = self._listed[target] = {}
        try:
            for unit in units_of(source, root, found):
                key = units.key_of(unit)
                keys.add(key)
                listed[key] = unit
                before = stored.get(key)
                if key in beside or units.moved(source, unit, before, self.settings.excludes):
                    jobs.append(Job(source, root, unit, before, whole=key in beside))
        except Exception as error:
            found.append(Problem(str(root), 0, f"cannot be listed: {error}"))
            self.summary.unreadable.append(f"{root} {found[-1].reason}")
        unreadable = _unreadable(found)
        if unreadable:
            self._unlisted.add(target)
        # Of a root that has sessions, a single file is a problem like any other.
        self.summary.unreadable += [
            line for line, is_folder in unreadable.items() if is_folder or not keys
        ]
        self.summary.units += len(keys)
        self.progress.problems += len(found)
        gone = [] if found else [key for key in stored if key not in keys]
        self._note_listing(target, found, keys, {key: stored[key] for key in gone})
        return jobs

    def note(self, target: Target, found: list[Problem]) -> None:
        """Store the problems of a root that cannot be listed; its sessions are kept."""
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
            removed = self._remove(kind, root, remove)
        if removed:
            take_out(database, removed)

    def _remove(self, kind: str, root: Root, gone: dict[str, str]) -> list[str]:
        """Delete units whose files are gone, and the sessions that no other file has.

        Returns:
            The ids of those sessions.
        """
        removed: list[str] = []
        lost = depending.told_by(self.database, kind, root, gone)
        units.drop(self.database, kind, root, list(gone))
        wanting = list(depending.waiting_for(self.database, lost)) if lost else []
        units.read_again(self.database, wanting)
        self._again += wanting
        for text in gone.values():
            state = units.UnitState.parse(text)
            files = {str(file[0]) for file in state.files}
            for session_id in state.sessions:
                if self._is_elsewhere(session_id, files):
                    continue
                others = units.read_others_again(
                    self.database, kind, original_of(self.database.connection, session_id), ()
                )
                if others:
                    self._again += others
                    take_path(self.database.connection, session_id)
                elif delete_session(self.database, session_id, self.clock):
                    removed.append(session_id)
        if gone:
            trim_changes(self.database)
        return removed

    def _is_elsewhere(self, session_id: str, files: set[str]) -> bool:
        """Return whether a session's file is another than the removed ones, and exists."""
        connection = self.database.connection
        path = stored_path(connection, session_id)
        return path is not None and path not in files and is_there(connection, path)

    def _pool_for(self, jobs: list[Job]) -> Pool | None:
        """Return helper processes for some jobs; None if there is too little work for them."""
        # Imported here: most syncs start no helpers, and asyncio comes along.
        from store.sync.pool import Pool, worth_sharing

        if not worth_sharing(jobs, self.settings):
            return None
        return Pool(self.database.path, self.settings, self.stopped)

    def _share(self, jobs: list[Job]) -> list[Job]:
        """Run jobs in helper processes if there is enough work; return the jobs to repeat."""
        pool = self._pool_for(jobs) if len(jobs) > BULK_UNITS else None
        if pool is None:
            while self._list_on():
                pass
            return [] if self.stopped() else self._work(jobs)
        again: list[Job] = []
        for done in pool.work(jobs, self._list_on):
            again += self._note(done.jobs, done.outcome)
            for job in take_wanted(
                self.database, self.wanted, lambda: [jobs[number] for number in pool.waiting()]
            ):
                pool.take_back(jobs.index(job))
                again += self._work([job])
            if done.lost is not None:
                batch, job = self._batch(), done.lost
                reason = Problem(path_of(job.root, job.unit), 0, done.why)
                batch.add(job, ReadUnit([], [reason]))
                again += self._write(batch)
        left = sorted(pool.waiting())
        if left and not self.stopped():
            # No helper could be started.
            again += self._work([jobs[number] for number in left])
        return again

    def _work(self, jobs: list[Job]) -> list[Job]:
        """Run jobs in this process; return those that another sync wrote meanwhile."""
        again: list[Job] = []
        batch, done = self._batch(), 0
        for job, result in self.reading(jobs, self.settings, self.database):
            leave_out(result, self.settings.excludes)
            batch.add(job, result)
            if batch.is_full:
                again += self._write(batch)
                batch = self._batch()
            if self.stopped():
                break
            done += not result.more
            for first in take_wanted(
                self.database, self.wanted, partial(islice, jobs, done, None)
            ):
                # ``reading`` goes through the same list, and is not there yet.
                del jobs[jobs.index(first, done)]
                again += self._write(batch) + self._work([first])
                batch = self._batch()
        return again + self._write(batch)

    def _batch(self) -> Batch:
        return Batch(self.settings.keep_deleted)

    def _write(self, batch: Batch) -> list[Job]:
        if not batch.units:
            return []
        with write_turn(self.database.path):
            outcome = write_batch(self.database, batch, self.clock)
        return self._note(batch.ended(outcome), outcome)

    def _note(self, jobs: list[Job], outcome: Outcome) -> list[Job]:
        """Add a batch's outcome to summary and progress; return the jobs to repeat."""
        again = [
            Job(job.source, job.root, job.unit, stored, job.attempts + 1, job.whole)
            for job, stored in outcome.overtaken
        ]
        self.summary.read += len(jobs) - len(again)
        self.changed.extend(outcome.changed)
        self._again += outcome.again
        self._read.update(units.where(job) for job in jobs)
        self.summary.new += outcome.new
        self.summary.updated += outcome.updated
        self.progress.sessions += outcome.new + outcome.updated
        self.progress.problems += outcome.problems
        self.progress.files_done += len(jobs) - len(again)
        self.progress.bytes_done += sum(job.unit.size for job in jobs)
        self.progress.bytes_done -= sum(job.unit.size for job in again)
        self._report()
        return again

    def _report(self) -> None:
        self._meter.measure(self.progress)
        self.on_progress(self.progress)
