"""Folds in the open session: one part, all tool calls, all reasoning, hidden messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from store.rows import is_tool_type
from tui.transcript.anchors import Anchor
from tui.transcript.document import Document
from tui.transcript.item import LEVELS, Level
from tui.transcript.placement import Placement
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.view import TranscriptView

_CYCLE: dict[Level, Level] = {"short": "whole", "whole": "off", "off": "short"}
_WORDS: dict[Level, str] = {"off": "hidden", "short": "short", "whole": "whole"}


class Folds:
    """Folds and opens parts; the selected part stays in sight."""

    def __init__(self, shown: ShownSession, pane: PaneServices, placement: Placement) -> None:
        """Make the folds of a session.

        Args:
            shown: The session whose parts are folded.
            pane: Shows toasts.
            placement: Takes the steps that follow.
        """
        self._shown, self._pane, self._placement = shown, pane, placement

    # One part

    async def fold_selected(self) -> None:
        """Fold or open the selected part."""
        await self.fold(self._shown.cursor)

    async def fold(self, part: int) -> None:
        """Take a part to its next level; a closed run of hidden messages opens."""
        if not len(self._shown.document):
            return
        anchor = Anchor.of(self._shown.document, part)
        async with self._placement.in_order() as same:
            if same and (found := await self._loaded(anchor)) is not None:
                self._fold_now(found)
                await self._placement.arrive(partial(self._step_folded, anchor))

    async def click(
        self, event: TranscriptView.Clicked, open_child: Callable[[int], object]
    ) -> None:
        """Select the part that was clicked, and fold or open what was clicked of it.

        Args:
            event: The click.
            open_child: Opens the session that a call started.
        """
        part = await self._placement.select(event.part)
        if part is None:
            return
        if event.fold == "hidden":
            await self.turn_run(part)
        elif event.fold == "child":
            open_child(part)
        elif event.fold:
            await self.fold(part)

    async def _loaded(self, anchor: Anchor) -> int | None:
        """Return a part, once its neighbours are known and its row is loaded."""
        if anchor.part_in(self._shown.document) not in self._shown.document.sure():
            await self._placement.until_whole()
        return await self._placement.loaded(lambda: anchor.part_in(self._shown.document))

    def _fold_now(self, part: int) -> None:
        document = self._shown.document
        run = document.run_of(part)
        if run is not None and not document.run_opened(run):
            document.turn_run(run)
            return
        block = document.block(part)
        if block is None:
            return
        key = document.skeleton.key(part)
        if block.lines and block.lines[-1].fold == "more":
            document.pages[key] = document.pages.get(key, 1) + 1
        else:
            document.pages.pop(key, None)
            before, level = [line.text for line in block.lines], document.folds.get(key)
            document.folds[key] = next_level(document, part, folded=block.folded)
            document.forget(part)
            after = document.block(part)
            if after is not None and [line.text for line in after.lines] == before:
                self._pane.toast("This part has nothing to fold", "warning")
                if level is None:
                    del document.folds[key]
        document.forget(part)

    def _step_folded(self, anchor: Anchor) -> None:
        """Keep the head of a part on the screen when its height changed."""
        scroller, document = self._shown.view.scroller, self._shown.document
        part = anchor.part_in(document)
        if scroller.part == part:
            scroller.line = min(scroller.line, max(0, document.height(part) - 1))
            block = document.block(part)
            if block is not None and scroller.line > block.top:
                scroller.line = block.top
        self._keep_top()

    def _keep_top(self) -> None:
        """Keep the top; stop following the end where it is no longer on the screen."""
        view = self._shown.view
        scroller = view.scroller
        scroller.to(scroller.part, scroller.line)
        view.at_end = view.at_end and (scroller.part, scroller.line) == scroller.end()
        view.keep_cursor(1)

    async def reveal(self, message_id: str, index: int | None) -> None:
        """Select a message or a part of it; open the hidden run or the fold that it is in.

        Args:
            message_id: The message; nothing happens where the session has none of this id.
            index: The part's index in the message; None for the start of the message.
        """
        async with self._placement.in_order() as same:
            if not same or not len(self._shown.document):
                return
            if self._place(message_id, index) not in self._shown.document.sure():
                await self._placement.until_whole()
            part = await self._placement.loaded(partial(self._place, message_id, index))
            if part is None:
                return
            document = self._shown.document
            run = document.run_of(part)
            if run is not None and not document.run_opened(run):
                document.turn_run(run)
            block = document.block(part) if index is not None else None
            if block is not None and block.folded:
                document.folds[document.skeleton.key(part)] = "whole"
                document.forget(part)
            anchor = Anchor.of(document, part)
            await self._placement.arrive(
                lambda: self._shown.view.step_to(anchor.part_in(self._shown.document)))

    def _place(self, message_id: str, index: int | None) -> int | None:
        """Return the part; the first of its message that takes lines, where none is meant.

        None while the window does not reach it, and where it is gone.
        """
        document = self._shown.document
        part = document.skeleton.locate(message_id, index)
        if part is None:
            return None
        if index is not None:
            return part if document.skeleton.index[part] == index else None
        parts = document.skeleton.parts_of(document.skeleton.message[part])
        return next((part for part in parts if document.shows(part)), parts.start)

    # All parts of a kind

    async def cycle_tools(self) -> None:
        """Show the outputs of all tool calls short, whole, or not at all."""
        if not self._has(is_tool_type):
            self._pane.toast("This session has no tool calls", "warning")
            return
        self._shown.tools = _CYCLE[self._shown.tools]
        await self._all_levels(tools=True)
        self._pane.toast(f"Tool outputs: {_WORDS[self._shown.tools]}", timeout=2)

    async def toggle_reasoning(self) -> None:
        """Open or fold all reasoning."""
        if not self._has("reasoning".__eq__):
            self._pane.toast("This session has no reasoning", "warning")
            return
        self._shown.reasoning = "off" if self._shown.reasoning == "whole" else "whole"
        await self._all_levels(tools=False)

    def _has(self, fits: Callable[[str], bool]) -> bool:
        """Return whether a part has a type that fits; parts that are not known yet may."""
        document = self._shown.document
        return len(document.sure()) < len(document) or document.skeleton.has_type(fits)

    async def _all_levels(self, *, tools: bool) -> None:
        """Give all parts of a kind the same level again; the selected part stays put."""
        async with self._placement.in_order() as same:
            if same:
                offset = self._shown.view.scroller.offset_of(self._shown.cursor)
                self._set_levels(tools=tools)
                await self._placement.arrive(partial(self._step_levelled, offset))

    def _set_levels(self, *, tools: bool) -> None:
        shown, document = self._shown, self._shown.document
        document.setting.tools, document.setting.reasoning = shown.tools, shown.reasoning
        for key in list(document.folds):
            part = document.skeleton.locate(*key)
            if part is not None and document.skeleton.is_tool(part) == tools:
                del document.folds[key]
        document.relayout()

    def _step_levelled(self, offset: int | None) -> None:
        view = self._shown.view
        if view.at_end or offset is None:
            view.stay()
        else:
            view.scroller.to(view.cursor, 0)
            if offset > 0:
                view.scroller.move(-offset)
        view.keep_cursor(1)

    # Hidden messages

    async def toggle_hidden(self) -> None:
        """Show or hide all messages that rewinds have hidden."""
        async with self._placement.in_order() as same:
            if same:
                await self._placement.until_whole()
                document = self._shown.document
                if not document.has_hidden:
                    self._pane.toast("No message of this session is hidden", "warning")
                    return
                document.set_show_hidden(not document.show_hidden)
                await self._placement.arrive(self._step_turned)

    async def turn_run(self, part: int) -> None:
        """Show or hide the hidden messages that begin at a part."""
        if not len(self._shown.document):
            return
        anchor = Anchor.of(self._shown.document, part)
        async with self._placement.in_order() as same:
            found = await self._loaded(anchor) if same else None
            run = self._shown.document.run_of(found) if found is not None else None
            if run is not None:
                self._shown.document.turn_run(run)
                await self._placement.arrive(self._step_turned)

    def _step_turned(self) -> None:
        view, document = self._shown.view, self._shown.document
        run = document.run_of(view.cursor)
        if run is not None and not document.run_opened(run):
            view.cursor = document.skeleton.first[run[0]]
        self._keep_top()


def next_level(document: Document, part: int, *, folded: bool) -> Level:
    """Return the level to which a key takes a part: the next one that looks different.

    Args:
        document: Holds the part; the part's level in it may be another one afterwards.
        part: The part.
        folded: Whether it is folded now.
    """
    key = document.skeleton.key(part)
    if not document.skeleton.is_tool(part):
        return "whole" if folded else "off"
    level = document.folds.get(key) or document.setting.tools
    following = _CYCLE[level]
    block = document.block(part)
    lines = len(block.lines) if block is not None else 0
    for _ in LEVELS:
        document.folds[key] = following
        document.forget(part)
        other = document.block(part)
        if other is not None and len(other.lines) != lines:
            break
        following = _CYCLE[following]
    return following
