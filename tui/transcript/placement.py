"""Changes of the position: each is a single step, taken from what is known at that moment.

While rows are read, the session may grow, be counted, be hidden in part, or give way to
another one. So a step awaits nothing: it finds its parts, moves, and is done. Where rows
are missing, the position is put back, the rows are read, and the step is done again on
whatever is shown by then. No number of a part outlives a read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from tui.messages import JumpedFrom
from tui.transcript.anchors import Anchor
from tui.transcript.document import Document
from tui.transcript.place import place_of
from tui.transcript.reader import SessionReader
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.snapshot import ViewportSnapshot

T = TypeVar("T")

PREFETCHED = 40
"""Parts on each side of the screen whose rows are read before they are asked for."""
MOST_READS = 12
"""Reads for one step; rows that are missing then are no longer in the store."""


class NeedsFullLoad(Exception):
    """A step depends on what lies outside the window that was read first."""


class Placement:
    """Moves the position in the document, and reads what a move needs."""

    def __init__(self, shown: ShownSession, pane: PaneServices, selected: SelectedPart) -> None:
        """Make the placement in a session.

        Args:
            shown: The session, and the view whose position changes.
            pane: Runs what is read ahead.
            selected: Announces the selected part after a move.
        """
        self._shown, self._pane, self._selected = shown, pane, selected
        self.moving = asyncio.Lock()
        """Held while the position changes."""

    @property
    def _document(self) -> Document:
        return self._shown.document

    # One after the other

    @asynccontextmanager
    async def in_order(self) -> AsyncIterator[bool]:
        """Hold back all later moves; yields whether the session is still the same."""
        reader = self._shown.reader
        await self._shown.first_hit()
        async with self.moving:
            yield reader is not None and reader is self._shown.reader

    async def move(self, step: Callable[[], T]) -> T | None:
        """Take a step after all earlier ones, and announce the part it selects.

        Args:
            step: Changes only the position; it may be called again.

        Returns:
            What the step returned; None where another session is shown by then.
        """
        async with self.in_order() as same:
            return await self.arrive(step) if same else None

    async def select(self, anchor: Anchor) -> int | None:
        """Select a part after all earlier moves; returns it, or None where it is gone."""
        async with self.in_order() as same:
            part, exists = anchor.find(self._document) if same else (0, False)
            if not exists:
                return None
            self._selected.select(part)
            return part

    @asynccontextmanager
    async def jump(self, *, far: bool = False, counts: bool = True) -> AsyncIterator[None]:
        """Post the place that a move leaves, where it leads to another part.

        Args:
            far: Only where it leads to a part that was not on the screen.
            counts: Whether to post it at all.
        """
        reader, before = self._shown.reader, place_of(self._shown) if counts else None
        key = self._document.skeleton.key
        near = self._shown.view.shown_parts() if far else (self._shown.cursor,)
        seen = {key(part) for part in near} if before is not None else set()
        yield
        shown = self._shown
        if before is not None and reader is shown.reader and shown.has_parts and (
            shown.document.skeleton.key(shown.cursor) not in seen
        ):
            self._pane.post_message(JumpedFrom(shown.session_id, before))

    # Steps

    async def arrive(self, step: Callable[[], T], *, sure: bool = True) -> T | None:
        """Take a step in ``in_order``, and announce the part it selects."""
        reader = self._shown.reader
        result = await self.settle(step, sure=sure)
        if reader is self._shown.reader:
            self._selected.select(self._shown.cursor)
            self._pane.call_after_refresh(self._prefetch_soon)
        return result

    async def settle(self, step: Callable[[], T], *, sure: bool = True) -> T | None:
        """Take a step, as soon as all rows that it needs are loaded.

        Args:
            step: As in ``move``; raises ``NeedsFullLoad`` where the window is too small.
            sure: Show only what will look the same once the whole session is known.
        """
        shown, reader, left = self._shown, self._shown.reader, MOST_READS
        while reader is not None and reader is shown.reader and len(shown.document):
            pending = self._pending_part()
            if pending is not None and left:
                left -= 1
                await reader.have(shown.document, self._around([pending]))
                continue
            before = shown.view.position
            shown.document.lacking.clear()
            try:
                result = step()
                lacking = self._lacking(sure=sure and before != shown.view.position)
            except NeedsFullLoad:
                shown.view.position = before
                await self.until_whole()
                continue
            if not lacking or not left:
                return result
            shown.view.position = before
            left -= 1
            await reader.have(shown.document, self._around(lacking))
        return None

    async def stay(self) -> None:
        """Keep the position, whatever the heights of the parts are now."""
        await self.settle(self._shown.view.stay, sure=False)

    def _pending_part(self) -> int | None:
        """Return the part whose row the line at the top depends on; None once it is loaded."""
        scroller, document = self._shown.view.scroller, self._document
        if scroller.pending is not None:
            part = scroller.pending.part.part_in(document)
            if not document.has(part):
                return part
            scroller.part, scroller.line, _exists = scroller.pending.find(document)
            scroller.pending = None
        return None

    def _lacking(self, *, sure: bool) -> set[int]:
        """Return the parts on the screen whose rows are missing."""
        document, view = self._document, self._shown.view
        view.changed()
        rows, known = view.rows(), document.sure()
        if sure and not document.complete:
            below = len(rows) < view.scroller.height and not document.at_end
            if below or view.cursor not in known or (
                rows and not known.start <= rows[0].part <= rows[-1].part < known.stop
            ):
                raise NeedsFullLoad
        lacking = set(document.lacking)
        if not document.has(view.cursor):
            lacking.add(view.cursor)
        return lacking

    def _around(self, parts: Iterable[int]) -> list[int]:
        near, count = PREFETCHED, len(self._document)
        return sorted({other for part in parts
                       for other in range(max(0, part - near), min(count, part + near))})

    async def loaded(self, part: Callable[[], int | None]) -> int | None:
        """Return a part once its row is loaded; None where it no longer exists.

        Nothing is awaited after it was found, so the number holds until the caller awaits.

        Args:
            part: Finds the part; called again after each read.
        """
        shown, reader = self._shown, self._shown.reader
        for _read in range(MOST_READS):
            if reader is None or reader is not shown.reader or not len(shown.document):
                return None
            found = part()
            if found is None or shown.document.has(found):
                return found
            await reader.have(shown.document, [found])
        return None

    # The rest of a session of which only a window was read

    def ends(self, step: int) -> bool:
        """Return whether the session ends, in a direction, with what is known of it."""
        document = self._document
        return document.complete or (document.at_end if step > 0 else document.at_start)

    async def until_whole(self) -> None:
        """Wait until all parts of the session are known."""
        shown, reader = self._shown, self._shown.reader
        while reader is not None and reader is shown.reader and not shown.document.complete:
            async with reader.counting:
                if reader is shown.reader and not shown.document.complete:
                    await self._load_whole(reader)

    async def _load_whole(self, reader: SessionReader) -> None:
        skeleton, heights = await reader.skeleton(self._document.setting)
        if reader is self._shown.reader:
            snapshot = ViewportSnapshot.of(self._shown.view)
            self._document.use(skeleton, heights, complete=True)
            snapshot.restore(self._shown.view)
            await self.stay()

    # What is read ahead

    def _prefetch_soon(self) -> None:
        self._pane.background(self.prefetch, group="prefetch")

    async def prefetch(self) -> None:
        """Read the rows around the screen before they are asked for."""
        parts, reader = self._shown.view.shown_parts(), self._shown.reader
        if reader is not None:
            around = range(parts.start - PREFETCHED, parts.stop + PREFETCHED)
            await reader.have(self._document, around)
            await self._lay_out_ahead(parts.stop)

    async def _lay_out_ahead(self, part: int) -> None:
        """Lay out the next screen while nothing else is to be done."""
        document, lines = self._document, 0
        while lines < self._shown.view.size.height and part < len(document):
            lines += document.height(part)
            part += 1
            # Keys that have come meanwhile go first.
            await asyncio.sleep(0)
            if document is not self._document:
                return
