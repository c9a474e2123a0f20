"""Reads what changed in the open session, and brings the document up to date.

What was written lies nearly always near the end, so the document is replaced from the
first message that was written on; where that is too far up, the skeleton is read whole.

Other programs do not say what they write, and their rows may come, go or change anywhere.
Reading all of a long session after each change would take the interpreter from the screen;
so small slices are compared with rests between, from the end to the start, and the session
is read whole only where one differs.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from store.engine.database import Database
from store.queries import refresh
from store.queries.refresh import Span
from store.queries.transcript import Keyset, outline_range, rows_of
from store.rows import MessageRow, PartRow
from tui.transcript.document import Document, Key
from tui.transcript.measures import newest_message
from tui.transcript.reader import PAGE_MESSAGES, SessionReader
from tui.transcript.skeleton import EMPTY_INDEX, Skeleton, build

REREAD_MESSAGES = 12
"""Messages at the end that are read again where it is not known what was written."""
Change: TypeAlias = Callable[[], None]
LAST_PARTS = 40
"""Parts at the end whose rows come with the skeleton while the end is shown."""
SLICE_MESSAGES = 50
"""Messages in one compared slice: some 2 ms where they hold four parts each."""
REST_SHARE = 9
"""A rest is so many times as long as the slice before it took."""
LEAST_REST_S = 0.005


async def facts(reader: SessionReader, message_ids: Collection[str] = ()) -> refresh.Facts | None:
    """Read the session's row, activity and children; the reader takes the row."""
    found = await reader.store.read(
        refresh.facts, reader.row.id, reader.store.clock(), message_ids
    )
    if found is not None:
        reader.row = found.session
    return found


async def reread(
    reader: SessionReader, document: Document, written: set[str] | None,
    places: Mapping[str, Keyset], *, at_end: bool, shown: range,
) -> tuple[int, Change] | None:
    """Read what changed in a complete document, from the first written message on.

    Args:
        reader: The session.
        document: What is shown of it.
        written: The messages that were written; None where that is not known.
        places: Where those of them are that exist.
        at_end: Whether the end is shown, so that new parts are wanted at once.
        shown: The parts on the screen.

    Returns:
        That message's number, and a function that updates the document, to be called before
        anything else is awaited; None where the message is too far up.
    """
    if not reader.in_display_order:
        return None
    skeleton = document.skeleton
    start = first_changed(skeleton, written, places)
    if len(skeleton.message_ids) - start > PAGE_MESSAGES:
        return None
    after = (skeleton.created[start - 1], skeleton.message_ids[start - 1]) if start else None
    spans = _spans(skeleton.key(part) for part in shown
                   if written is None or skeleton.key(part)[0] in written)
    again = await reader.store.read(
        refresh.end_after, reader.row.id, after, PAGE_MESSAGES, spans, LAST_PARTS if at_end else 0
    )
    if not again.whole:
        return None
    stale = set(skeleton.message_ids[start:]) if written is None else set(written)
    stale |= {span[0] for span in spans}

    def change() -> None:
        document.forget_rows(stale, _keys(again.parts, again.messages))
        document.put(again.messages, again.parts)
        document.regrow(start, again.outlines)

    return start, change


async def renew(reader: SessionReader, document: Document, shown: range) -> Change:
    """Read the rows on the screen again.

    Returns:
        A function that takes them and drops all others, which may have changed; to be called
        before anything else is awaited.

    Args:
        reader: The session.
        document: What is shown of it.
        shown: The parts on the screen.
    """
    spans = _spans(document.skeleton.key(part) for part in shown)
    messages, parts = await reader.store.read(rows_of, spans)

    def change() -> None:
        document.keep_rows(_keys(parts, messages))
        document.put(messages, parts)

    return change


def first_changed(
    skeleton: Skeleton, written: set[str] | None, places: Mapping[str, Keyset]
) -> int:
    """Return the first message from which a skeleton must be read again.

    Args:
        skeleton: Of the document that is shown.
        written: The messages that were written; None where that is not known.
        places: Where those of them are that exist.
    """
    ordered = skeleton.ordered
    start = ordered
    if written is None:
        start = max(0, newest_message(skeleton) - REREAD_MESSAGES)
    else:
        start = min(start, skeleton.first_of(written))
    for place in places.values():
        start = min(start, _place(skeleton, place, ordered))
    # Queued messages come last, whenever they were written: all of them are read again.
    for message in range(ordered, len(skeleton.message_ids)):
        own = skeleton.created[message], skeleton.message_ids[message]
        start = min(start, _place(skeleton, own, ordered))
    return start


def _place(skeleton: Skeleton, place: Keyset, ordered: int) -> int:
    """Return the position of a message among those in order, where it is or would be."""
    return bisect_left(
        range(ordered), place, key=lambda n: (skeleton.created[n], skeleton.message_ids[n])
    )


def _spans(keys: Iterable[Key]) -> list[Span]:
    spans: dict[str, Span] = {}
    for message_id, index in keys:
        _id, low, high = spans.get(message_id, (message_id, index, index))
        spans[message_id] = (message_id, min(low, index), max(high, index))
    return list(spans.values())


def _keys(parts: Iterable[PartRow], messages: Iterable[MessageRow]) -> set[Key]:
    """Return the keys of rows; messages alone count as their empty part."""
    found = {(part.message_id, part.index) for part in parts}
    return found | {(message.id, EMPTY_INDEX) for message in messages}


async def differs(reader: SessionReader, document: Document, *, rested: bool) -> bool:
    """Return whether the skeleton in the store differs from the one that is shown.

    Queued messages are left out: they are read again with every change.

    Args:
        reader: The session.
        document: What is shown of it; its end may grow meanwhile.
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
                _slice, reader.row.id, _keyset(skeleton, start - 1), _keyset(skeleton, stop - 1)))
            if not skeleton.holds(start, stop, found):
                return skeleton is document.skeleton
        stop = start
        if rested and stop:
            await asyncio.sleep(max(
                LEAST_REST_S, REST_SHARE * (time.perf_counter() - started)))
    return False


def _keyset(skeleton: Skeleton, message: int) -> Keyset | None:
    return (skeleton.created[message], skeleton.message_ids[message]) if message >= 0 else None


def _slice(
    session_id: str, after: Keyset | None, until: Keyset | None, db: Database
) -> Skeleton:
    found = outline_range(db, session_id, after, until, 2 * SLICE_MESSAGES)
    return build(outline for outline in found if outline.queued_at is None)
