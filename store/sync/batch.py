"""Writes several units that were read, in one transaction."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, field

from store.engine.database import Database
from store.sources.base.protocol import Problem
from store.sync import depending, problems, reading_states, units
from store.sync.depending import News
from store.sync.jsontext import clean
from store.sync.locking import transaction
from store.sync.reading import ReadUnit
from store.sync.units import Job
from store.sync.writer import FORGOTTEN, Written, can_go_on, trim_changes, write_prepared
from store.system.clock import Clock

BATCH_BYTES = 4 << 20
"""A transaction is closed after so many source bytes ..."""
BATCH_SECONDS = 0.25
"""... or so long after the first of its units was read."""

BULK_PRAGMAS = ("PRAGMA cache_size = -65536", "PRAGMA wal_autocheckpoint = 8000")
"""For a connection that writes many batches."""

MOST_ATTEMPTS = 5
"""How often a unit is read again because another sync wrote it in between."""

ROW_ERRORS = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    ValueError,
    TypeError,
)
"""Errors of one session's rows, not of the store."""


@dataclass(slots=True)
class Batch:
    """Units that were read and wait to be written.

    Attributes:
        keep_gone: Whether messages that their source no longer has stay.
        size: Source bytes.
    """

    keep_gone: bool = True
    units: list[tuple[Job, ReadUnit]] = field(default_factory=list)
    size: int = 0
    started: float = field(default_factory=time.monotonic)

    def add(self, job: Job, result: ReadUnit) -> None:
        """Add a unit, or a step of one."""
        if not self.units:
            self.started = time.monotonic()
        self.units.append((job, result))
        self.size += job.unit.size

    @property
    def is_full(self) -> bool:
        """Whether it is time to write what was gathered."""
        return bool(self.units) and (
            self.units[-1][1].more
            or self.size >= BATCH_BYTES or time.monotonic() - self.started >= BATCH_SECONDS
        )

    def ended(self, outcome: Outcome) -> list[Job]:
        """Return the units of which nothing more follows, as they were read or overtaken."""
        overtaken = {id(job) for job, _ in outcome.overtaken}
        return [job for job, result in self.units if not result.more or id(job) in overtaken]


@dataclass(slots=True)
class Outcome:
    """The result of a batch.

    Attributes:
        overtaken: The units that another sync wrote after they were listed, to be read
            once more, each with the ``stamp_json`` that is stored now.
        changed: The sessions that were written.
        news: What the units tell that others may wait for.
    """

    new: int = 0
    updated: int = 0
    problems: int = 0
    overtaken: list[tuple[Job, str | None]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    news: list[News] = field(default_factory=list)


def write_batch(database: Database, batch: Batch, clock: Clock) -> Outcome:
    """Write the batch's units and that they were read.

    Args:
        database: The library.
        batch: The units.
        clock: For the log of changes.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
    """
    outcome = Outcome()
    with transaction(database.connection, database.path):
        changed = False
        for job, result in batch.units:
            now_stored = units.stored_unit(database, job)
            if now_stored != job.stored and job.attempts < MOST_ATTEMPTS:
                # Another sync was here. The files may have moved since it, or since us:
                # only a fresh reading can tell.
                if not _same_files(job, now_stored):
                    outcome.overtaken.append((job, now_stored))
                continue
            if not _can_be_written(database, result):
                outcome.overtaken.append((job, now_stored))
                reading_states.save(database, job, None, "")
                continue
            written = _write_unit(database, job, result, outcome, clock, batch.keep_gone)
            changed = written or changed
        if changed:
            trim_changes(database)
    return outcome


def _can_be_written(database: Database, result: ReadUnit) -> bool:
    """Return whether what a step continues is there, or, for a first one, that it is not."""
    if result.goes_on:
        return all(can_go_on(database, one) for one in result.sessions if one.first_record)
    return not result.more or not any(
        reading_states.is_there(database, one.id) for one in result.sessions
    )


def _same_files(job: Job, stored: str | None) -> bool:
    return not units.moved(job.source, job.unit, stored, lambda workspace: True)


def _write_unit(
    database: Database,
    job: Job,
    result: ReadUnit,
    outcome: Outcome,
    clock: Clock,
    keep_gone: bool,
) -> bool:
    changed = False
    found = list(result.problems)
    sessions, new = [], []
    forgotten: set[str] = set()
    same_mapping = units.same_mapping(job)
    files = {clean(stamp.path) for stamp in result.stamps or ()}
    for prepared in result.sessions:
        database.connection.execute("SAVEPOINT session")
        try:
            written = write_prepared(
                database, prepared, clock=clock,
                before=result.before.get(prepared.id), read_from=files, keep_gone=keep_gone,
                keep_told=same_mapping,
            )  # fmt: skip
        except ROW_ERRORS as error:
            database.connection.execute("ROLLBACK TO session")
            found.append(Problem(prepared.path, 0, f"cannot be written: {error}"))
            sessions.append(prepared.id)
        else:
            sessions.append(written.session_id)
            changed = _count(written, outcome, result) or changed
            if written.skipped is None and written.session_id == prepared.id:
                result.written.add(prepared.id)
            if written.skipped == FORGOTTEN:
                forgotten.add(str(prepared.metadata["source"]["id"]))
            if written.moved:
                units.forget_elsewhere(database, job, prepared.id)
            if written.new:
                new.append(str(prepared.metadata["source"]["id"]))
        database.connection.execute("RELEASE session")
    problems.replace(database, job.source.kind, job.root, job.unit.key, found, clock)
    outcome.problems += len(found)
    if forgotten:
        result.tell_nothing_of(forgotten)
    if result.stamps is not None:
        sessions = list(dict.fromkeys([*sessions, *result.also]))
        state = units.state_of(job.source, result.stamps, sorted(result.excluded), sessions)
        units.save(database, job, state, clock)
        if result.depends is not None:
            outcome.news += depending.save(database, units.where(job), result.depends, new)
        else:
            outcome.news += depending.add_facts(database, units.where(job), result.facts)
        result.saved = state.text()
        if result.is_long:
            kept = None if result.excluded else result.state
            reading_states.save(database, job, kept, result.saved)
    return changed


def _count(written: Written, outcome: Outcome, result: ReadUnit) -> bool:
    outcome.new += written.new
    outcome.updated += bool(written.changed) and not written.new and not result.follows
    outcome.changed.extend(written.changed)
    return bool(written.changed)
