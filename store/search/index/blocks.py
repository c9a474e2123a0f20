"""Writes, clears and merges the blocks of an index file.

When a message changes, its new documents go into a new block and the old ones are marked dead;
small blocks, and blocks with many dead documents, are merged. What is forgotten is taken out of
its block's lists at once, and dead documents from time to time.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from store.search.index.documents import MessageKey, MessageTexts
from store.search.index.postings import (
    CAPACITY,
    Body,
    bitmap_width,
    bits_of,
    decoded,
    encoded,
    encoded_bits,
    places_of,
)
from store.search.index.sidecar import message_key
from store.search.index.term_blocks import take_out
from store.search.index.terms import term_of

MERGED_AT = 8
"""So many small blocks of about one size are merged into one."""
FULL = CAPACITY // 2
"""A block with so many current documents is merged no more."""


class Entry(NamedTuple):
    """A message in the index."""

    block: int
    place: int
    documents: int
    created_at: int
    fingerprint: int


@dataclass(slots=True)
class NewBlock:
    """Documents that are written together.

    Attributes:
        size: Number of documents.
        characters: What the texts have together.
    """

    size: int = 0
    characters: int = 0
    messages: list[tuple[MessageKey, int, int, str | None]] = field(default_factory=list)
    places: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, message: MessageKey, texts: MessageTexts) -> None:
        """Add a message that is older than those before, or as old.

        Args:
            message: The message.
            texts: Its documents.
        """
        ranges = None
        if len(texts.documents) > 1:
            ranges = json.dumps([(each.first, each.last) for each in texts.documents])
        self.messages.append((message, self.size, texts.fingerprint, ranges))
        places = self.places
        for document in texts.documents:
            place = self.size
            self.size += 1
            for term in document.terms:
                places[term].append(place)
        self.characters += texts.size

    def postings(self) -> list[tuple[bytes, Body]]:
        """Return the lists of documents, in the order of the file."""
        size = self.size
        return sorted((term_of(term), encoded(listed, size))
                      for term, listed in self.places.items())  # fmt: skip


def write_block(
    connection: sqlite3.Connection, block: NewBlock, postings: list[tuple[bytes, Body]]
) -> None:
    """Write a block, and mark what it replaces as dead, within the caller's transaction.

    Args:
        connection: The index.
        block: The block; messages may be in the index already.
        postings: What ``block.postings`` returned.
    """
    rows = []
    for message, place, fingerprint, ranges in block.messages:
        session = _session_number(connection, message.session_id)
        _bury(connection, session, message.id)
        documents = 1 if ranges is None else len(json.loads(ranges))
        key = message_key(message.id)
        rows.append(_Row(place, session, key, message.id, message.created_at, fingerprint,
                         documents, ranges))  # fmt: skip
    _insert(connection, _Written(block.size, rows, postings))


class _Row(NamedTuple):
    """A row of ``message``, without its block."""

    place: int
    session: int
    key: int
    id: str
    created_at: int
    fingerprint: int
    documents: int
    ranges_json: str | None


class _Written(NamedTuple):
    size: int
    messages: list[_Row]
    postings: list[tuple[bytes, Body]]


def _insert(connection: sqlite3.Connection, block: _Written) -> None:
    width = bitmap_width(block.size)
    times = [row.created_at for row in block.messages]
    heads = bits_of([row.place for row in block.messages], width)
    number = connection.execute(
        "INSERT INTO block(size, newest, oldest, alive, heads) VALUES (?, ?, ?, ?, ?)",
        (block.size, max(times), min(times), ((1 << block.size) - 1).to_bytes(width, "little"),
         heads.to_bytes(width, "little")),
    ).lastrowid  # fmt: skip
    connection.executemany(
        f"INSERT INTO message VALUES ({number}, ?, ?, ?, ?, ?, ?, ?, ?)", block.messages
    )
    connection.executemany(f"INSERT INTO posting VALUES ({number}, ?, ?)", block.postings)


def _session_number(connection: sqlite3.Connection, session_id: str) -> int:
    known = session_number(connection, session_id)
    if known is not None:
        return known
    made = connection.execute("INSERT INTO session(id) VALUES (?)", (session_id,))
    return int(made.lastrowid or 0)


def session_number(connection: sqlite3.Connection, session_id: str) -> int | None:
    """Return the number of a session in the index; None if it has no messages there."""
    row = connection.execute("SELECT number FROM session WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else int(row[0])


def entry_of(connection: sqlite3.Connection, session: int, message_id: str) -> Entry | None:
    """Return the entry of a message; None if it is not in the index.

    Args:
        connection: The index.
        session: The session's number.
        message_id: The message's id.
    """
    row = connection.execute(
        "SELECT block, place, documents, created_at, fingerprint FROM message"
        " WHERE session = ? AND key = ? AND id = ?",
        (session, message_key(message_id), message_id),
    ).fetchone()
    return None if row is None else Entry(*row)


def _bury(connection: sqlite3.Connection, session: int, message_id: str) -> None:
    """Mark the documents of a message as dead."""
    entry = entry_of(connection, session, message_id)
    if entry is None:
        return
    connection.execute(
        "DELETE FROM message WHERE block = ? AND place = ?", (entry.block, entry.place)
    )
    if _set_alive(connection, entry.block, range(entry.place, entry.place + entry.documents)):
        connection.execute(
            "INSERT INTO dead VALUES (?, ?, ?, ?)",
            (entry.block, entry.place, entry.documents, session),
        )


def _set_alive(connection: sqlite3.Connection, block: int, gone: Sequence[int]) -> bool:
    """Take documents out of a block's current ones; False if it had no other and is removed."""
    size, alive = connection.execute(
        "SELECT size, alive FROM block WHERE number = ?", (block,)
    ).fetchone()
    width = bitmap_width(size)
    left = int.from_bytes(alive, "little") & ~bits_of(gone, width)
    if not left:
        drop_block(connection, block)
        return False
    connection.execute(
        "UPDATE block SET alive = ? WHERE number = ?", (left.to_bytes(width, "little"), block)
    )
    return True


