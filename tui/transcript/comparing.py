"""Compares a skeleton with the store, slice by slice, from its end to its beginning.

Of what a host writes nobody tells, and its rows may come, go or change anywhere. Reading
all of a long session whenever it moved would take the interpreter from what is drawn; so
small slices are looked at with rests between, and it is read whole only where one differs.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial

from store.engine.database import Database
from store.queries.transcript import Keyset, outline_range
from tui.transcript.document import Document
from tui.transcript.reader import SessionReader
from tui.transcript.skeleton import Skeleton, build

SLICE_MESSAGES = 50
"""Messages in one slice: some 2 ms where they hold four parts each."""
REST_SHARE = 9
"""So many times as long as a slice took is rested before the next one."""
LEAST_REST_S = 0.005


async def differs(reader: SessionReader, document: Document, *, rested: bool) -> bool:
    """Say whether the store has another skeleton than a document shows.

    Queued messages are left out: they are read again with every change.

    Args:
        reader: The session.
        document: What is shown of it; it may grow at its end meanwhile.
        rested: Rest between two slices.
    """
    skeleton = document.skeleton
    stop = skeleton.ordered
    while stop > 0 and skeleton is document.skeleton:
        started = time.perf_counter()
        async with reader.turn:
            stop = min(stop, skeleton.ordered)
            start = max(0, stop - SLICE_MESSAGES)
            found = await reader.store.read(partial(
                _slice, reader.row.id, _key(skeleton, start - 1), _key(skeleton, stop - 1)))
            if not skeleton.holds(start, stop, found):
                return skeleton is document.skeleton
        stop = start
        if rested and stop:
            await asyncio.sleep(max(
                LEAST_REST_S, REST_SHARE * (time.perf_counter() - started)))
    return False


def _key(skeleton: Skeleton, message: int) -> Keyset | None:
    return (skeleton.created[message], skeleton.message_ids[message]) if message >= 0 else None


def _slice(
    session_id: str, after: Keyset | None, until: Keyset | None, db: Database
) -> Skeleton:
    found = outline_range(db, session_id, after, until, 2 * SLICE_MESSAGES)
    return build(outline for outline in found if outline.queued_at is None)
