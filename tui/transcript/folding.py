"""Folding in the open session: one part, all tool calls, all reasoning, what is hidden."""

from __future__ import annotations

from functools import partial

from tui.transcript.finding import FindingPane
from tui.transcript.item import LEVELS, Level
from tui.transcript.standing import Anchor

_CYCLE: dict[Level, Level] = {"short": "whole", "whole": "off", "off": "short"}


class FoldingPane(FindingPane):
    """The transcript with its folds."""

    async def do_fold(self) -> None:
        """Fold or open the selected part."""
        await self.fold(self.cursor)

    async def fold(self, part: int) -> None:
        """Take a part to its next degree of openness; a closed run opens."""
        if not len(self.document):
            return
        anchor = Anchor.of(self.document, part)
        async with self.in_order() as same:
            if same and (found := await self._part_to_fold(anchor)) is not None:
                self._fold_now(found)
                await self.arrive(partial(self._folded, anchor))

    async def _part_to_fold(self, anchor: Anchor) -> int | None:
        """Return a part, once it is known what it stands among and its row is here."""
        if anchor.find(self.document)[0] not in self.document.sure():
            await self.until_whole()
        return await self.had(lambda: anchor.find(self.document)[0])

    def _fold_now(self, part: int) -> None:
        document = self.document
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
            document.folds[key] = self._next_level(part, block.folded)
        document.forget(part)

    def _next_level(self, part: int, folded: bool) -> Level:
        document, key = self.document, self.document.skeleton.key(part)
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

    def _folded(self, anchor: Anchor) -> None:
        """Keep the head of a part on the screen when its height changed."""
        scroller, document = self.view.scroller, self.document
        part = anchor.find(document)[0]
        if scroller.part == part:
            scroller.line = min(scroller.line, max(0, document.height(part) - 1))
            block = document.block(part)
            if block is not None and scroller.line > block.top:
                scroller.line = block.top
        self._stood()

    async def do_tools(self) -> None:
        """Show the outputs of all tool calls short, whole, or not at all."""
        self.tools = _CYCLE[self.tools]
        await self._all_levels(tools=True)
        words = {"off": "hidden", "short": "short", "whole": "whole"}
        self.app.notify(f"Tool outputs: {words[self.tools]}", timeout=2, markup=False)

    async def do_reasoning(self) -> None:
        """Open or fold all reasoning."""
        self.reasoning = "off" if self.reasoning == "whole" else "whole"
        await self._all_levels(tools=False)

    async def _all_levels(self, *, tools: bool) -> None:
        """Let one mode hold for all parts of a kind again; the selected part stays put."""
        async with self.in_order() as same:
            if same:
                offset = self.view.scroller.offset_of(self.cursor)
                self._set_levels(tools=tools)
                await self.arrive(partial(self._levelled, offset))

    def _set_levels(self, *, tools: bool) -> None:
        document = self.document
        document.setting.tools, document.setting.reasoning = self.tools, self.reasoning
        for key in list(document.folds):
            part = document.skeleton.locate(*key)
            if part is not None and document.skeleton.is_tool(part) == tools:
                del document.folds[key]
        document.relayout()

    def _levelled(self, offset: int | None) -> None:
        scroller = self.view.scroller
        if self.view.at_end:
            scroller.to_end()
        elif offset is None:
            scroller.to(scroller.part, scroller.line)
        else:
            scroller.to(self.cursor, 0)
            if offset > 0:
                scroller.move(-offset)
        self.keep_cursor(1)

    async def do_hidden(self) -> None:
        """Show or hide what rewinds have hidden."""
        async with self.in_order() as same:
            if same:
                self.document.set_show_hidden(not self.document.show_hidden)
                await self.arrive(self._turned)

    async def turn_run(self, part: int) -> None:
        """Show or hide the hidden messages that begin at a part."""
        if not len(self.document):
            return
        anchor = Anchor.of(self.document, part)
        async with self.in_order() as same:
            found = await self._part_to_fold(anchor) if same else None
            run = self.document.run_of(found) if found is not None else None
            if run is not None:
                self.document.turn_run(run)
                await self.arrive(self._turned)

    def _turned(self) -> None:
        run = self.document.run_of(self.cursor)
        if run is not None and not self.document.run_opened(run):
            self.view.cursor = self.document.skeleton.first[run[0]]
        self._stood()

    def _stood(self) -> None:
        """Keep the top; the end is followed no longer where that moved it off the screen."""
        scroller = self.view.scroller
        scroller.to(scroller.part, scroller.line)
        self.view.at_end = self.view.at_end and (scroller.part, scroller.line) == scroller.end()
        self.keep_cursor(1)
