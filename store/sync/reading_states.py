"""Stored positions from which the reading of long units can continue."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Iterable, Set
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
"""Format version of stored states; states of other versions are not used."""
HASH_BYTES = 8
BUCKETS = 256
PAGE_NAMES = 16_384
"""Number of names after which a new page is started."""


class Names:
    """Set of the ids before the position where a unit continues, stored as hashes.

    A hash collision only costs a reading of the whole file. Hashes are stored in pages of
    ``PAGE_NAMES``, each divided into buckets, so that a lookup reads little and adding
    writes little.

    Attributes:
        pages: Number of pages.
        in_last: Number of names in the last page.
    """

    def __init__(
        self, database: Database, reading: int | None, pages: int = 0, in_last: int = 0
    ) -> None:
        """Use the names of a stored state, or start an empty set.

        Args:
            database: The library.
            reading: The state's id; None for an empty set.
            pages: Number of its pages.
            in_last: Number of names in its last page.
        """
        self._database, self._reading = database, reading
        self.pages, self.in_last = pages, in_last
        self._stored = pages
        self._open: dict[int, bytes] = {}
        self._changed: set[int] = set()
        self._added: set[bytes] = set()

    def known(self, names: Collection[str]) -> bool:
        """Return whether the set contains any of some names."""
        hashes = hashes_of(names)
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

    def add(self, names: Set[bytes]) -> None:
        """Add names, by their ``hashes_of``, to the set."""
        if not self.pages or self.in_last >= PAGE_NAMES:
            self.pages, self.in_last = self.pages + 1, 0
        new = names - self._added
        self._added |= new
        self.in_last += len(new)
        buckets: dict[int, list[bytes]] = {}
        for one in new:
            buckets.setdefault((self.pages - 1) * BUCKETS + one[-1], []).append(one)
        self._read(buckets.keys() - self._open.keys())
        for number, hashes in buckets.items():
            self._open[number] = self._open.get(number, b"") + b"".join(hashes)
            self._changed.add(number)

    def _read(self, buckets: Collection[int]) -> None:
        """Read the stored hashes of some buckets of the last page."""
        if self._reading is not None and buckets:
            marks = ", ".join("?" * len(buckets))
            self._open.update(
                self._database.connection.execute(
                    "SELECT bucket, hashes FROM reading_names WHERE reading = ? "
                    f"AND bucket IN ({marks})", (self._reading, *buckets),
                )
            )  # fmt: skip

    def save(self, reading: int) -> None:
        """Write the added names; call it in a transaction."""
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
    """The state from which the reading of a long unit continues.

    Attributes:
        session: Id of the session of its long file.
        sessions: Ids of all its sessions.
        carried: Sums over the messages before the place.
        place: The source's own state.
        names: The ids before the place.
        id: Row id in the library; None if it is not stored yet.
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
    """Content of ``state_json``.

    Attributes:
        stored: Hash of the unit's ``stamp_json``; the state is used only if it matches.
        seal: Hash of place and context, to detect damage.
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
    """Return the state from which a unit can continue; None if it must be read whole.

    Args:
        database: The library.
        job: The unit.
        keep_originals: Whether original records are kept; must equal the stored setting.
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
    """Return whether a session is in the library and its source has lost nothing of it."""
    row = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    if row is None or row[0] is None:
        return False
    source = orjson.loads(row[0])
    return GONE_MESSAGES not in source and not source.get(PARTIAL)


def save(database: Database, job: Job, state: State | None, stored: str) -> None:
    """Store or delete the state of a unit; call it in a transaction.

    Args:
        database: The library.
        job: The unit.
        state: The state; None deletes the stored one.
        stored: The unit's ``stamp_json`` that was just written.
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
            "VALUES (?, ?, ?, ?, ?) RETURNING id",
            (*where, text, context),
        ).fetchone()[0]
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


def hashes_of(names: Iterable[str]) -> set[bytes]:
    """Return the hashes by which names are stored."""
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
