"""Reads a session for its replay: its start at once, the rest in pieces, then what is written.

Pages are read on the store's thread, so that other reads go in between; what takes longer, such
as settling the times of all that was read, is done beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from store.activity.judgement import Activity, current
from store.activity.states import OPEN_STATES
from store.engine.changes import newest
from store.engine.database import Database
from store.events.reading import newest_event
from store.queries.transcript import Child, Extent, Keyset, children, extent, rows_of, title_of
from store.replay.axis import Axis
from store.replay.log import Lives, log_page, message_versions, part_versions
from store.replay.reading import (
    Answer,
    answers_page,
    past_answer,
    place_before,
    timed_page,
    written_since,
)
from store.replay.totals import Totals
from store.rows import SessionRow
from store.system.clock import Clock
from tui.replay.document import Recorded, Recording, ReplayDocument
from tui.state.prices import price_table
from tui.transcript.document import Document
from tui.transcript.item import Setting
from tui.transcript.reader import SessionReader

if TYPE_CHECKING:
    from store.store import Store

PAGE = 250
"""Messages in one read."""
EVENTS = 500
"""Events of the log in one read."""
GROWTH = 3
"""A piece is shown once so many times as much was read as the one before had."""
BEFORE, AFTER = 100, 50
"""Messages around the one to begin at that are read first."""


class Left(NamedTuple):
    """How far the reading is.

    Attributes:
        done: Messages that were read, of all.
        of: How many there are.
        log: Whether only the log is still to be read; then events are counted.
    """

    done: int
    of: int
    log: bool = False


class Piece(NamedTuple):
    """A session as far as it was read.

    Attributes:
        runs: Whether more is expected at its end.
        left: How far the reading is; None where all was read.
        is_window: Whether its start is missing.
    """

    document: ReplayDocument
    axis: Axis
    runs: bool
    left: Left | None
    is_window: bool = False


class ReplayReader(SessionReader):
    """A session whose earlier versions can be read too."""

    async def have(self, document: Document, parts: Iterable[int]) -> bool:
        """Load what parts were, where it is not loaded yet; return whether any was missing."""
        if not isinstance(document, ReplayDocument):
            return await super().have(document, parts)
        numbers = [document.number(part) for part in parts if 0 <= part < len(document)]
        return await self.have_at(document, numbers, document.at)

    async def have_at(self, document: ReplayDocument, numbers: Iterable[int], at: int) -> bool:
        """Load what parts were at a moment, where it is not loaded yet.

        Args:
            document: The session.
            numbers: The parts, by their numbers in the whole session, ascending.
            at: The moment.

        Returns:
            Whether any was missing.
        """
        lacking, session_id = document.lacks(numbers, at), self.row.id
        if lacking.spans:
            document.put(*await self.store.read(rows_of, lacking.spans))
        for number, writes in lacking.parts.items():
            document.put_versions(number, await self.store.read(
                part_versions, session_id, writes, at))
        for message, writes in lacking.messages.items():
            document.put_message_versions(message, await self.store.read(
                message_versions, session_id, writes))
        return bool(lacking)


class SessionReading:
    """Reads one session, and later what was written of it.

    Attributes:
        runs: Whether more is expected at its end.
    """

    def __init__(
        self, store: Store, row: SessionRow, clock: Clock, setting: Callable[[], Setting]
    ) -> None:
        """Read nothing yet.

        Args:
            store: The store.
            row: The session.
            clock: Returns the present, epoch ms.
            setting: Makes the setting of a document.
        """
        self.store, self.row = store, row
        self._clock, self._setting = clock, setting
        self._recording = Recording()
        self._extent: Extent | None = None
        self.runs = False
        self._noted = 0
        self._lives = Lives()
        self._seq = 0
        self._answers: dict[str, Answer] = {}
        self._answered: Keyset | None = None
        """Answers after this message are still to be read; None if all are."""
        self._past: dict[tuple[int, int], Answer | None] = {}
        """What messages used that are gone, by their first and their last event."""
        self._children: list[Child] = []
        self._parent = ""

    def row_at(self, row: SessionRow, at: int) -> SessionRow:
        """Return a session with the title and the model that it had, where the log knows them.

        Args:
            row: The session as it is now.
            at: The moment, epoch ms.
        """
        head = self._lives.head_at(at)
        return row if head is None else replace(
            row, title=head.title, model_json=head.model_json)

    async def pieces(self, around: str | None) -> AsyncIterator[Piece | None]:
        """Read the session; yields what can be shown of it, at first little, at last all.

        Args:
            around: The message to begin at; None for the start of the session.
        """
        store, session_id = self.store, self.row.id
        self._noted = await store.read(newest)
        now, activity = await store.read(_state, self.row, self._clock())
        self._extent, self.runs = now, activity.state in OPEN_STATES
        self._children, self._parent = await store.read(_links, self.row)
        of, shown = now.messages, 0
        if around is not None:
            window = await store.read(_window, session_id, around)
            if window is not None:
                yield await self._piece(window, Left(0, of), is_window=True)
        after: Keyset | None = None
        while (after := await store.read(_add_page, self._recording, session_id, after)):
            done = len(self._recording)
            if done < of and done >= GROWTH * shown and (
                    around is None or self._recording.holds(around)):
                shown = done
                yield await self._piece(self._recording, Left(done, of))
        events = await store.read(newest_event, session_id)
        if events > EVENTS:
            yield await self._piece(self._recording, Left(0, events, log=True))
        await self._read_log()
        yield await self._piece(self._recording, None)

    async def renewed(self, row: SessionRow) -> Piece | None:
        """Read what was written since; None where nothing was, and it runs as before.

        Args:
            row: The session as it is now.
        """
        self.row = row
        now, activity = await self.store.read(_state, row, self._clock())
        ran, self.runs = self.runs, activity.state in OPEN_STATES
        if now == self._extent:
            # Its agent may have ended without a word.
            same = ran == self.runs
            return None if same else await self._piece(self._recording, None)
        known = self._extent.touched if self._extent is not None else 0
        self._extent = now
        written = await self.store.read(written_since, row.id, self._noted, known)
        self._noted = written.seq
        self._children, self._parent = await self.store.read(_links, row)
        places = {place for message_id, there in written.places.items()
                  for place in (there, self._recording.place_of(message_id)) if place is not None}
        if places:
            await self._read_from(min(places))
        if not written.is_sure and not await self._has_all():
            await self._read_from(None)
        await self._read_log()
        return await self._piece(self._recording, None)

    async def _read_from(self, place: Keyset | None) -> None:
        """Read from the page of a message to the end; None for all."""
        if place is None:
            self._recording, after = Recording(), None
        else:
            after = self._recording.drop_from(place)
        self._answered = _earlier(self._answered, after)
        while (after := await self.store.read(_add_page, self._recording, self.row.id, after)):
            pass

    async def _has_all(self) -> bool:
        """Return whether as much was read as there is."""
        now = await self.store.read(extent, self.row.id)
        return (len(self._recording), self._recording.parts) == (now.messages, now.parts)

    async def _read_log(self) -> None:
        """Read what the log has since it was read last."""
        after: int | None = self._seq
        while after is not None:
            events, after = await self.store.read(log_page, self.row.id, after, EVENTS)
            self._lives.take(events)
            if after is not None:
                self._seq = after
        self._lives.settle()

    async def _piece(
        self, recording: Recording, left: Left | None, *, is_window: bool = False
    ) -> Piece | None:
        """Return what was read as it is shown; None where that has no parts."""
        runs = self.runs and left is None
        lives = self._lives if left is None and self._seq else None
        setting = self._setting()
        setting.root, setting.children = self.row.workspace_root, self._children
        setting.parent = self._parent

        def made() -> Piece | None:
            recorded = recording.take(lives)
            timeline = recorded.timeline
            if not len(timeline):
                return None
            axis = Axis(timeline.moments, timeline.writing)
            return Piece(ReplayDocument(recorded, setting), axis, runs, left, is_window)

        return await asyncio.to_thread(made)

    async def totals(self, recorded: Recorded) -> Totals:
        """Read what the answers used that were written since it was called last."""
        prices, begin = price_table(), self._answered
        last = after = begin
        while True:
            page, after = await self.store.read(
                answers_page, self.row.id, after, PAGE, prices)
            self._answers.update((answer.message_id, answer) for answer in page)
            if after is None:
                break
            last = after
        if self._answered == begin:
            self._answered = last
        answers, past = list(self._answers.values()), dict[int, Answer]()
        for message, writes in recorded.timeline.past().items():
            key = writes.seqs[0], writes.seqs[-1]
            if key not in self._past:
                self._past[key] = await self.store.read(past_answer, self.row.id, writes, prices)
            if (answer := self._past[key]) is not None:
                past[message] = answer
        return await asyncio.to_thread(Totals, recorded.timeline, answers, past)


def _earlier(one: Keyset | None, other: Keyset | None) -> Keyset | None:
    """Return the earlier of two places; None, the start, where one is or they do not compare."""
    if one is None or other is None or not (isinstance(one[0], int) and isinstance(other[0], int)):
        return None
    return min(one, other)


def _add_page(
    db: Database, recording: Recording, session_id: str, after: Keyset | None
) -> Keyset | None:
    page, after = timed_page(db, session_id, after, PAGE)
    recording.add(page, after)
    return after


def _window(db: Database, session_id: str, message_id: str) -> Recording | None:
    """Return what is around a message; None where that begins with the session."""
    after = place_before(db, session_id, message_id, BEFORE)
    if after is None:
        return None
    recording = Recording()
    recording.add(timed_page(db, session_id, after, BEFORE + AFTER)[0])
    return recording


def _state(db: Database, row: SessionRow, now: int) -> tuple[Extent, Activity]:
    return extent(db, row.id), current(db, row, now)


def _links(db: Database, row: SessionRow) -> tuple[list[Child], str]:
    parent = title_of(db, row.parent_id) if row.parent_id is not None else None
    return children(db, row.id), parent or ""
