"""Moving through the open session: by lines, by parts, to its ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tui.transcript import steps
from tui.transcript.document import Document
from tui.transcript.placing import BeyondWindow, PlacingPane
from tui.transcript.standing import Anchor
from tui.transcript.steps import Find

T = TypeVar("T")


class MovingPane(PlacingPane):
    """The transcript with its ways to move; what ends in ``ed`` is a step of a move."""

    async def walk(self, lines: int) -> int:
        """Move by lines; returns by how many it moved."""
        return await self.move_by(lines, partial(self._walked, lines)) or 0

    async def move_by(self, lines: int, step: Callable[[], T]) -> T | None:
        """Do a step that moves by lines; two screens beyond are read first, for those after it."""
        async with self.in_order() as same:
            if not same or self.reader is None:
                return None
            await self.reader.have(self.document, self._near(lines))
            return await self.arrive(step)

    def _near(self, lines: int) -> range:
        """Return the parts that a move may walk over, by what their heights are thought to be."""
        document, scroller = self.document, self.view.scroller
        want = abs(lines) + 2 * scroller.height
        step, part, seen = (-1 if lines < 0 else 1), scroller.part, 0
        while 0 <= part < len(document) and seen < want:
            seen += document.heights[part]
            part += step
        below, screen = 0, scroller.part
        while screen < len(document) and below < 2 * scroller.height:
            below += document.heights[screen]
            screen += 1
        return range(min(part, scroller.part), max(part, screen) + 1)

    async def jump(self, part: int, line: int = 0, *, top: bool = False, lines: int = 3) -> None:
        """Select a part and bring it onto the screen.

        Args:
            part: The part, by its number now.
            line: Which of its lines is to be seen.
            top: Put it at the top even where it can be seen already.
            lines: How many lines from there are to be seen.
        """
        if self.reader is None or not len(self.document):
            return
        anchor = Anchor.of(self.document, part)
        await self.move(lambda: self._jumped(
            anchor.find(self.document)[0], line, top=top, lines=lines))

    def _walked(self, lines: int) -> int:
        if lines < 0:
            self.view.at_end = False
        moved = self.view.scroller.move(lines)
        if moved != lines and not self._ends(lines):
            raise BeyondWindow
        self.keep_cursor(1 if lines > 0 else -1)
        return moved

    def _ends(self, step: int) -> bool:
        """Say whether nothing follows in a direction after what is known."""
        document = self.document
        return document.complete or (document.at_end if step > 0 else document.at_start)

    def _jumped(self, part: int, line: int = 0, *, top: bool = False, lines: int = 3) -> None:
        document, scroller = self.document, self.view.scroller
        self.view.at_end = False
        if top:
            scroller.to(part, line)
        else:
            tall = document.height(part) - line
            scroller.show(part, line, min(tall, max(1, lines), scroller.height))
        self.view.cursor = part

    def _stepped(self, find: Find, step: int, *, top: bool = False) -> bool:
        """Go to the next part of a kind; False where there is none."""
        document = self.document
        part = find(document, self.cursor, step)
        if part is None or part == self.cursor:
            if not self._ends(step):
                raise BeyondWindow
            return False
        if part not in document.sure():
            raise BeyondWindow
        self._jumped(part, top=top)
        return True

    def _topped(self) -> None:
        self.view.at_end = False
        self.view.scroller.to(0)
        self.view.cursor = steps.part(self.document, -1, 1)
        self.keep_cursor(1)

    def _ended(self) -> None:
        self.view.at_end = True
        self.view.scroller.to_end()
        self.view.cursor = self._last_part()

    async def to_edge(self, *, at_end: bool) -> None:
        """Go to the first or the last line, even before the session was counted."""
        async with self.in_order() as same:
            if same:
                await self._read_edge(at_end=at_end)
                await self.arrive(self._ended if at_end else self._topped, sure=False)

    async def _read_edge(self, *, at_end: bool) -> None:
        """Have the rows of one end; a window there takes the place of one that lies elsewhere."""
        reader, document = self.reader, self.document
        if reader is None:
            return
        if not (document.complete or (document.at_end if at_end else document.at_start)):
            setting = self.view.content_setting
            setting.tools, setting.reasoning = self.tools, self.reasoning
            fresh = await reader.open(setting, None, at_end=at_end)
            if reader is self.reader and not self.document.complete:
                self._show_instead(fresh)
            return
        count = len(document)
        await reader.have(document, range(count - 64, count) if at_end else range(64))

    def _show_instead(self, fresh: Document) -> None:
        """Show another window of the session; what is folded or searched stays so."""
        document, view = self.document, self.view
        fresh.folds, fresh.pages = document.folds, document.pages
        fresh.turn_like(document)
        pattern = view.pattern
        view.show(fresh)
        view.pattern = pattern

    def keep_cursor(self, direction: int) -> None:
        """Let the selected part be one that is on the screen."""
        document = self.document
        self.view.changed()
        rows = self.view.rows()
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
