"""Which blocks have a term, told by one row for all blocks that are full.

Without it each search would ask each block for its terms, and take longer the larger the store
is. A full block has a slot, a number that is given again once the block is gone; for each term
there is a bitmap of the slots of the blocks with the term. Small blocks, which are merged soon,
have no slot: there are few of them, and each is asked.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import NamedTuple

from store.search.index.terms import Needle

ADDED_AT = 4
"""So many full blocks without a slot get theirs together."""
MOST_ADDED = 16
"""At once; an index that was just built has many."""


class Added(NamedTuple):
    """Full blocks with the slots that they get, and the new rows of their terms."""

    slots: dict[int, int]
    rows: list[tuple[bytes, bytes]]


def added(connection: sqlite3.Connection, full: int) -> Added | None:
    """Return what gives slots to blocks that have none; None while there are few.

    Args:
        connection: The index; it must not change until ``write_added``.
        full: A block with so many current documents is full.
    """
    blocks = [number for number, alive in connection.execute(
        "SELECT number, alive FROM block WHERE slot IS NULL"
    ) if int.from_bytes(alive, "little").bit_count() >= full]  # fmt: skip
    if len(blocks) < ADDED_AT:
        return None
    taken = {slot for (slot,) in connection.execute("SELECT slot FROM block")}
    free = (slot for slot in count() if slot not in taken)
    slots = dict(zip(islice(blocks, MOST_ADDED), free, strict=False))
    bits: defaultdict[bytes, int] = defaultdict(int)
    for block, slot in slots.items():
        bit = 1 << slot
        for (term,) in connection.execute("SELECT term FROM posting WHERE block = ?", (block,)):
            bits[term] |= bit
    for term, known in connection.execute("SELECT term, slots FROM term_blocks"):
        if term in bits:
            bits[term] |= int.from_bytes(known, "little")
    return Added(slots, [(term, _stored(bits[term])) for term in sorted(bits)])


def write_added(connection: sqlite3.Connection, done: Added) -> None:
    """Give blocks their slots, within the caller's transaction."""
    connection.executemany("INSERT OR REPLACE INTO term_blocks VALUES (?, ?)", done.rows)
    connection.executemany(
        "UPDATE block SET slot = ? WHERE number = ?",
        [(slot, block) for block, slot in done.slots.items()])


def take_out(
    connection: sqlite3.Connection, block: int, terms: Iterable[bytes] | None = None
) -> None:
    """Note that a block has some terms no more, within the caller's transaction.

    Args:
        connection: The index.
        block: The block's number.
        terms: The terms; None for all, which are still in the block.
    """
    (slot,) = connection.execute("SELECT slot FROM block WHERE number = ?", (block,)).fetchone()
    if slot is None:
        return
    if terms is None:
        terms = [term for (term,) in connection.execute(
            "SELECT term FROM posting WHERE block = ?", (block,))]  # fmt: skip
    kept: list[tuple[bytes, bytes]] = []
    gone: list[tuple[bytes]] = []
    for term in terms:
        row = connection.execute(
            "SELECT slots FROM term_blocks WHERE term = ?", (term,)).fetchone()
        left = int.from_bytes(row[0], "little") & ~(1 << slot) if row is not None else 0
        if left:
            kept.append((_stored(left), term))
        else:
            gone.append((term,))
    connection.executemany("UPDATE term_blocks SET slots = ? WHERE term = ?", kept)
    connection.executemany("DELETE FROM term_blocks WHERE term = ?", gone)


def slots_with(connection: sqlite3.Connection, needles: Sequence[Needle]) -> int:
    """Return the slots of the blocks that have all terms of some texts, as a bitmap.

    Args:
        connection: The index.
        needles: What is asked for; at least one.
    """
    found = -1
    for needle in needles:
        if needle.prefix:
            some = 0
            for (slots,) in connection.execute(
                "SELECT slots FROM term_blocks WHERE term >= ? AND term < ?",
                (needle.prefix, needle.prefix + b"\xff"),
            ):
                some |= int.from_bytes(slots, "little")
            found &= some
        else:
            marks = ",".join("?" * len(needle.terms))
            rows = connection.execute(
                f"SELECT slots FROM term_blocks WHERE term IN ({marks})", needle.terms).fetchall()
            if len(rows) < len(needle.terms):
                return 0
            for (slots,) in rows:
                found &= int.from_bytes(slots, "little")
        if not found:
            break
    return found


def _stored(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) >> 3, "little")
