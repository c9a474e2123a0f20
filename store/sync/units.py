"""State of the units that were synced: their files' stamps and their sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import orjson

from store.engine.database import Database
from store.engine.server_url import Root
from store.sources.base.protocol import FileStamp, Source, Unit
from store.sync import depending
from store.sync.copies import copies_of
from store.sync.jsontext import clean, json_text
from store.system.clock import Clock

Excludes = Callable[[str | None], bool]
"""Returns whether to leave out the sessions of a workspace."""


@dataclass(slots=True)
class Job:
    """A unit to read: new, or changed since it was read.

    Attributes:
        stored: The unit's ``stamp_json`` when it was listed; None if it is new.
        attempts: How many times another sync wrote it meanwhile.
        whole: Whether to read it whole, not only what was added to its files.
    """

    source: Source
    root: Root
    unit: Unit
    stored: str | None
    attempts: int = 0
    whole: bool = False


@dataclass(slots=True)
class UnitState:
    """Content of ``source_units.stamp_json``.

    Attributes:
        version: As ``version_of`` at the reading; another version requires a new one.
        files: Path, inode, size and mtime (ns) of each file.
        offsets: Consumed bytes of each file.
        excluded: Workspaces whose sessions were left out.
        sessions: Ids of the unit's sessions.
    """

    version: int
    files: list[list[str | int]]
    offsets: list[int]
    excluded: list[str]
    sessions: list[str]

    @classmethod
    def parse(cls, text: str) -> UnitState:
        """Return the state from its stored text."""
        return cls(*orjson.loads(text))

    def text(self) -> str:
        """Return the text to store."""
        return json_text([self.version, self.files, self.offsets, self.excluded, self.sessions])


ROWS_VERSION = 3
"""Version of what all sources share, such as which lines are repeats, and of the rows of drafts.

After a change the next sync reads every unit again, those whose files moved first.
"""


def version_of(source: Source) -> int:
    """Return the version of a source's rows."""
    return 1000 * ROWS_VERSION + source.version


def state_of(
    source: Source, stamps: Sequence[FileStamp], excluded: list[str], sessions: list[str]
) -> UnitState:
    """Return the state to store for a unit that was read.

    Args:
        source: The unit's source.
        stamps: State of its files when they were read.
        excluded: Workspaces whose sessions were left out.
        sessions: Ids of its sessions.
    """
    return UnitState(
        version_of(source), _files(stamps), [stamp.offset for stamp in stamps], excluded, sessions
    )


def _files(stamps: Sequence[FileStamp]) -> list[list[str | int]]:
    return [
        [stamp.path if stamp.path.isascii() else clean(stamp.path),
         stamp.inode, stamp.size, stamp.mtime_ns]
        for stamp in stamps
    ]  # fmt: skip


def stored_units(database: Database, kind: str, root: Root) -> dict[str, str]:
    """Return the ``stamp_json`` of a root's synced units, by key.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root.
    """
    return dict(
        database.connection.execute(
            "SELECT key, stamp_json FROM source_units WHERE kind = ? AND root = ?",
            (kind, clean(str(root))),
        )
    )


def kinds_of(database: Database, root: Root) -> set[str]:
    """Return the kinds of the sources that a root was synced with."""
    rows = database.connection.execute(
        "SELECT DISTINCT kind FROM source_units WHERE root = ?", (clean(str(root)),)
    )
    return {kind for (kind,) in rows}


def stored_unit(database: Database, job: Job) -> str | None:
    """Return the currently stored ``stamp_json`` of a unit."""
    row = database.connection.execute(
        "SELECT stamp_json FROM source_units WHERE kind = ? AND root = ? AND key = ?",
        (job.source.kind, clean(str(job.root)), clean(job.unit.key)),
    ).fetchone()
    return row[0] if row else None


def same_mapping(job: Job) -> bool:
    """Return whether a unit was last read with the current mapping version."""
    stored = job.stored
    return stored is None or UnitState.parse(stored).version == version_of(job.source)


