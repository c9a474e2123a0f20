"""Lists the sessions of a large first sync before their files are read.

The ends of each file tell title, times, folder and model, which takes a fraction of the time
that reading it takes. What is listed so is a row without messages, marked as an outline
(``store.conversation.outline_marks``). Reading the unit completes the row; a row that no
reading completes is deleted at the end. The units that were listed are noted in the store, so
that a sync that was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from store.conversation.outline_marks import OUTLINE
from store.engine.database import Database
from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import OutlinedSource
from store.sync import units
from store.sync.batch import ROW_ERRORS
from store.sync.forget import delete_session, take_out
from store.sync.jsontext import clean
from store.sync.locking import transaction, write_turn
from store.sync.prepared import PreparedSession, prepare
from store.sync.reading import ReadUnit, leave_out
from store.sync.targets import Target
from store.sync.times import times_of
from store.sync.units import Excludes, Job
from store.sync.writer import insert_outline, log_changes
from store.system.clock import Clock

WRITTEN_AT_ONCE = 50
"""Units of a transaction; of the first one a fifth, so that the newest sessions show soon."""
MOST_WAITING = 500
"""Units that wait to be written while helpers write, before this waits for its turn."""


def list_first(
    database: Database,
    jobs: Sequence[Job],
    excludes: Excludes,
    clock: Clock,
    stopped: Callable[[], bool],
) -> Iterator[int]:
    """Write an outline of each session of units that are new to the store.

    Args:
        database: The library.
        jobs: The units, in the order in which they are listed.
        excludes: Returns whether to leave out the sessions of a workspace.
        clock: Gives the time for the change log.
        stopped: Called between units; True ends it and keeps what is listed.

    Yields:
        The number of units that are listed, after each that was looked at.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
    """
    known = set(database.connection.execute("SELECT kind, root, key FROM outlines"))
    waiting = list[tuple[Job, list[PreparedSession]]]()
    done = listed = 0
    for job in jobs:
        if stopped():
            break
        done += 1
        if job.stored is None and units.where(job) not in known:
            waiting.append((job, outlines_of(job, excludes)))
        enough = len(waiting) * (1 if listed else 5) >= WRITTEN_AT_ONCE
        if enough and _write(database, waiting, clock, wait=len(waiting) >= MOST_WAITING):
            waiting, listed = [], done
        yield listed
    _write(database, waiting, clock)
    yield done


def outlines_of(job: Job, excludes: Excludes) -> list[PreparedSession]:
    """Return the sessions of a unit as a first look tells them.

    Args:
        job: The unit.
        excludes: Returns whether to leave out the sessions of a workspace.

    Returns:
        None of them where its source has no first look, or where that fails: reading the unit
        tells why.
    """
    if not isinstance(job.source, OutlinedSource) or not isinstance(job.root, Path):
        return []
    try:
        drafts = job.source.outline(job.root, job.unit)
        found = [_outline(job, draft) for draft in drafts]
    except Exception:
        return []
    result = ReadUnit(found)
    leave_out(result, excludes)
    return result.sessions


def _outline(job: Job, draft: SessionDraft) -> PreparedSession:
    changed_at, times = job.unit.changed_at, times_of(draft)
    bare = replace(
        draft, messages=[], records=(), attachments=[], system_prompts={}, first_record=0,
        created_at=times.created or changed_at, updated_at=times.updated or changed_at,
        partial=True,
    )  # fmt: skip
    prepared = prepare(job.source.kind, bare, keep_originals=False)
    prepared.metadata["source"][OUTLINE] = True
    return prepared


def _write(
    database: Database,
    found: Iterable[tuple[Job, list[PreparedSession]]],
    clock: Clock,
    *,
    wait: bool = True,
) -> bool:
    """Write what was found; return False where a helper writes now and this need not wait."""
    connection = database.connection
    with write_turn(database.path, wait=wait) as mine:
        if not mine:
            return False
        with transaction(connection, database.path):
            for job, sessions in found:
                for session in sessions:
                    connection.execute("SAVEPOINT outline")
                    try:
                        if insert_outline(database, session):
                            log_changes(database, session.id, (), clock)
                            connection.execute(
                                "INSERT OR REPLACE INTO outlines VALUES (?, ?, ?, ?)",
                                (session.id, *units.where(job)),
                            )
                    except ROW_ERRORS:
                        # Reading the unit tells what is wrong with it.
                        connection.execute("ROLLBACK TO outline")
                    connection.execute("RELEASE outline")
    return True


def are_left(database: Database) -> bool:
    """Return whether any unit has sessions that were listed and are not read yet."""
    return database.connection.execute("SELECT 1 FROM outlines LIMIT 1").fetchone() is not None


def settle(
    database: Database,
    targets: Iterable[Target],
    clock: Clock,
    known: Callable[[Target, str], bool],
) -> list[str]:
    """Delete what was listed of targets and no reading has completed, once all is read.

    Args:
        database: The library.
        targets: Targets of which no unit is left to read.
        clock: Gives the time for the change log.
        known: Returns whether a unit, by its key, was read or is gone; False where its folder
            cannot be listed now.

    Returns:
        The ids of the sessions that were deleted, or lost their parent.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
    """
    connection, deleted, changed = database.connection, list[str](), list[str]()
    with transaction(connection, database.path):
        for target in targets:
            place = target.source.kind, clean(str(target.root))
            rows = connection.execute(
                "SELECT o.session_id, o.key, coalesce(json_extract("
                f"s.metadata_json, '$.source.{OUTLINE}'), 0) FROM outlines o"
                " LEFT JOIN chat_sessions s ON s.id = o.session_id"
                " WHERE (o.kind, o.root) = (?, ?)",
                place,
            ).fetchall()
            for session_id, key, unread in rows:
                if unread and not known(target, key):
                    continue
                connection.execute("DELETE FROM outlines WHERE session_id = ?", (session_id,))
                if unread:
                    changed += delete_session(database, session_id, clock)
                    deleted.append(session_id)
    if deleted:
        take_out(database, deleted)
    return changed
