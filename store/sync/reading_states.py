"""Where long units can be continued: kept in the library beside what was read of them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from store.conversation.gone_marks import GONE_MESSAGES, PARTIAL
from store.engine.database import Database
from store.sources.base.protocol import Place
from store.sync import units
from store.sync.blocks import packed
from store.sync.jsontext import json_text
from store.sync.session_rows import Carried
from store.sync.units import Job, version_of
from store.system.compression import DamagedFrame, unpack_frame
from store.usage import Rollups

FORM = 1
"""Raised when what is kept means something else; older states are then not used."""
HASH_BYTES = 8
BUCKETS = 256
PAGE_NAMES = 16_384
"""Names after which another page is begun."""


class Names:
    """The ids that are before the place where a unit is continued, as hashes.

    Two ids that share a hash cost a reading of the whole file, no more. They are kept in
    pages of so many, each page in buckets, so that little is read to look one up and little
    is written to add one.

    Attributes:
        pages: How many pages there are.
        in_last: Names in the last one.
    """

    def __init__(
        self, database: Database, reading: int | None, pages: int = 0, in_last: int = 0
    ) -> None:
        """Take the names of a kept state; none where there is no such state.

        Args:
            database: A library file.
            reading: The state's id.
            pages: Its pages.
            in_last: Names in its last page.
        """
        self._database, self._reading = database, reading
        self.pages, self.in_last = pages, in_last
        self._stored = pages
        self._open: dict[int, bytes] = {}
        self._changed: set[int] = set()
        self._added: set[bytes] = set()

    def known(self, names: Collection[str]) -> bool:
        """Return whether any of some names is among them."""
        hashes = _hashes(names)
        if not self._added.isdisjoint(hashes):
            return True
        buckets: dict[int, list[bytes]] = {}
        for one in hashes:
            buckets.setdefault(one[-1], []).append(one)
        return any(
            _holds(body, one)
            for bucket, wanted in (buckets.items() if self._stored else ())
            for body in self._bodies(bucket)
            for one in wanted
        )

    def add(self, names: Iterable[str]) -> None:
        """Add names that were passed."""
        if not self.pages or self.in_last >= PAGE_NAMES:
            self.pages, self.in_last = self.pages + 1, 0
        new = _hashes(names) - self._added
        self._added |= new
        self.in_last += len(new)
        buckets: dict[int, list[bytes]] = {}
        for one in new:
            buckets.setdefault((self.pages - 1) * BUCKETS + one[-1], []).append(one)
        for number, hashes in buckets.items():
            if number not in self._open:
                self._open[number] = self._body(number) or b""
            self._open[number] += b"".join(hashes)
            self._changed.add(number)

    def save(self, reading: int) -> None:
        """Write what was added; call it in a transaction."""
        self._database.connection.executemany(
            "INSERT INTO reading_names(reading, bucket, hashes) VALUES (?, ?, ?) "
            "ON CONFLICT(reading, bucket) DO UPDATE SET hashes = excluded.hashes",
            ((reading, number, self._open[number]) for number in sorted(self._changed)),
        )
        self._reading = reading
        self._changed.clear()

    def _bodies(self, bucket: int) -> list[bytes]:
        numbers = [page * BUCKETS + bucket for page in range(self._stored)]
        return [body for number in numbers if (body := self._body(number)) is not None]

    def _body(self, number: int) -> bytes | None:
        row = self._database.connection.execute(
            "SELECT hashes FROM reading_names WHERE reading = ? AND bucket = ?",
            (self._reading, number),
        ).fetchone()
        return row[0] if row is not None else None


@dataclass(slots=True)
class State:
    """What is kept of a long unit.

    Attributes:
        session: The id of the session of its long file.
        sessions: The ids of all its sessions.
        carried: The sums over the messages before the place.
        place: The source's part.
        names: What is before the place.
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
        seal: Hash of place and context: what is damaged is not used.
    """

    form: int
    version: int
    stored: str
    keep_originals: bool
    session: str
    sessions: list[str]
    carried: list[Any]
    record: int
    names: list[int]
    seal: str
    place: dict[str, Any] = field(default_factory=dict)


def load(database: Database, job: Job, keep_originals: bool) -> State | None:
    """Return where a unit can be continued; None where it has to be read whole.

    Args:
        database: A library file.
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
        context = unpack_frame(row[2])
        carried = Carried(kept.carried[0], kept.carried[1], Rollups._make(kept.carried[2]))
    except (ValueError, TypeError, IndexError, DamagedFrame):
        return None
    seal = _seal(kept.place, context)
    wanted = (FORM, version_of(job.source), _digest(job.stored), keep_originals, seal)
    if (kept.form, kept.version, kept.stored, kept.keep_originals, kept.seal) != wanted:
        return None
    if not _is_whole(database, kept.session):
        return None
    place = Place(0, kept.record, kept.place, context, ())
    names = Names(database, row[0], *kept.names)
    return State(kept.session, kept.sessions, carried, place, names, keep_originals, row[0])


def _is_whole(database: Database, session_id: str) -> bool:
    """Return whether a session is in the library, and its source has all that it had."""
    row = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    if row is None or row[0] is None:
        return False
    source = orjson.loads(row[0])
    return GONE_MESSAGES not in source and not source.get(PARTIAL)


def is_there(database: Database, session_id: str) -> bool:
    """Return whether a session is in the library."""
    row = database.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return row is not None


def save(database: Database, job: Job, state: State | None, stored: str) -> None:
    """Keep where a unit can be continued, or that it cannot; call it in a transaction.

    Args:
        database: A library file.
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
        "seal": _seal(state.place.state, state.place.context),
        "names": [state.names.pages, state.names.in_last], "place": state.place.state,
    })  # fmt: skip
    context = packed(state.place.context)
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


def _seal(place: dict[str, Any], context: bytes) -> str:
    return _digest(json_text(place) + str(zlib.crc32(context)))


def _digest(stored: str) -> str:
    return hashlib.blake2b(stored.encode(), digest_size=HASH_BYTES).hexdigest()


def _hashes(names: Iterable[str]) -> set[bytes]:
    make = hashlib.blake2b
    return {
        make(name.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()
        for name in names
    }


def _holds(hashes: bytes, one: bytes) -> bool:
    place = hashes.find(one)
    while place % HASH_BYTES and place >= 0:
        place = hashes.find(one, place + 1)
    return place >= 0
