"""The transcript: what its commands do, on the pane that shows a session."""

from __future__ import annotations

from functools import partial
from typing import Any

from textual import on

from store.queries.transcript import child_of
from tui.keys.registry import bindings
from tui.kit.text import clean
from tui.messages import InspectRequested, SessionOpened
from tui.transcript import steps
from tui.transcript.calls import describe
from tui.transcript.folding import FoldingPane
from tui.transcript.headings import FactLines
from tui.transcript.placing import BeyondWindow
from tui.transcript.steps import Find
from tui.transcript.take_out import TakeOutActions
from tui.transcript.verbs import TranscriptVerbs
from tui.transcript.view import TranscriptView
from tui.verbs.doing import open_now, opened


class TranscriptPane(TranscriptVerbs, TakeOutActions, FoldingPane):
    """The transcript with its keys: one method a command."""

    BINDINGS = bindings("transcript")

    @property
    def has_session(self) -> bool:
        """Whether a session with anything in it is shown."""
        return self.reader is not None and len(self.document) > 0

    async def catch_up(self, command: object = None) -> None:
        """Wait for the session that is being opened: keys are meant for it."""
        await opened(self)

    # Lines and pages

    async def do_down(self) -> None:
        """Go down a line; at the end the selection goes on."""
        await self.move_by(1, partial(self._lined, 1))

    async def do_up(self) -> None:
        """Go up a line; at the start the selection goes on."""
        await self.move_by(-1, partial(self._lined, -1))

    def _lined(self, step: int) -> None:
        if not self._walked(step):
            self._next_parted(step)

    def _page(self) -> int:
        return max(1, self.view.size.height - 2)

    async def do_page_down(self) -> None:
        """Go a page down."""
        await self.move_by(self._page(), partial(self._paged, 1))

    async def do_page_up(self) -> None:
        """Go a page up."""
        await self.move_by(-self._page(), partial(self._paged, -1))

    def _paged(self, step: int) -> None:
        if not self._walked(step * self._page()):
            rows = self.view.rows()
            if rows:
                self.view.cursor = rows[-1 if step > 0 else 0].part

    async def do_half_page_down(self) -> None:
        """Go half a page down."""
        await self.walk(max(1, self._page() // 2))

    async def do_half_page_up(self) -> None:
        """Go half a page up."""
        await self.walk(-max(1, self._page() // 2))

    async def do_top(self) -> None:
        """Go to the first line."""
        await self.to_edge(at_end=False)

    async def do_end(self) -> None:
        """Go to the last line, and stay there."""
        await self.to_edge(at_end=True)

    # Parts of a kind

    async def _go(self, find: Find, step: int, none: str, *, top: bool = False) -> None:
        found = await self.move(partial(self._stepped, find, step, top=top))
        if found is False:
            self.app.notify(none, timeout=2, markup=False)

    def _next_parted(self, step: int) -> None:
        at_end = self.view.at_end
        if self._stepped(steps.part, step):
            self.view.at_end = at_end and step > 0

    async def _step_part(self, step: int) -> None:
        await self.move(partial(self._next_parted, step))

    async def do_next_part(self) -> None:
        """Select the next part."""
        await self._step_part(1)

    async def do_previous_part(self) -> None:
        """Select the previous part."""
        await self._step_part(-1)

    async def do_next_message(self) -> None:
        """Go to the next message."""
        await self._go(steps.message, 1, "This is the last message")

    async def do_previous_message(self) -> None:
        """Go to the start of this message, then to the one before."""
        await self._go(steps.message, -1, "This is the first message")

    async def do_next_turn(self) -> None:
        """Go to the next user turn."""
        await self._go(steps.turn, 1, "This is the last turn", top=True)

    async def do_previous_turn(self) -> None:
        """Go to the start of this turn, then to the one before."""
        await self._go(steps.turn, -1, "This is the first turn", top=True)

    async def do_next_tool(self) -> None:
        """Go to the next tool call."""
        await self._go(steps.tool, 1, "No tool call follows")

    async def do_previous_tool(self) -> None:
        """Go to the previous tool call."""
        await self._go(steps.tool, -1, "No tool call before this")

    async def do_next_error(self) -> None:
        """Go to the next error."""
        await self._go(steps.error, 1, "No error follows")

    async def do_previous_error(self) -> None:
        """Go to the previous error."""
        await self._go(steps.error, -1, "No error before this")

    # Search and go to

    def do_find(self) -> None:
        """Type what to search for."""
        self.open_prompt_to_find()

    async def do_next_hit(self) -> None:
        """Go to the next hit."""
        await self.step_hit(1)

    async def do_previous_hit(self) -> None:
        """Go to the previous hit."""
        await self.step_hit(-1)

    def do_go_to(self) -> None:
        """Type where to go."""
        self.open_prompt_to_go()

    # Going elsewhere

    def do_inspect(self) -> None:
        """Inspect the selected part; a subagent's call opens its session."""
        child = self._child_here()
        if child is not None:
            self.open_child(child)
        else:
            self.select(self.cursor, force=True)
            self.post_message(InspectRequested())

    def _child_here(self) -> str | None:
        row = self.document.row(self.cursor) if self.has_session else None
        if row is None or row.tool_call_id is None:
            return None
        children = self.document.setting.children
        child = child_of(children, row.message_id, row.tool_call_id)
        return child.id if child is not None else None

    def open_child(self, session_id: str) -> None:
        """Open the session of a subagent; escape comes back."""
        self._returns = self.session
        open_now(self, session_id)

    def go_back(self) -> bool:
        """Go back one step: the prompt, the search, the parent; False where there is none."""
        if self.prompt.is_open:
            self._leave_prompt()
            return True
        if self.end_search():
            return True
        if self.parents:
            self.post_message(SessionOpened(self.parents[-1][0].id))
            return True
        return False

    # Copying

    async def do_copy(self) -> None:
        """Copy what is selected with the mouse, else the selected part."""
        from tui.kit import clipboard

        text = self.screen.get_selected_text() or self._part_text()
        if text:
            await clipboard.copy(self.app, text)

    def _part_text(self) -> str:
        item = self.document.item(self.cursor) if self.has_session else None
        if item is None:
            return ""
        text: Any = item.data.get("text")
        if isinstance(text, str):
            return clean(text)
        if self.document.skeleton.is_tool(self.cursor):
            return clean(describe(item.data).what)
        block = self.document.block(self.cursor)
        return "\n".join(line.text for line in block.lines[block.top:]) if block else ""

    # Mouse

    @on(TranscriptView.Clicked)
    def _clicked(self, event: TranscriptView.Clicked) -> None:
        event.stop()
        self.in_turn(partial(self._click, event))

    async def _click(self, event: TranscriptView.Clicked) -> None:
        async with self.in_order() as same:
            part, there = event.part.find(self.document) if same else (0, False)
            if not there:
                return
            self.select(part)
        if event.fold == "hidden":
            await self.turn_run(part)
        elif event.fold == "child":
            child = self._child_here()
            if child is not None:
                self.open_child(child)
        elif event.fold:
            await self.fold(part)

    @on(TranscriptView.Wheeled)
    def _wheeled(self, event: TranscriptView.Wheeled) -> None:
        event.stop()
        self.in_turn(partial(self._wheel, event.lines))

    async def _wheel(self, lines: int) -> None:
        await self.walk(lines)

    @on(TranscriptView.Dragged)
    def _dragged(self, event: TranscriptView.Dragged) -> None:
        event.stop()
        self.in_turn(partial(self._to_share, event.share))

    @on(FactLines.Pressed)
    def _pressed(self, event: FactLines.Pressed) -> None:
        event.stop()
        if event.share is not None:
            self.in_turn(partial(self._to_part, event.share))

    async def _to_part(self, share: float) -> None:
        await self.move(partial(self._parted, share))

    async def _to_share(self, share: float) -> None:
        if share >= 1:
            await self.do_end()
        else:
            await self.move(partial(self._shared, share))

    def _parted(self, share: float) -> None:
        if not self.document.complete:
            raise BeyondWindow
        self._jumped(min(int(share * len(self.document)), len(self.document) - 1), top=True)

    def _shared(self, share: float) -> None:
        if not self.document.complete:
            raise BeyondWindow
        heights = self.document.heights
        part, line = heights.find(int(share * heights.total))
        self._jumped(part, line, top=True)
        self.keep_cursor(1)
