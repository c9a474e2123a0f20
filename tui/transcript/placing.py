"""The one way in which the place changes: in a single step, from what is known at that moment.

While rows are read, the session may grow, be counted, be hidden in part, or give way to
another one. So a step awaits nothing: it finds its parts, moves, and is done. Where it
lacks rows, the place is put back, the rows are read, and the step is done anew from
whatever is shown by then. No number of a part outlives a reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from textual.message_pump import MessagePump

from tui.transcript.pane import TranscriptBase
from tui.transcript.reader import SessionReader
from tui.transcript.standing import Standing

T = TypeVar("T")

PREFETCHED = 40
"""Parts on each side of the screen whose rows are read before they are asked for."""
MOST_READINGS = 12
"""Readings for one step; rows that are missing then are not in the store any more."""


class BeyondWindow(Exception):
    """A step depends on what lies outside the window that was read first."""


class PlacingPane(TranscriptBase):
    """The transcript with its place: the line at the top and the selected part."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start without anything that moves."""
        super().__init__(id=id)
        self._order = asyncio.Lock()

    # Whose turn it is

    @asynccontextmanager
    async def in_order(self) -> AsyncIterator[bool]:
        """Hold back all moves that come later; says whether the session is still the same."""
        reader = self.reader
        await self.sought()
        async with self._order:
            yield reader is not None and reader is self.reader

    async def sought(self) -> None:
        """Wait for a move that was asked for earlier and is still to come."""

    def in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do what the mouse asks for after the keys before it, and before those after it.

        A key is given to the focused widget and comes up from there to the app, through the
        queue of each parent; so the work goes the same way.
        """
        def climb(pump: MessagePump) -> None:
            if pump is self.app:
                pump.call_later(self._in_turn, work)
            else:
                pump.call_later(climb, pump._parent or self.app)

        climb(self._parent or self.app)

    async def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        await self.catch_up()
        if self.is_attached:
            await work()

    async def catch_up(self, command: object = None) -> None:
        """Wait for the session that is being opened: keys are meant for it."""

    # Steps

    async def move(self, step: Callable[[], T]) -> T | None:
        """Do a step when it is its turn, and show where it led.

        Args:
            step: Changes nothing but the place and the selected part; may be done again.

        Returns:
            What the step returned; None where the session has given way to another one.
        """
        async with self.in_order() as same:
            return await self.arrive(step) if same else None

    async def arrive(self, step: Callable[[], T], *, sure: bool = True) -> T | None:
        """Do a step, whose turn it is, and show where it led."""
        reader = self.reader
        result = await self.settle(step, sure=sure)
        if reader is self.reader:
            self.select(self.cursor)
            self.call_after_refresh(self._prefetch_soon)
        return result

    async def settle(self, step: Callable[[], T], *, sure: bool = True) -> T | None:
        """Do a step that changes the place, as soon as all rows that it needs are here.

        Args:
            step: As in ``move``; raises ``BeyondWindow`` where the window is too small for it.
            sure: Show only what will look the same once the whole session is known.
        """
        reader, left = self.reader, MOST_READINGS
        while reader is not None and reader is self.reader and len(self.document):
            owed = self._owed_part()
            if owed is not None and left:
                left -= 1
                await reader.have(self.document, self._around([owed]))
                continue
            before = self._place_now()
            self.document.lacking.clear()
            try:
                result = step()
                lacking = self._lacking(sure=sure and before != self._place_now())
            except BeyondWindow:
                self._put_place(before)
                await self.until_whole()
                continue
            if not lacking or not left:
                return result
            self._put_place(before)
            left -= 1
            await reader.have(self.document, self._around(lacking))
        return None

    async def stay(self) -> None:
        """Stand at the place, whatever the heights of the parts there are now."""
        await self.settle(self._stayed, sure=False)

    def _stayed(self) -> None:
        scroller = self.view.scroller
        if self.view.at_end:
            scroller.to_end()
        else:
            scroller.to(scroller.part, scroller.line)

    def _owed_part(self) -> int | None:
        """Return the part whose row tells at which of its lines to stand; None once it is told."""
        scroller, document = self.view.scroller, self.document
        if scroller.owed is not None:
            part = scroller.owed.part.find(document)[0]
            if not document.has(part):
                return part
            scroller.part, scroller.line, _there = scroller.owed.find(document)
            scroller.owed = None
        return None

    def _place_now(self) -> tuple[int, int, int, bool]:
        view = self.view
        return view.scroller.part, view.scroller.line, view.cursor, view.at_end

    def _put_place(self, place: tuple[int, int, int, bool]) -> None:
        view = self.view
        view.scroller.part, view.scroller.line, view.cursor, view.at_end = place
        view.changed()

    def _lacking(self, *, sure: bool) -> set[int]:
        """Return the parts whose rows the place asks for and that are not here."""
        document, view = self.document, self.view
        view.changed()
        rows, known = view.rows(), document.sure()
        if sure and not document.complete:
            below = len(rows) < view.scroller.height and not document.at_end
            if below or view.cursor not in known or (
                rows and not known.start <= rows[0].part <= rows[-1].part < known.stop
            ):
                raise BeyondWindow
        lacking = set(document.lacking)
        if not document.has(view.cursor):
            lacking.add(view.cursor)
        return lacking

    def _around(self, parts: Iterable[int]) -> list[int]:
        near = PREFETCHED
        count = len(self.document)
        return sorted({other for part in parts
                       for other in range(max(0, part - near), min(count, part + near))})

    async def had(self, part: Callable[[], int | None]) -> int | None:
        """Return a part, found again after each reading, once its row is here.

        Nothing is awaited after it was found, so the number holds until the caller awaits.
        """
        reader = self.reader
        for _reading in range(MOST_READINGS):
            if reader is None or reader is not self.reader or not len(self.document):
                return None
            found = part()
            if found is None or self.document.has(found):
                return found
            await reader.have(self.document, [found])
        return None

    # What changes around the place

    def stand(self, stood: Standing) -> None:
        """Go back at once to where the reader stood, in a document that has just changed."""
        document, view = self.document, self.view
        view.scroller.part, view.scroller.line = stood.top_in(document)
        view.scroller.owed = stood.owed_in(document)
        view.cursor = stood.cursor_in(document)
        if view.at_end and stood.on_last and len(document):
            view.cursor = self._last_part()
        if stood.shifted and view.text_selection is not None:
            selection = stood.selection_in(document)
            self.screen.clear_selection()
            if selection is not None:
                self.screen.selections = {view: selection}
        view.changed()

    def _last_part(self) -> int:
        document = self.document
        return next((p for p in range(len(document) - 1, -1, -1) if document.shows(p)), 0)

    # The rest of a session of which only a window was read

    async def until_whole(self) -> None:
        """Wait until all parts of the session are known."""
        reader = self.reader
        while reader is not None and reader is self.reader and not self.document.complete:
            async with reader.counting:
                if reader is self.reader and not self.document.complete:
                    await self._take_whole(reader)

    async def _take_whole(self, reader: SessionReader) -> None:
        skeleton, heights = await reader.skeleton(self.document.setting)
        if reader is self.reader:
            stood = Standing.of(self.document, self.view)
            self.document.use(skeleton, heights, complete=True)
            self.stand(stood)
            await self.stay()

    # What is read ahead

    def _prefetch_soon(self) -> None:
        self.background(self.prefetch, group="prefetch")

    async def prefetch(self) -> None:
        """Read the rows around the screen before they are asked for."""
        shown, reader = self.view.shown_parts(), self.reader
        if reader is not None:
            around = range(shown.start - PREFETCHED, shown.stop + PREFETCHED)
            await reader.have(self.document, around)
            await self._lay_out_ahead(shown.stop)

    async def _lay_out_ahead(self, part: int) -> None:
        """Lay out the next screen while nothing else is to be done."""
        document, lines = self.document, 0
        while lines < self.view.size.height and part < len(document):
            lines += document.height(part)
            part += 1
            # Keys that have come meanwhile go first.
            await asyncio.sleep(0)
            if document is not self.document:
                return
