"""Moving through the open session: rows are read before a move walks over them."""

from __future__ import annotations

import asyncio

from tui.transcript.document import Key
from tui.transcript.pane import TranscriptBase
from tui.transcript.reader import SessionReader

PREFETCHED = 40
"""Parts on each side of the screen whose rows are read before they are asked for."""


class MovingPane(TranscriptBase):
    """The transcript with its ways to move."""

    def _near(self, lines: int = 0) -> range:
        """Return the parts that a move may walk over, by what their heights are thought to be."""
        document, scroller = self.document, self.view.scroller
        want = abs(lines) + 2 * scroller.height
        step, part, seen = (-1 if lines < 0 else 1), scroller.part, 0
        while 0 <= part < len(document) and seen < want:
            seen += document.heights[part]
            part += step
        screen = scroller.part
        below = 0
        while screen < len(document) and below < 2 * scroller.height:
            below += document.heights[screen]
            screen += 1
        return range(min(part, scroller.part), max(part, screen) + 1)

    async def walk(self, lines: int) -> int:
        """Move by lines; returns by how many it moved."""
        if self.reader is None or not len(self.document):
            return 0
        if lines < 0:
            self.view.at_end = False
        await self.reader.have(self.document, self._near(lines))
        moved = self.view.scroller.move(lines)
        await self.settle(1 if lines > 0 else -1)
        if moved != lines and not self.document.complete:
            # The window that was read first ends here; the session may not.
            await self.until_whole()
            moved += await self.walk(lines - moved)
        return moved

    async def jump(self, part: int, line: int = 0, *, top: bool = False, lines: int = 3) -> None:
        """Select a part and bring it onto the screen.

        Args:
            part: The part.
            line: Which of its lines is to be seen.
            top: Put it at the top even where it can be seen already.
            lines: How many lines from there are to be seen.
        """
        if self.reader is None or not len(self.document):
            return
        document, scroller = self.document, self.view.scroller
        self.view.at_end = False
        low = max(0, part - PREFETCHED // 2)
        await self.reader.have(document, range(low, part + PREFETCHED // 2))
        if top:
            scroller.to(part, line)
        else:
            block = document.block(part)
            tall = len(block.lines) - line if block is not None else 1
            scroller.show(part, line, min(tall, max(1, lines), scroller.height))
        self.view.cursor = part
        await self.settle(0)

    async def settle(self, direction: int) -> None:
        """Paint a new place, once the rows for it are here."""
        if self.reader is not None and await self.reader.have(
            self.document, self._near()
        ):
            self.view.scroller.to(self.view.scroller.part, self.view.scroller.line)
        self.view.changed()
        if direction:
            self.keep_cursor(direction)
        self.select(self.cursor)
        self.call_after_refresh(self._prefetch_soon)

    # The rest of a session of which only a window was read

    async def until_whole(self) -> None:
        """Wait until all parts of the session are known."""
        reader = self.reader
        while reader is not None and reader is self.reader and not self.document.complete:
            async with reader.counting:
                if not self.document.complete:
                    await self._take_whole(reader)

    async def _take_whole(self, reader: SessionReader) -> None:
        skeleton, heights = await reader.skeleton(self.document.setting)
        if reader is self.reader:
            stand = self._standing()
            self.document.use(skeleton, heights, complete=True, at_start=True)
            await self._stand_again(reader, stand)

    def _standing(self) -> tuple[Key | None, int, Key | None]:
        """Return the key and line at the top, and the key of the selected part."""
        skeleton, scroller = self.document.skeleton, self.view.scroller
        if not len(skeleton):
            return None, 0, None
        return skeleton.key(scroller.part), scroller.line, skeleton.key(self.cursor)

    async def _stand_again(
        self, reader: SessionReader, stand: tuple[Key | None, int, Key | None]
    ) -> None:
        """Go back to where the reader stood, in a skeleton that has changed."""
        document, scroller = self.document, self.view.scroller
        top, line, chosen = stand
        scroller.part = (document.skeleton.locate(*top) if top else None) or 0
        scroller.line = line
        self.view.cursor = (document.skeleton.locate(*chosen) if chosen else None) or 0
        if len(document):
            near = self._near()
            if self.view.at_end:
                near = range(min(near.start, len(document) - PREFETCHED), len(document))
            await reader.have(document, near)
            if self.view.at_end:
                scroller.to_end()
            else:
                scroller.to(scroller.part, scroller.line)
        if self.view.text_selection is not None:
            self.screen.clear_selection()
        self.view.changed()

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

    def keep_cursor(self, direction: int) -> None:
        """Let the selected part be one that is on the screen."""
        rows = self.view.rows()
        document = self.document
        own = [row for row in rows if (block := document.block(row.part)) is not None
               and row.line >= block.top]
        if not own or any(row.part == self.cursor for row in own):
            return
        heads = [row.part for row in own
                 if (block := document.block(row.part)) is not None and row.line == block.top]
        if direction > 0:
            self.view.cursor = heads[0] if heads else own[0].part
        else:
            self.view.cursor = heads[-1] if heads else own[-1].part

    def _last_part(self) -> int:
        document = self.document
        return next((p for p in range(len(document) - 1, -1, -1) if document.shows(p)), 0)
