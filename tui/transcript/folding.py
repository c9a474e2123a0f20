"""Folding in the open session: one part, all tool calls, all reasoning, what is hidden."""

from __future__ import annotations

from tui.transcript.finding import FindingPane
from tui.transcript.item import LEVELS, Level

_CYCLE: dict[Level, Level] = {"short": "whole", "whole": "off", "off": "short"}


class FoldingPane(FindingPane):
    """The transcript with its folds."""

    async def do_fold(self) -> None:
        """Fold or open the selected part."""
        await self.fold(self.cursor)

    async def fold(self, part: int) -> None:
        """Take a part to its next degree of openness; a closed run opens."""
        document = self.document
        run = document.run_of(part)
        if run is not None and not document.run_opened(run):
            await self.turn_run(part)
            return
        block = document.block(part)
        if block is None:
            return
        key = document.skeleton.key(part)
        if block.lines and block.lines[-1].action == "more":
            document.pages[key] = document.pages.get(key, 1) + 1
        else:
            document.pages.pop(key, None)
            document.folds[key] = self._next_level(part, block.folded)
        document.forget(part)
        await self._keep_line(part)

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

    async def _keep_line(self, part: int) -> None:
        """Keep the head of a part on the screen when its height changed."""
        scroller, document = self.view.scroller, self.document
        if scroller.part == part:
            scroller.line = min(scroller.line, max(0, document.height(part) - 1))
            block = document.block(part)
            if block is not None and scroller.line > block.top:
                scroller.line = block.top
        scroller.to(scroller.part, scroller.line)
        await self.settle(1)

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
        document, scroller = self.document, self.view.scroller
        document.setting.tools, document.setting.reasoning = self.tools, self.reasoning
        for key in list(document.folds):
            part = document.skeleton.locate(*key)
            if part is not None and document.skeleton.is_tool(part) == tools:
                del document.folds[key]
        offset = scroller.offset_of(self.cursor)
        document.relayout()
        if len(document) and offset is not None:
            scroller.to(self.cursor, 0)
            scroller.move(-max(0, offset)) if offset > 0 else None
        if self.view.at_end:
            scroller.to_end()
        await self.settle(1)

    async def do_hidden(self) -> None:
        """Show or hide what rewinds have hidden."""
        document, key = self.document, self._top_key()
        document.set_show_hidden(not document.show_hidden)
        await self._back_to(key)

    async def turn_run(self, part: int) -> None:
        """Show or hide the hidden messages that begin at a part."""
        run = self.document.run_of(part)
        if run is not None:
            key = self._top_key()
            self.document.turn_run(run)
            await self._back_to(key)

    def _top_key(self) -> tuple[int, int]:
        return self.view.scroller.part, self.view.scroller.line

    async def _back_to(self, place: tuple[int, int]) -> None:
        if not len(self.document) or self.reader is None:
            return
        await self.reader.have(self.document, self._near())
        run = self.document.run_of(self.cursor)
        if run is not None and not self.document.run_opened(run):
            self.view.cursor = self.document.skeleton.first[run[0]]
        self.view.scroller.to(*place)
        await self.settle(1)
