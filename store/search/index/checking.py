"""Compares an index with its store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from store.engine.database import Database, open_database
from store.search.index import sidecar
from store.search.index.documents import TITLE, at_rowid, message_texts, newest_first
from store.search.index.postings import decoded, places_of
from store.search.index.terms import term_of

Sum = tuple[int, int]
"""Number of a document's terms, and a checksum of them that does not depend on their order."""


def check(store: Path) -> list[str]:
    """Return a sentence for each difference between a store's index and its rows.

    Args:
        store: The store's file. Changes that were not indexed yet are differences.

    Raises:
        StoreError: The store cannot be opened.
    """
    path = sidecar.index_path(store)
    index = sidecar.open_for_reading(path)
    if index is None:
        return [f"there is no index at {path}"]
    database = open_database(store, write=False)
    try:
        index.execute("BEGIN")
        return list(_differences(database, index))
    except sqlite3.DatabaseError as error:
        raise sidecar.unusable(path, error) from error
    finally:
        database.close()
        index.close()


def _differences(database: Database, index: sqlite3.Connection) -> Iterator[str]:
    entries: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    for session, message, *place in index.execute(
        "SELECT s.id, m.id, m.block, m.place, m.documents, m.created_at"
        " FROM message m JOIN session s ON s.number = m.session"
    ):
        if (session, message) in entries:
            yield f"{_named(session, message)} is in the index twice"
        entries[session, message] = (place[0], place[1], place[2], place[3])
    sums, strays = _sums(index)
    yield from strays
    yield from _wrong_slots(index)
    for rowid in newest_first(database, sidecar.NOTHING):
        message_key = at_rowid(database, rowid)
        if message_key is None:
            continue
        name = _named(message_key.session_id, message_key.id)
        entry = entries.pop((message_key.session_id, message_key.id), None)
        if entry is None:
            yield f"{name} is not in the index"
            continue
        block, place, documents, created_at = entry
        expected = [_sum_of(each.terms) for each in message_texts(database, message_key).documents]
        indexed = [sums.get((block, place + number), (0, 0)) for number in range(documents)]
        if expected != indexed or created_at != message_key.created_at:
            yield f"{name} is not in the index as it is in the store"
    for session, message in entries:
        yield f"{_named(session, message)} is in the index, but not in the store"


def _named(session: str, message: str) -> str:
    return f"the title of session {session}" if message == TITLE else f"message {message}"


def _sum_of(terms: set[int]) -> Sum:
    total = 0
    for term in terms:
        total ^= crc32(term_of(term))
    return len(terms), total


def _sums(index: sqlite3.Connection) -> tuple[dict[tuple[int, int], Sum], list[str]]:
    """Return the sums of all documents in the index, and what belongs to no document."""
    sums: dict[tuple[int, int], Sum] = {}
    strays: list[str] = []
    for block, size, alive in index.execute("SELECT number, size, alive FROM block").fetchall():
        counts, totals = [0] * size, [0] * size
        for term, body in index.execute(
            "SELECT term, body FROM posting WHERE block = ?", (block,)
        ):
            own = crc32(term)
            for place in places_of(decoded(body, size)):
                counts[place] += 1
                totals[place] ^= own
        current = set(places_of(int.from_bytes(alive, "little")))
        dead = {place + number for place, documents in index.execute(
            "SELECT place, documents FROM dead WHERE block = ?", (block,)
        ) for number in range(documents)}  # fmt: skip
        for place in range(size):
            sums[block, place] = counts[place], totals[place]
            if counts[place] and place not in current | dead:
                strays.append(f"document {place} of block {block} belongs to no message")
            if place in current and place in dead:
                strays.append(f"document {place} of block {block} is both current and replaced")
    left = index.execute(
        "SELECT count(*) FROM posting WHERE block NOT IN (SELECT number FROM block)"
    ).fetchone()[0]
    if left:
        strays.append(f"{left} lists belong to no block")
    return sums, strays


def _wrong_slots(index: sqlite3.Connection) -> Iterator[str]:
    """Yield a sentence for each term that is not noted for the full blocks that have it."""
    noted = {
        term: set(places_of(int.from_bytes(slots, "little")))
        for term, slots in index.execute("SELECT term, slots FROM term_blocks")
    }
    expected: dict[bytes, set[int]] = {}
    for term, slot in index.execute(
        "SELECT term, slot FROM block JOIN posting ON block = number WHERE slot IS NOT NULL"
    ):
        expected.setdefault(term, set()).add(slot)
    for term in sorted(noted.keys() | expected.keys()):
        if noted.get(term) != expected.get(term):
            yield f"the full blocks with the term {term!r} are not those that are noted"