def drop_block(connection: sqlite3.Connection, block: int) -> None:
    """Remove a block with all its documents."""
    take_out(connection, block)
    for table in ("posting", "message", "dead"):
        connection.execute(f"DELETE FROM {table} WHERE block = ?", (block,))
    connection.execute("DELETE FROM block WHERE number = ?", (block,))


def remove_messages(
    connection: sqlite3.Connection, session: int, message_ids: Iterable[str] | None = None
) -> None:
    """Remove messages from the index and overwrite them, within the caller's transaction.

    Earlier versions of all messages of their session go too.

    Args:
        connection: The index.
        session: The session's number.
        message_ids: The messages; None removes the whole session.
    """
    gone: dict[int, set[int]] = defaultdict(set)
    for block, place, documents in connection.execute(
        "SELECT block, place, documents FROM dead WHERE session = ?", (session,)
    ).fetchall():
        gone[block].update(range(place, place + documents))
    if message_ids is None:
        found = connection.execute(
            "SELECT block, place, documents FROM message WHERE session = ?", (session,)
        ).fetchall()
    else:
        entries = [entry_of(connection, session, each) for each in message_ids]
        found = [(each.block, each.place, each.documents) for each in entries if each]
    for block, place, documents in found:
        gone[block].update(range(place, place + documents))
    for block, places in gone.items():
        _clear(connection, block, sorted(places))
    if message_ids is None:
        connection.execute("DELETE FROM session WHERE number = ?", (session,))


def _clear(connection: sqlite3.Connection, block: int, gone: list[int]) -> None:
    """Take documents out of all lists of a block."""
    if not _set_alive(connection, block, gone):
        return
    for table in ("message", "dead"):
        connection.executemany(
            f"DELETE FROM {table} WHERE block = ? AND place = ?", ((block, each) for each in gone)
        )
    (size, heads) = connection.execute(
        "SELECT size, heads FROM block WHERE number = ?", (block,)
    ).fetchone()
    dead = bits_of(gone, bitmap_width(size))
    left = int.from_bytes(heads, "little") & ~dead
    connection.execute(
        "UPDATE block SET heads = ? WHERE number = ?",
        (left.to_bytes(bitmap_width(size), "little"), block),
    )
    changed: list[tuple[Body, int, bytes]] = []
    removed: list[tuple[int, bytes]] = []
    for term, body in connection.execute(
        "SELECT term, body FROM posting WHERE block = ?", (block,)
    ).fetchall():
        bits = decoded(body, size)
        if bits & dead:
            kept = encoded_bits(bits & ~dead, size)
            if kept is None:
                removed.append((block, term))
            else:
                changed.append((kept, block, term))
    take_out(connection, block, [term for _, term in removed])
    connection.executemany("DELETE FROM posting WHERE block = ? AND term = ?", removed)
    connection.executemany("UPDATE posting SET body = ? WHERE block = ? AND term = ?", changed)


