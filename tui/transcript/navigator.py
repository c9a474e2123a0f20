"""Moves through the open session: by lines, pages and parts, to its ends, to a share of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tui.transcript import steps
from tui.transcript.anchors import Anchor
from tui.transcript.document import Document, Key
from tui.transcript.place import Place
from tui.transcript.placement import NeedsFullLoad, Placement
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.steps import Find

T = TypeVar("T")


class Navigator:
    """Does what the keys for moving ask for; methods named ``_step`` are steps of a move."""

    def __init__(self, shown: ShownSession, pane: PaneServices, placement: Placement) -> None:
        """Make the navigator of a session.

        Args:
            shown: The session that is moved through.
            pane: Shows toasts.
            placement: Takes the steps.
        """
        self._shown, self._pane, self._placement = shown, pane, placement

    # Lines and pages

    async def line(self, step: int) -> None:
        """Go one line down (1) or up (-1); at an end the selection goes on."""
        await self._by_lines(step, partial(self._step_line, step))

    def _step_line(self, step: int) -> None:
        if not self._step_lines(step):
            self._step_part(step)

    async def page(self, step: int) -> None:
        """Go one page down (1) or up (-1)."""
        await self._by_lines(step * self._page_lines(), partial(self._step_page, step))

    def _step_page(self, step: int) -> None:
        if not self._step_lines(step * self._page_lines()):
            rows = self._shown.view.rows()
            if rows:
                self._shown.view.cursor = rows[-1 if step > 0 else 0].part

    async def half_page(self, step: int) -> None:
        """Go half a page down (1) or up (-1)."""
        await self.lines(step * max(1, self._page_lines() // 2))

    async def lines(self, lines: int) -> None:
        """Go some lines down, or up where they are negative."""
        await self._by_lines(lines, partial(self._step_lines, lines))

    def _page_lines(self) -> int:
        return max(1, self._shown.view.scroller.height - 2)

    async def _by_lines(self, lines: int, step: Callable[[], T]) -> None:
        """Take a step of some lines; two screens beyond are read first, for the next ones."""
        async with self._placement.in_order() as same:
            if same and self._shown.reader is not None:
                await self._shown.reader.have(self._shown.document, self._near(lines))
                await self._placement.arrive(step)

    def _near(self, lines: int) -> range:
        """Return the parts that a move may pass, judged by their estimated heights."""
        document, scroller = self._shown.document, self._shown.view.scroller
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

    def _step_lines(self, lines: int) -> int:
        view = self._shown.view
        if lines < 0:
            view.at_end = False
        moved = view.scroller.move(lines)
        if moved != lines and not self._placement.ends(lines):
            raise NeedsFullLoad
        view.keep_cursor(1 if lines > 0 else -1)
        return moved

    # Parts of a kind

    async def part(self, step: int) -> None:
        """Select the next (1) or previous (-1) part."""
        if await self._placement.move(partial(self._step_part, step)) is False:
            words = "This is the last part" if step > 0 else "This is the first part"
            self._pane.toast(words, timeout=2)

    def _step_part(self, step: int) -> bool:
        view = self._shown.view
        at_end = view.at_end
        found = self._step_to_next(steps.part, step)
        if found:
            view.at_end = at_end and step > 0
        return found

    async def message(self, step: int) -> None:
        """Go to the next message; back to the start of this one, then to the one before."""
        words = "This is the last message" if step > 0 else "This is the first message"
        await self._to_next(steps.message, step, words)

    async def turn(self, step: int) -> None:
        """Go to the next user turn; back to the start of this one, then to the one before."""
        words = "This is the last turn" if step > 0 else "This is the first turn"
        await self._to_next(steps.turn, step, words, top=True)

    async def tool(self, step: int) -> None:
        """Go to the next or previous tool call."""
        words = "No tool call follows" if step > 0 else "No tool call before this"
        await self._to_next(steps.tool, step, words)

    async def error(self, step: int) -> None:
        """Go to the next or previous error."""
        words = "No error follows" if step > 0 else "No error before this"
        await self._to_next(steps.error, step, words)

    async def _to_next(self, find: Find, step: int, none: str, *, top: bool = False) -> None:
        """Go to the next part of a kind.

        Args:
            find: Finds it.
            step: 1 or -1.
            none: What the toast says where there is none.
            top: Put it at the top of the screen.
        """
        async with self._placement.jump(far=True):
            found = await self._placement.move(partial(self._step_to_next, find, step, top=top))
        if found is False:
            self._pane.toast(none, timeout=2)

    def _step_to_next(self, find: Find, step: int, *, top: bool = False) -> bool:
        document, cursor = self._shown.document, self._shown.cursor
        part = find(document, cursor, step)
        if part is None or part == cursor:
            if not self._placement.ends(step):
                raise NeedsFullLoad
            return False
        if part not in document.sure():
            raise NeedsFullLoad
        self._shown.view.step_to(part, top=top)
        return True

    async def jump(self, part: int, *, top: bool = False) -> None:
        """Select a part and bring it onto the screen.

        Args:
            part: The part, by its number now.
            top: Put it at the top even where it can be seen already.
        """
        if self._shown.has_parts:
            anchor, view = Anchor.of(self._shown.document, part), self._shown.view
            async with self._placement.jump(far=True):
                await self._placement.move(
                    lambda: view.step_to(anchor.part_in(view.document), top=top))

    async def to_key(self, key: Key) -> None:
        """Select a part on the screen by its key; one that is gone is left out."""
        part = self._shown.document.skeleton.locate(*key)
        if part is not None:
            await self.jump(part)

    async def to_place(self, place: Place) -> None:
        """Show a place again: the same line at the top, the same part selected.

        A place that is a selected part alone is brought onto the screen. Messages that a rewind
        has hidden since are shown. Nothing happens where the selected part's message is gone.
        """
        shown = self._shown
        async with self._placement.in_order() as same:
            if not same or not len(shown.document):
                return
            if self._selected_in(place) not in shown.document.sure():
                await self._placement.until_whole()
            part = self._selected_in(place)
            if part is None:
                return
            run = shown.document.run_of(part)
            if run is not None and not shown.document.run_opened(run):
                shown.document.turn_run(run)
            await self._placement.arrive(partial(self._step_to_place, place))

    def _selected_in(self, place: Place) -> int | None:
        """Return the selected part; of a part that takes no line, the first beside it that does."""
        document = self._shown.document
        part = document.skeleton.locate(*place["selected"])
        if part is None or document.shows(part):
            return part
        beside = document.skeleton.parts_of(document.skeleton.message[part])
        return next(filter(document.shows, beside), part)

    def _step_to_place(self, place: Place) -> None:
        view, document = self._shown.view, self._shown.document
        part = self._selected_in(place)
        if part is None:
            return
        top = document.skeleton.locate(place["message"], place["index"]) \
            if "message" in place else None
        if top is not None:
            view.step_to(top, place["line"], top=True)
            view.cursor = part
        if top is None or view.scroller.offset_of(part) is None:
            view.step_to(part)

    # The ends

    async def start(self) -> None:
        """Go to the first line, even before the session was counted."""
        await self._to_edge(self._shown.view.step_to_start, at_end=False)

    async def end(self) -> None:
        """Go to the last line and follow it, even before the session was counted."""
        await self._to_edge(self._shown.view.step_to_end, at_end=True)

    async def _to_edge(self, step: Callable[[], None], *, at_end: bool) -> None:
        async with self._placement.jump(far=True), self._placement.in_order() as same:
            if same:
                await self._read_edge(at_end=at_end)
                await self._placement.arrive(step, sure=False)

    async def _read_edge(self, *, at_end: bool) -> None:
        """Load the rows of one end; a window there replaces one that lies elsewhere."""
        shown, reader, document = self._shown, self._shown.reader, self._shown.document
        if reader is None:
            return
        if not self._placement.ends(1 if at_end else -1):
            fresh = await reader.open(shown.setting(), None, at_end=at_end)
            if reader is shown.reader and not shown.document.complete:
                self._show_instead(fresh)
            return
        count = len(document)
        await reader.have(document, range(count - 64, count) if at_end else range(64))

    def _show_instead(self, fresh: Document) -> None:
        """Show another window of the session, with the same folds and search."""
        view = self._shown.view
        fresh.folds, fresh.pages = view.document.folds, view.document.pages
        fresh.turn_like(view.document)
        pattern = view.pattern
        view.show(fresh)
        view.pattern = pattern

    # Shares of the session, from the scroll bar and the map

    async def share_of_parts(self, share: float) -> None:
        """Go to a share (0 to 1) of the parts."""
        async with self._placement.jump(far=True):
            await self._placement.move(partial(self._step_to_share_of_parts, share))

    def _step_to_share_of_parts(self, share: float) -> None:
        document = self._shown.document
        if not document.complete:
            raise NeedsFullLoad
        self._shown.view.step_to(
            min(int(share * len(document)), len(document) - 1), top=True)

    async def share_of_lines(self, share: float) -> None:
        """Go to a share (0 to 1) of the lines; 1 is the end."""
        if share >= 1:
            await self.end()
        else:
            await self._placement.move(partial(self._step_to_share_of_lines, share))

    def _step_to_share_of_lines(self, share: float) -> None:
        view, document = self._shown.view, self._shown.document
        if not document.complete:
            raise NeedsFullLoad
        part, line = document.heights.find(int(share * document.heights.total))
        view.step_to(part, line, top=True)
        view.keep_cursor(1)