def moved(source: Source, unit: Unit, stored: str | None, excludes: Excludes) -> bool:
    """Return whether a unit is new or changed and has to be read.

    Args:
        source: The unit's source.
        unit: The unit as listed.
        stored: Its stored ``stamp_json``, if any.
        excludes: The current exclusions; a unit with sessions that were excluded and no
            longer are is read again.
    """
    if stored is None:
        return True
    state = UnitState.parse(stored)
    return (
        state.version != version_of(source)
        or state.files != _files(unit.stamps)
        or not all(excludes(workspace) for workspace in state.excluded)
    )


def has_moved_files(job: Job) -> bool:
    """Return whether a unit is new or its files changed, and not only what reads them."""
    return job.stored is None or UnitState.parse(job.stored).files != _files(job.unit.stamps)


def where(job: Job) -> depending.Where:
    """Return kind, root and key of a job's unit as they are stored."""
    return job.source.kind, clean(str(job.root)), key_of(job.unit)


def save(database: Database, job: Job, state: UnitState, clock: Clock) -> None:
    """Store the state of a unit that was read.

    Args:
        database: The library, in a transaction.
        job: The unit.
        state: The state.
        clock: Gives ``synced_at``.
    """
    database.connection.execute(
        "INSERT INTO source_units(kind, root, key, session_id, stamp_json, synced_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(kind, root, key) DO UPDATE SET "
        "session_id = excluded.session_id, stamp_json = excluded.stamp_json, "
        "synced_at = excluded.synced_at",
        (
            job.source.kind,
            clean(str(job.root)),
            clean(job.unit.key),
            state.sessions[0] if state.sessions else None,
            state.text(),
            clock(),
        ),
    )


def drop(database: Database, kind: str, root: Root, keys: Sequence[str]) -> None:
    """Delete the stored state and dependencies of units.

    Args:
        database: The library, in a transaction.
        kind: The source's kind.
        root: The units' root.
        keys: The units' keys.
    """
    depending.drop(database, kind, root, keys)
    database.connection.executemany(
        "DELETE FROM source_units WHERE kind = ? AND root = ? AND key = ?",
        ((kind, clean(str(root)), key) for key in keys),
    )


def forget_elsewhere(database: Database, job: Job, session_id: str) -> list[depending.Where]:
    """Delete the state of other units that had a session, which has moved to this unit.

    Its file may return to the old place and is then read again.

    Args:
        database: The library, in a transaction.
        job: The unit that has the session now.
        session_id: The session.

    Returns:
        Those units.
    """
    return database.connection.execute(
        "DELETE FROM source_units WHERE session_id = ? AND kind = ? AND (root, key) <> (?, ?)"
        " RETURNING kind, root, key",
        (session_id, *where(job)),
    ).fetchall()


def read_others_again(
    database: Database, kind: str, session_id: str, besides: Collection[depending.Where]
) -> list[depending.Where]:
    """Let units that claim to be a session count as moved, because another one changed.

    Args:
        database: The library, in a transaction.
        kind: The source's kind.
        session_id: The session.
        besides: Units that are left out.

    Returns:
        Those units.
    """
    found: dict[depending.Where, None] = {}
    for one in (session_id, *copies_of(database.connection, session_id)):
        rows = database.connection.execute(
            "SELECT kind, root, key FROM source_units"
            " WHERE instr(stamp_json, ?) > 0 AND kind = ?",
            (one, kind),
        )
        found |= dict.fromkeys(row for row in rows if row not in besides)
    read_again(database, found)
    return list(found)


def read_again(database: Database, wheres: Iterable[depending.Where]) -> None:
    """Let units count as moved; call it in a transaction."""
    database.connection.executemany(
        "UPDATE source_units SET stamp_json = json_set(stamp_json, '$[1]', json('[]'))"
        " WHERE (kind, root, key) = (?, ?, ?)",
        list(wheres),
    )


def key_of(unit: Unit) -> str:
    """Return a unit's key as it is stored."""
    return unit.key if unit.key.isascii() else clean(unit.key)
