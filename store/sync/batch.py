"""Writes several read units in one transaction."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, field

from store.conversation.gone_marks import PARTIAL
from store.engine.database import Database
from store.ids import derived_session_id
from store.sources.base.protocol import Problem
from store.sync import depending, problems, reading_states, units
from store.sync.copies import original_of, stored_path
from store.sync.depending import Where
from store.sync.forget import delete_session, take_out
from store.sync.jsontext import clean
from store.sync.locking import transaction
from store.sync.reading import ReadUnit
from store.sync.units import Job
from store.sync.writer import (
    FORGOTTEN,
    Written,
    can_continue,
    is_read,
    trim_changes,
    write_prepared,
)
from store.system.clock import Clock

BATCH_BYTES = 8 << 20
"""A batch is written after this many source bytes ...

Each transaction writes many of the indexes' pages anew, and reads those that another helper wrote.
"""
BATCH_SECONDS = 0.25
"""... or this long after its first unit was read."""
MOST_BYTES = 2 * BATCH_BYTES
"""While another helper writes, a batch grows up to this many source bytes instead of waiting."""

BULK_PRAGMAS = (
    "PRAGMA cache_size = -32768", "PRAGMA wal_autocheckpoint = 24000", "PRAGMA temp_store = MEMORY"
)  # fmt: skip
"""For a connection that writes many batches.

A log of 100 MB takes a third of the checkpoints that one of 32 MB takes. All writers wait for each
of them, until the disk has it.
Where sessions have savepoints, the pages that these may put back would be most of what is written
to temporary files: each savepoint begins anew.
"""

MOST_ATTEMPTS = 5
"""How many times a unit is read again when another sync wrote it meanwhile."""

ROW_ERRORS = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    ValueError,
    TypeError,
)
"""Errors in one session's rows, rather than in the store."""


class _Refused(Exception):
    """The rows of a session were refused, and it has no savepoint to roll back to."""


@dataclass(slots=True)
class Batch:
    """Units that were read and are not yet written.

    Attributes:
        keep_gone: Whether to keep messages that the source no longer has.
        size: Source bytes.
    """

    keep_gone: bool = True
    units: list[tuple[Job, ReadUnit]] = field(default_factory=list)
    size: int = 0
    started: float = field(default_factory=time.monotonic)

    def add(self, job: Job, result: ReadUnit) -> None:
        """Add a unit, or one step of a long unit."""
        if not self.units:
            self.started = time.monotonic()
        self.units.append((job, result))
        self.size += job.unit.size

    @property
    def is_full(self) -> bool:
        """Whether it is time to write the batch."""
        return bool(self.units) and (
            self.units[-1][1].more
            or self.size >= BATCH_BYTES or time.monotonic() - self.started >= BATCH_SECONDS
        )

    def ended(self, outcome: Outcome) -> list[Job]:
        """Return the jobs that are finished: fully read, or overtaken by another sync."""
        overtaken = {id(job) for job, _ in outcome.overtaken}
        return [job for job, result in self.units if not result.more or id(job) in overtaken]