def block_with_replaced(connection: sqlite3.Connection) -> int | None:
    """Return a block that still holds what newer documents replaced; None if none does."""
    row = connection.execute("SELECT block FROM dead LIMIT 1").fetchone()
    return None if row is None else int(row[0])


def clear_replaced(connection: sqlite3.Connection, block: int) -> None:
    """Overwrite what newer documents replaced in a block, within the caller's transaction."""
    gone = [place + number for place, documents in connection.execute(
        "SELECT place, documents FROM dead WHERE block = ?", (block,)
    ).fetchall() for number in range(documents)]  # fmt: skip
    _clear(connection, block, gone)


def blocks_to_merge(connection: sqlite3.Connection) -> list[int]:
    """Return blocks that are better merged into one now; empty if there are none."""
    tiers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, size, alive in connection.execute(
        "SELECT number, size, alive FROM block ORDER BY newest DESC"
    ):
        current = int.from_bytes(alive, "little").bit_count()
        if current * 2 < size:
            return [number]
        if current < FULL:
            tiers[current.bit_length() // 3].append((number, current))
    for _, tier in sorted(tiers.items()):
        chosen: list[int] = []
        documents = 0
        for number, current in tier:
            if documents + current <= CAPACITY:
                chosen.append(number)
                documents += current
        if len(chosen) >= MERGED_AT or (len(chosen) > 1 and documents >= FULL):
            return chosen
    return []


@dataclass(slots=True)
class Merged:
    """One block made of several; ``write_merged`` puts it in their place."""

    sources: list[int]
    block: _Written


def merged(connection: sqlite3.Connection, blocks: Sequence[int]) -> Merged:
    """Return one block with the current documents of several.

    Args:
        connection: The index; it must not change until ``write_merged``.
        blocks: Their numbers.
    """
    rows: list[tuple[int, _Row]] = []
    for block in blocks:
        rows += [(block, _Row(*row)) for row in connection.execute(
            "SELECT place, session, key, id, created_at, fingerprint, documents, ranges_json"
            " FROM message WHERE block = ?", (block,)
        )]  # fmt: skip
    rows.sort(key=lambda row: (row[1].created_at, row[1].id), reverse=True)
    moved: dict[int, dict[int, int]] = defaultdict(dict)
    messages: list[_Row] = []
    size = 0
    for block, row in rows:
        for number in range(row.documents):
            moved[block][row.place + number] = size + number
        messages.append(row._replace(place=size))
        size += row.documents
    lists: dict[bytes, list[int]] = {}
    for block in blocks:
        places_now = moved[block]
        for term, places in _lists(connection, block):
            now = [places_now[place] for place in places if place in places_now]
            if now:
                lists.setdefault(term, []).extend(now)
    postings = [(term, encoded(sorted(lists[term]), size)) for term in sorted(lists)]
    return Merged(list(blocks), _Written(size, messages, postings))


def write_merged(connection: sqlite3.Connection, done: Merged) -> None:
    """Put a merged block in the place of its sources, within the caller's transaction."""
    for block in done.sources:
        drop_block(connection, block)
    _insert(connection, done.block)


def _lists(connection: sqlite3.Connection, block: int) -> Iterator[tuple[bytes, list[int]]]:
    (size,) = connection.execute("SELECT size FROM block WHERE number = ?", (block,)).fetchone()
    for term, body in connection.execute(
        "SELECT term, body FROM posting WHERE block = ?", (block,)
    ):
        yield term, list(places_of(decoded(body, size)))
