"""What sync has read already, with the stamps the files had then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from store.engine.database import Database
from store.engine.server_url import Root
from store.sources.base.protocol import FileStamp, Source, Unit
from store.sync import depending
from store.sync.jsontext import clean, json_text
from store.system.clock import Clock

Excludes = Callable[[str | None], bool]
"""Says whether sessions of a workspace stay out of the store."""


@dataclass(slots=True)
class Job:
    """A unit that moved since it was read, or never was.

    Attributes:
        stored: The unit's ``stamp_json`` when it was listed; None when it is new.
        attempts: How often another sync was found to have written it meanwhile.
        whole: Whether it is read for more than what was added to its files.
    """

    source: Source
    root: Root
    unit: Unit
    stored: str | None
    attempts: int = 0
    whole: bool = False


@dataclass(slots=True)
class UnitState:
    """What ``source_units.stamp_json`` says.

    Attributes:
        version: The source's ``version`` when it read; a newer one reads again.
        files: Path, inode, size and mtime (ns) of each file.
        offsets: Consumed bytes of each file.
        excluded: Workspaces whose sessions were left out.
        sessions: Ids of the sessions that the unit held.
    """

    version: int
    files: list[list[str | int]]
    offsets: list[int]
    excluded: list[str]
    sessions: list[str]

    @classmethod
    def parse(cls, text: str) -> UnitState:
        """Read it back."""
        return cls(*orjson.loads(text))

    def text(self) -> str:
        """Return it as it is stored."""
        return json_text([self.version, self.files, self.offsets, self.excluded, self.sessions])


ROWS_VERSION = 1
"""Raised when sync makes other rows of the same drafts: every unit is read again then."""


def version_of(source: Source) -> int:
    """Return the version of the rows that a source's units become; a source has 1 or its own."""
    return 1000 * ROWS_VERSION + int(getattr(source, "version", 1))


def state_of(
    source: Source, stamps: Sequence[FileStamp], excluded: list[str], sessions: list[str]
) -> UnitState:
    """Return what to remember of a unit that was read."""
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
    """Return ``stamp_json`` by key of what was read below a root."""
    return dict(
        database.connection.execute(
            "SELECT key, stamp_json FROM source_units WHERE kind = ? AND root = ?",
            (kind, clean(str(root))),
        )
    )


def stored_unit(database: Database, job: Job) -> str | None:
    """Return ``stamp_json`` of one unit as it is now."""
    row = database.connection.execute(
        "SELECT stamp_json FROM source_units WHERE kind = ? AND root = ? AND key = ?",
        (job.source.kind, clean(str(job.root)), clean(job.unit.key)),
    ).fetchone()
    return row[0] if row else None


def same_mapping(job: Job) -> bool:
    """Say whether a unit was last read with the mapping that its source has now."""
    stored = job.stored
    return stored is None or UnitState.parse(stored).version == version_of(job.source)


def moved(source: Source, unit: Unit, stored: str | None, excludes: Excludes) -> bool:
    """Return whether a unit has to be read (again)."""
    if stored is None:
        return True
    state = UnitState.parse(stored)
    return (
        state.version != version_of(source)
        or state.files != _files(unit.stamps)
        or not all(excludes(workspace) for workspace in state.excluded)
    )


def where(job: Job) -> tuple[str, str, str]:
    """Return kind, root and key of a job's unit as they are stored."""
    return job.source.kind, clean(str(job.root)), key_of(job.unit)


def save(database: Database, job: Job, state: UnitState, clock: Clock) -> None:
    """Remember that a unit was read."""
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
    """Forget that units were read, and what they depended on."""
    depending.drop(database, kind, root, keys)
    database.connection.executemany(
        "DELETE FROM source_units WHERE kind = ? AND root = ? AND key = ?",
        ((kind, clean(str(root)), key) for key in keys),
    )


def forget_elsewhere(database: Database, job: Job, session_id: str) -> None:
    """Forget that a session was read from where it no longer lies: it may come back there."""
    database.connection.execute(
        "DELETE FROM source_units WHERE session_id = ? AND kind = ? AND (root, key) <> (?, ?)",
        (session_id, *where(job)),
    )


def key_of(unit: Unit) -> str:
    """Return a unit's key as it is stored."""
    return unit.key if unit.key.isascii() else clean(unit.key)