@dataclass(slots=True)
class Outcome:
    """The result of a batch.

    Attributes:
        overtaken: Units to read again because another sync wrote them after they were
            listed, each with the ``stamp_json`` that is stored now.
        changed: Ids of the sessions that were written.
        again: Units to read again, because another file is their session now.
    """

    new: int = 0
    updated: int = 0
    problems: int = 0
    overtaken: list[tuple[Job, str | None]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    again: list[Where] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add what another process wrote of a unit of the batch."""
        self.new += other.new
        self.updated += other.updated
        self.problems += other.problems
        self.changed += other.changed
        self.again += other.again


def write_batch(database: Database, batch: Batch, clock: Clock) -> Outcome:
    """Write a batch's sessions and the state of its units; return the outcome.

    Args:
        database: The library.
        batch: The units.
        clock: Gives the time for the change log.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
    """
    # The state of a long unit is changed when it is written, so that is not done twice.
    apart = any(result.is_long for _, result in batch.units[:-1])
    try:
        return _write(database, batch, clock, apart)
    except _Refused:
        for _, result in batch.units:
            result.not_written()
        return _write(database, batch, clock, True)


def _write(database: Database, batch: Batch, clock: Clock, apart: bool) -> Outcome:
    """Write a batch, as ``write_batch``.

    Args:
        database: The library.
        batch: The units.
        clock: Gives the time for the change log.
        apart: Whether each session has a savepoint. SQLite keeps the former content of each page
            that changes after one: a twentieth of a sync.

    Raises:
        _Refused: The rows of a session are refused, and it has no savepoint.
        StoreError: The store is locked for long, read only, full or damaged.
    """
    outcome = Outcome()
    removed: list[str] = []
    with transaction(database.connection, database.path):
        changed = False
        for job, result in batch.units:
            if result.elsewhere is not None:
                outcome.add(result.elsewhere)
            now_stored = units.stored_unit(database, job)
            if now_stored != job.stored and job.attempts < MOST_ATTEMPTS:
                # Another sync wrote this unit. Its files may have changed after either
                # reading, so only a fresh reading is safe.
                if not _same_files(job, now_stored):
                    outcome.overtaken.append((job, now_stored))
                continue
            if not _can_be_written(database, result):
                outcome.overtaken.append((job, now_stored))
                reading_states.save(database, job, None, "")
                continue
            written = _write_unit(
                database, job, result, outcome, clock, keep_gone=batch.keep_gone, apart=apart
            )
            changed = written or changed
            gone = [*_withdrawn(database, job, result), *result.superseded]
            if not batch.keep_gone:
                gone += _left_out(database, job, result, outcome)
            for session_id in gone:
                delete_session(database, session_id, clock)
            outcome.changed += gone
            removed += gone
        if changed or removed:
            trim_changes(database)
    if removed:
        take_out(database, removed)
    return outcome


def _withdrawn(database: Database, job: Job, result: ReadUnit) -> list[str]:
    """Return the ids of partial sessions whose messages are all in others now."""
    found = []
    for name in result.withdrawn:
        session_id = derived_session_id(job.source.kind, name)
        row = database.connection.execute(
            f"SELECT json_extract(metadata_json, '$.source.{PARTIAL}') FROM chat_sessions"
            " WHERE id = ?",
            (session_id,),
        ).fetchone()
        if row is not None and row[0]:
            found.append(session_id)
    return found


def _left_out(
    database: Database, job: Job, result: ReadUnit, outcome: Outcome
) -> list[str]:
    """Return the sessions of a unit that its files no longer have, and no others either.

    Args:
        database: The library, in a transaction.
        job: The unit.
        result: What was read of it; nothing follows from a part of it or from damage.
        outcome: Takes other units that have one of the sessions, to be read again.
    """
    if job.stored is None or result.saved is None or result.more or result.goes_on:
        return []
    if result.problems or result.excluded:
        return []
    before, now = units.UnitState.parse(job.stored), units.UnitState.parse(result.saved)
    files, found = {str(file[0]) for file in (*before.files, *now.files)}, []
    left_out = [one for one in dict.fromkeys(before.sessions) if one not in now.sessions]
    for session_id in left_out:
        if stored_path(database.connection, session_id) not in files:
            continue
        again = units.read_others_again(
            database, job.source.kind, original_of(database.connection, session_id),
            besides=[units.where(job)],
        )  # fmt: skip
        outcome.again += again
        if not again:
            found.append(session_id)
    return found


def _can_be_written(database: Database, result: ReadUnit) -> bool:
    """Return whether a step's session is stored so far; for a first step, that it is not."""
    if result.goes_on:
        return all(can_continue(database, one) for one in result.sessions if one.first_record)
    return not result.more or not any(
        is_read(database, one.id) for one in result.sessions
    )


def _same_files(job: Job, stored: str | None) -> bool:
    return not units.moved(job.source, job.unit, stored, lambda workspace: True)


def _write_unit(
    database: Database,
    job: Job,
    result: ReadUnit,
    outcome: Outcome,
    clock: Clock,
    *,
    keep_gone: bool,
    apart: bool,
) -> bool:
    changed = False
    found = list(result.problems)
    sessions, new = [], []
    forgotten: set[str] = set()
    same_mapping = units.same_mapping(job)
    files = {clean(stamp.path) for stamp in result.stamps or ()}
    for prepared in result.sessions:
        if apart:
            database.connection.execute("SAVEPOINT session")
        try:
            written = write_prepared(
                database, prepared, clock=clock,
                before=result.before.get(prepared.id), read_from=files, keep_gone=keep_gone,
                same_mapping=same_mapping,
            )  # fmt: skip
        except ROW_ERRORS as error:
            if not apart:
                raise _Refused from error
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
            result.superseded += written.superseded
            if written.again:
                outcome.again += units.read_others_again(
                    database, job.source.kind, prepared.id, besides=[units.where(job)]
                )
            if written.moved:
                problems.drop_moved(
                    database, units.forget_elsewhere(database, job, prepared.id)
                )
            if written.new:
                new.append(str(prepared.metadata["source"]["id"]))
        if apart:
            database.connection.execute("RELEASE session")
    before = problems.replace(database, job.source.kind, job.root, job.unit.key, found, clock)
    # A step names those of the steps before it again.
    outcome.problems += len(found) - (before if result.follows else 0)
    if forgotten:
        result.drop_facts_of(forgotten)
    if result.stamps is not None:
        sessions = list(dict.fromkeys([*sessions, *result.also]))
        state = units.state_of(job.source, result.stamps, sorted(result.excluded), sessions)
        units.save(database, job, state, clock)
        if result.depends is not None:
            depending.save(database, units.where(job), result.depends, new)
        else:
            depending.add_facts(database, units.where(job), result.facts)
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
