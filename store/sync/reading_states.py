"""Where long units can be gone on with: kept in the library beside what was read of them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
import zstandard

from store.database import Database
from store.sources.protocol import Place
from store.sync import units
from store.sync.jsontext import json_text
from store.sync.session_rows import GONE_MESSAGES, PARTIAL, Carried
from store.sync.units import Job, version_of

FORM = 1
"""Raised when what is kept means something else; older states are then not used."""
HASH_BYTES = 8
BUCKETS = 256
LEVEL = 3


class Names:
    """The ids that lie before the place where a unit is gone on with, as hashes.

    Two ids that share a hash cost a reading of the whole file, no more.
    """

    def __init__(self, database: Database, reading: int | None) -> None:
        """Take the names of a kept state; none where there is no such state.

        Args:
            database: A file of ours.
            reading: The state's id.
        """
        self._database, self._reading = database, reading
        self._buckets: dict[int, set[bytes]] = {}
        self._new: dict[int, set[bytes]] = {}

    def known(self, names: Collection[str]) -> bool:
        """Say whether any of some names is among them."""
        return any(one in self._bucket(one[-1]) for one in map(_hash, names))

    def add(self, names: Iterable[str]) -> None:
        """Add names that were passed."""
        for one in map(_hash, names):
            bucket = self._bucket(one[-1])
            if one not in bucket:
                bucket.add(one)
                self._new.setdefault(one[-1], set()).add(one)

    def save(self, reading: int) -> None:
        """Write what was added; call it in a transaction."""
        wanted = self._new if reading == self._reading else self._buckets
        self._database.connection.executemany(
            "INSERT INTO reading_names(reading, bucket, hashes) VALUES (?, ?, ?) "
            "ON CONFLICT(reading, bucket) DO UPDATE SET hashes = excluded.hashes",
            ((reading, bucket, b"".join(sorted(self._buckets[bucket]))) for bucket in wanted),
        )
        self._reading, self._new = reading, {}

    def _bucket(self, number: int) -> set[bytes]:
        if number not in self._buckets:
            self._buckets[number] = set(_cut(self._stored(number)))
        return self._buckets[number]

    def _stored(self, number: int) -> bytes:
        if self._reading is None:
            return b""
        row = self._database.connection.execute(
            "SELECT hashes FROM reading_names WHERE reading = ? AND bucket = ?",
            (self._reading, number),
        ).fetchone()
        return row[0] if row is not None else b""


@dataclass(slots=True)
class State:
    """What is kept of a long unit.

    Attributes:
        session: The id of the session of its long file.
        sessions: The ids of all its sessions.
        carried: What the messages before the place come to.
        place: The source's part.
        names: What lies before the place.
        id: In the library; None where it was not kept yet.
    """

    session: str
    sessions: list[str]
    carried: Carried
    place: Place
    names: Names
    keep_originals: bool
    id: int | None = None


@dataclass(slots=True)
class _Kept:
    """``state_json``.

    Attributes:
        stored: Hash of the unit's ``stamp_json``; another one was written without the state.
    """

    form: int
    version: int
    stored: str
    keep_originals: bool
    session: str
    sessions: list[str]
    carried: list[Any]
    record: int
    place: dict[str, Any] = field(default_factory=dict)


def load(database: Database, job: Job, keep_originals: bool) -> State | None:
    """Return where a unit can be gone on with; None where it has to be read whole.

    Args:
        database: A file of ours.
        job: The unit.
        keep_originals: Whether original records are kept now; they must have been before.
    """
    if job.stored is None:
        return None
    row = database.connection.execute(
        "SELECT id, state_json, context FROM reading_states "
        "WHERE kind = ? AND root = ? AND key = ?",
        units.where(job),
    ).fetchone()
    if row is None:
        return None
    try:
        kept = _Kept(**orjson.loads(row[1]))
        context = zstandard.ZstdDecompressor().decompress(row[2])
        carried = Carried(kept.carried[0], kept.carried[1], tuple(kept.carried[2]))
    except (ValueError, TypeError, IndexError, zstandard.ZstdError):
        return None
    wanted = (FORM, version_of(job.source), _digest(job.stored), keep_originals)
    if (kept.form, kept.version, kept.stored, kept.keep_originals) != wanted:
        return None
    if not _is_whole(database, kept.session):
        return None
    place = Place(0, kept.record, kept.place, context, ())
    names = Names(database, row[0])
    return State(kept.session, kept.sessions, carried, place, names, keep_originals, row[0])


def _is_whole(database: Database, session_id: str) -> bool:
    """Say whether a session is in the library, and its source has all that it had."""
    row = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    if row is None or row[0] is None:
        return False
    source = orjson.loads(row[0])
    return GONE_MESSAGES not in source and not source.get(PARTIAL)


def is_there(database: Database, session_id: str) -> bool:
    """Say whether a session is in the library."""
    row = database.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return row is not None


def save(database: Database, job: Job, state: State | None, stored: str) -> None:
    """Keep where a unit can be gone on with, or that it cannot; call it in a transaction.

    Args:
        database: A file of ours.
        job: The unit.
        state: The state; None drops what is kept.
        stored: The unit's ``stamp_json`` as it was just written.
    """
    connection, where = database.connection, units.where(job)
    if state is None or state.id is None:
        connection.execute(
            "DELETE FROM reading_states WHERE kind = ? AND root = ? AND key = ?", where
        )
    if state is None:
        return
    carried = state.carried
    text = json_text({
        "form": FORM, "version": version_of(job.source), "stored": _digest(stored),
        "keep_originals": state.keep_originals, "session": state.session,
        "sessions": state.sessions, "record": state.place.record,
        "carried": [carried.at, carried.position, list(carried.rollups)],
        "place": state.place.state,
    })  # fmt: skip
    context = zstandard.ZstdCompressor(level=LEVEL).compress(state.place.context)
    if state.id is None:
        state.id = connection.execute(
            "INSERT INTO reading_states(kind, root, key, state_json, context) "
            "VALUES (?, ?, ?, ?, ?)",
            (*where, text, context),
        ).lastrowid
    else:
        connection.execute(
            "UPDATE reading_states SET state_json = ?, context = ? WHERE id = ?",
            (text, context, state.id),
        )
    assert state.id is not None
    state.names.save(state.id)


def _digest(stored: str) -> str:
    return hashlib.blake2b(stored.encode(), digest_size=HASH_BYTES).hexdigest()


def _hash(name: str) -> bytes:
    data = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def _cut(hashes: bytes) -> Iterable[bytes]:
    return (hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES))
