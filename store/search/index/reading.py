"""Reads a store's search index: the messages that may hold some texts, newest first."""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from store.engine import changes
from store.engine.database import Database
from store.engine.values import text
from store.errors import StoreError
from store.search.index import sidecar
from store.search.index.documents import TITLE
from store.search.index.postings import Body, decoded, places_of
from store.search.index.sidecar import (
    EVERYTHING,
    LARGE_BACKLOG,
    NOTHING,
    IndexUnusable,
    number_of,
)
from store.search.index.term_blocks import slots_with
from store.search.index.terms import Needle, needle_of
from store.system.paths import real_path

__all__ = ["Candidate", "Coverage", "Index", "IndexUnusable", "open_index"]

MOST_CHANGED = 2_000
"""Changed messages that are named at once; more are a backlog."""
_FIRST_ROWS, _MOST_ROWS = 32, 512


class Candidate(NamedTuple):
    """A message, or a session's title, that may hold the texts that are searched.

    Attributes:
        message_id: None for the session's title.
        created_at: Of the message; of the session for a title. Epoch ms.
        parts: Ranges of ``chat_parts.index`` (first and last) outside which none of the texts
            is; empty if they may be in any part.
    """

    session_id: str
    message_id: str | None
    created_at: int
    parts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a store is in its index.

    Attributes:
        messages: Number of messages and titles in the index.
        total: Number of messages in the store, when the indexer last counted them.
        since: Messages and titles created after this time (epoch ms) are in the index, but for
            those of ``Index.changed``. Below the time of every message once the index is whole.
        whole: Whether all messages and titles are in the index, but for those of
            ``Index.changed``.
    """

    messages: int
    total: int
    since: int
    whole: bool


_Listed = tuple[int, int, int, int]


class _Blocks(NamedTuple):
    """The blocks of an index in one state of its file.

    Attributes:
        version: ``PRAGMA data_version`` of the connection.
        messages: How many messages they hold that are current.
        listed: ``(number, size, newest, oldest)`` of each, the newest first.
        by_slot: Those that have a slot (see ``term_blocks``).
        loose: Those that have none.
    """

    version: int
    messages: int
    listed: list[_Listed]
    by_slot: dict[int, _Listed]
    loose: list[_Listed]


class Index:
    """An open index; each call reads its current state. For one thread at a time.

    The file may be deleted and made again at any time: the next call opens the new one.
    """

    def __init__(self, store: Path, path: Path, connection: sqlite3.Connection) -> None:
        """Take an open index; ``open_index`` makes one.

        Args:
            store: The store's file.
            path: The index file.
            connection: A reading connection to it.
        """
        self._store, self._path = store, path
        self._connection: sqlite3.Connection | None = connection
        self._inode = path.stat().st_ino
        self._readers = 0
        self._known: _Blocks | None = None

    def candidates(self, texts: Sequence[str], *, before: int | None = None) -> Iterator[Candidate]:
        """Yield messages that may hold all the texts, and titles, the newest first.

        The order is that of ``created_at``; within one millisecond it is arbitrary. Blocks of
        the index are read as the iterator advances, so that the first candidates are cheap.

        Args:
            texts: Words and phrases as typed. Every message that holds all of them, as
                ``store.language.matching`` compares texts, is among the candidates: also
                for texts of one or two characters, and without any text all messages.
            before: Only what was created at this time (epoch ms) or earlier.

        Raises:
            IndexUnusable: The file is damaged.
        """
        with self._reading() as connection:
            if connection is None:
                return
            newest = NOTHING if before is None else before
            needles = _needles(texts)
            upcoming = _blocks(connection, self._blocks(connection), newest, needles)
            following = next(upcoming, None)
            heap: list[tuple[int, int, Candidate, Iterator[Candidate]]] = []
            order = 0
            while heap or following is not None:
                while following is not None and (not heap or following.newest >= -heap[0][0]):
                    found = following.candidates(needles, newest)
                    if (first := next(found, None)) is not None:
                        order += 1
                        heapq.heappush(heap, (-first.created_at, order, first, found))
                    following = next(upcoming, None)
                if not heap:
                    return
                _, place, candidate, rest = heap[0]
                yield candidate
                after = next(rest, None)
                if after is None:
                    heapq.heappop(heap)
                else:
                    heapq.heapreplace(heap, (-after.created_at, place, after, rest))

    def count(self, texts: Sequence[str]) -> int:
        """Return how many candidates there are: at least the number of messages with hits.

        Raises:
            IndexUnusable: The file is damaged.
        """
        with self._reading() as connection:
            if connection is None:
                return 0
            needles = _needles(texts)
            return sum(
                block.matching(needles)[0].bit_count()
                for block in _blocks(connection, self._blocks(connection), NOTHING, needles)
            )

    def coverage(self) -> Coverage:
        """Return how much of the store is in the index.

        Raises:
            IndexUnusable: The file is damaged.
        """
        with self._reading() as connection:
            if connection is None or not self._is_of_store(connection):
                return Coverage(0, 0, NOTHING, False)
            messages = self._blocks(connection).messages
            since = number_of(connection, "since", NOTHING)
            if number_of(connection, "backlog") > LARGE_BACKLOG:
                since = NOTHING
            total = max(messages, number_of(connection, "total"))
            return Coverage(messages, total, since, since == EVERYTHING)

    def _blocks(self, connection: sqlite3.Connection) -> _Blocks:
        """Return which blocks there are; they are read once for each state of the file."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if self._known is None or self._known.version != version:
            rows = connection.execute(
                "SELECT number, size, newest, oldest, slot, alive, heads FROM block"
                " ORDER BY newest DESC"
            ).fetchall()
            messages = sum(
                (int.from_bytes(alive, "little") & int.from_bytes(heads, "little")).bit_count()
                for *_, alive, heads in rows
            )
            self._known = _Blocks(
                version, messages, [row[:4] for row in rows],
                {row[4]: row[:4] for row in rows if row[4] is not None},
                [row[:4] for row in rows if row[4] is None])
        return self._known

    def changed(self, database: Database) -> list[str]:
        """Return the ids of messages that changed since the index was brought up to date.

        They are to be searched in the rows. Usually there are none, or those of running
        sessions. Of a session of which anything may have changed, the last ones are returned.

        Args:
            database: The open store.

        Raises:
            IndexUnusable: The file is damaged.
        """
        with self._reading() as connection:
            if connection is None:
                return []
            if database.form.name == "own":
                _, moved = changes.since(database, number_of(connection, "seq"))
                found: dict[str, None] = {}
                for session, messages in moved.sessions.items():
                    found |= dict.fromkeys(
                        _last_messages(database, session) if messages is None else messages)
                if moved.sessions or not moved.vague:
                    return list(found)[:MOST_CHANGED]
            rowids = [number_of(connection, name) for name in ("message_rowid", "part_rowid")]
            return _newer_rows(database, *rowids)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = self._known = None

    def _is_of_store(self, connection: sqlite3.Connection) -> bool:
        try:
            identity = sidecar.store_identity(real_path(self._store))
        except OSError:
            return False
        return sidecar.value_of(connection, "store") == identity

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give the connection in a read transaction; None if there is no index now."""
        if not self._readers:
            self._open_again_if_replaced()
        connection = self._connection
        if connection is None:
            yield None
            return
        self._readers += 1
        try:
            if self._readers == 1:
                connection.execute("BEGIN")
            yield connection
        except sqlite3.DatabaseError as error:
            if sidecar.is_damage(error):
                self._remove()
            raise sidecar.unusable(self._path, error) from error
        finally:
            self._readers -= 1
            if not self._readers and connection.in_transaction:
                connection.execute("ROLLBACK")

    def _remove(self) -> None:
        """Delete the damaged file, so that its indexer, which may not have noticed, makes it anew.

        Where it cannot be deleted, searches go on without it.
        """
        with contextlib.suppress(OSError):
            if os.stat(self._path).st_ino == self._inode:
                sidecar.remove_files(self._path)

    def _open_again_if_replaced(self) -> None:
        try:
            inode = os.stat(self._path).st_ino
        except FileNotFoundError:
            inode = -1
        if inode != self._inode or self._connection is None:
            self.close()
            self._connection, self._inode = sidecar.open_for_reading(self._path), inode


def open_index(store: Path) -> Index | None:
    """Return the index of a store, opened for reading; None if there is none that can be used.

    Args:
        store: The store's file.
    """
    try:
        path = sidecar.index_path(store)
        connection = sidecar.open_for_reading(path)
        if connection is None:
            return None
        return Index(store, path, connection)
    except (StoreError, OSError):
        return None  # The search itself reports a store that cannot be read.


class _Block(NamedTuple):
    connection: sqlite3.Connection
    number: int
    size: int
    newest: int

    def matching(self, needles: Sequence[Needle]) -> tuple[int, int]:
        """Return the messages that may hold all texts, by their first documents.

        Returns:
            Those, and the documents that may hold one of the texts.
        """
        holding = []
        for needle in needles:
            holding.append(self._with(needle))
            if not holding[-1]:
                return 0, 0
        stored = self.connection.execute(
            "SELECT alive, heads FROM block WHERE number = ?", (self.number,)).fetchone()
        alive, heads = (int.from_bytes(each, "little") for each in stored)
        single = heads & alive == alive
        found, anywhere = -1, 0
        for documents in holding:
            current = documents & alive
            anywhere |= current
            found &= current if single else _heads_of(current, heads)
        return (found, anywhere) if needles else (heads & alive, alive)

    def _with(self, needle: Needle) -> int:
        """Return the documents that may hold a text."""
        read = self.connection.execute
        if needle.prefix:
            rows = read(
                "SELECT body FROM posting WHERE block = ? AND term >= ? AND term < ?",
                (self.number, needle.prefix, needle.prefix + b"\xff"),
            ).fetchall()
            found = 0
            for (body,) in rows:
                found |= decoded(body, self.size)
            return found
        marks = ",".join("?" * len(needle.terms))
        bodies: list[Body] = [body for (body,) in read(
            f"SELECT body FROM posting WHERE block = ? AND term IN ({marks})",
            (self.number, *needle.terms),
        )]  # fmt: skip
        if len(bodies) < len(needle.terms):
            return 0
        found = -1
        # The rarest first: most blocks have no document with the first two or three terms.
        for body in sorted(bodies, key=_length):
            found &= decoded(body, self.size)
            if not found:
                break
        return found

    def candidates(self, needles: Sequence[Needle], newest: int) -> Iterator[Candidate]:
        """Yield the messages that may hold all texts, the newest first."""
        found, anywhere = self.matching(needles)
        places = places_of(found)
        count = _FIRST_ROWS
        while some := list(islice(places, count)):
            count = min(2 * count, _MOST_ROWS)
            marks = ",".join(map(str, some))
            rows = self.connection.execute(
                "SELECT s.id, m.id, m.created_at, m.place, m.documents, m.ranges_json"
                " FROM message m JOIN session s ON s.number = m.session"
                f" WHERE m.block = ? AND m.place IN ({marks})", (self.number,)
            ).fetchall()  # fmt: skip
            rows.sort(key=lambda row: -row[2])
            for session, message, created_at, place, documents, ranges in rows:
                if created_at > newest:
                    continue
                parts: tuple[tuple[int, int], ...] = ()
                if documents > 1 and needles:
                    inside = anywhere >> place & ((1 << documents) - 1)
                    parts = tuple(
                        (first, last) for number, (first, last) in enumerate(json.loads(ranges))
                        if inside >> number & 1
                    )
                yield Candidate(session, None if message == TITLE else message, created_at, parts)


def _heads_of(documents: int, heads: int) -> int:
    """Return the first documents of the messages of some documents.

    Args:
        documents: The documents.
        heads: The first documents of all messages of the block.
    """
    found = documents & heads
    for place in places_of(documents & ~heads):
        found |= 1 << (heads & ((1 << place) - 1)).bit_length() - 1
    return found


def _length(body: Body) -> int:
    return 0 if isinstance(body, int) else len(body)


def _blocks(
    connection: sqlite3.Connection, blocks: _Blocks, newest: int, needles: Sequence[Needle]
) -> Iterator[_Block]:
    """Yield the blocks that may have some texts, the newest first.

    Args:
        connection: To the index.
        blocks: All of them.
        newest: Blocks of later messages alone are left out.
        needles: The texts.
    """
    listed = blocks.listed
    if needles and blocks.by_slot:
        found = slots_with(connection, needles)
        listed = [blocks.by_slot[slot] for slot in places_of(found)] + blocks.loose
        listed.sort(key=lambda block: -block[2])
    for number, size, latest, oldest in listed:
        if oldest <= newest:
            yield _Block(connection, number, size, latest)


def _needles(texts: Sequence[str]) -> list[Needle]:
    return [
        needle for each in dict.fromkeys(texts) if (needle := needle_of(each)) is not None
    ]


def _last_messages(database: Database, session_id: str) -> list[str]:
    rows = database.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at DESC LIMIT ?",
        (session_id, MOST_CHANGED),
    )
    return [text(row[0]) or "" for row in rows.fetchall()]


def _newer_rows(database: Database, message_rowid: int, part_rowid: int) -> list[str]:
    found: dict[str, None] = {}
    for column, table, rowid in (
        ("id", "chat_messages", message_rowid), ("message_id", "chat_parts", part_rowid)
    ):  # fmt: skip
        rows = database.connection.execute(
            f"SELECT {column} FROM {table} WHERE rowid > ? ORDER BY rowid DESC LIMIT ?",
            (rowid, MOST_CHANGED),
        )
        found |= dict.fromkeys(text(row[0]) or "" for row in rows.fetchall())
    return list(found)[:MOST_CHANGED]


