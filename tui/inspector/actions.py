"""What the inspector's commands do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from store.errors import BackscrollError
from tui.dialogs.copy_as import CopyAsScreen
from tui.dialogs.save import SaveScreen
from tui.inspector.find_bar import FindBar
from tui.kit import clipboard, external
from tui.kit.lines import Value
from tui.kit.tree import Node, set_open

if TYPE_CHECKING:
    from tui.inspector.pane import InspectorPane


class InspectorActions:
    """Mixin of the inspector: one method a command."""

    @property
    def _pane(self) -> InspectorPane:
        return cast("InspectorPane", self)

    @property
    def can_fold(self) -> bool:
        """Whether the cursor's line folds."""
        return self._pane.view.line.fold is not None

    @property
    def needle(self) -> str:
        """What is searched for."""
        return self._pane.view.needle

    # Moving

    def do_down(self) -> None:
        """Go to the next line."""
        self._pane.view.move_by(1)

    def do_up(self) -> None:
        """Go to the previous line."""
        self._pane.view.move_by(-1)

    def do_page_down(self) -> None:
        """Go a page down."""
        self._pane.view.move_by(self._pane.view.page)

    def do_page_up(self) -> None:
        """Go a page up."""
        self._pane.view.move_by(-self._pane.view.page)

    def do_top(self) -> None:
        """Go to the first line."""
        self._pane.view.move_to(0)

    def do_end(self) -> None:
        """Go to the last line."""
        self._pane.view.move_to(self._pane.view.virtual_size.height - 1)

    # Tabs and folds

    async def do_next_tab(self) -> None:
        """Show the next tab."""
        await self._step(1)

    async def do_previous_tab(self) -> None:
        """Show the previous tab."""
        await self._step(-1)

    async def _step(self, by: int) -> None:
        from tui.inspector.pane import TABS

        await self._pane.choose_tab(TABS[(TABS.index(self._pane.tab) + by) % len(TABS)])

    async def do_back(self) -> None:
        """Go back to the call."""
        await self._pane.choose_tab("Call")

    async def do_follow(self) -> None:
        """Follow the link on the line, or fold."""
        line = self._pane.view.line
        if line.link is not None:
            await self._pane.follow(line)
        elif not self._pane.view.toggle_fold():
            self._pane.app.notify("Nothing to follow on this line", markup=False)

    def do_toggle(self) -> None:
        """Fold or unfold."""
        self._pane.view.toggle_fold()

    def do_unfold(self) -> None:
        """Unfold, or go in."""
        self._pane.view.unfold()

    def do_fold(self) -> None:
        """Fold, or go out."""
        self._pane.view.fold()

    def do_toggle_all(self) -> None:
        """Unfold the whole tree, or fold it."""
        subject = self._pane.subject
        if subject is None:
            return
        node = self._pane.view.line.fold
        roots = [_top(node)] if isinstance(node, Node) else list(subject.roots.values())
        closed = any(_has_closed(root) for root in roots)
        for root in roots:
            set_open(root, closed)
            root.open = True
        self._pane.view.stack.changed()
        self._pane.view.lay_out()
        self._pane.view.move_to(self._pane.view.cursor)

    # Finding

    def do_find(self) -> None:
        """Type what to find."""
        self._pane.query_one(FindBar).open()

    def do_next_hit(self) -> None:
        """Go to the next hit."""
        self._hit(1)

    def do_previous_hit(self) -> None:
        """Go to the previous hit."""
        self._hit(-1)

    def _hit(self, step: int) -> None:
        if not self._pane.view.found[1]:
            told = f"“{self.needle}” is not in {self._pane.tab}"
            self._pane.app.notify(told, severity="warning", markup=False)
        self._pane.view.next_hit(step)

    def on_find_bar_changed(self, message: FindBar.Changed) -> None:
        """Find as it is typed."""
        message.stop()
        self._pane.view.find(message.text)
        self._pane.view.post_message(self._pane.view.CursorMoved())

    def on_find_bar_accepted(self, message: FindBar.Accepted) -> None:
        """Go on in the view; the hits stay marked."""
        message.stop()
        self._pane.query_one(FindBar).remove_class("open")
        self._pane.focus()

    def on_find_bar_closed(self, message: FindBar.Closed) -> None:
        """Stop finding."""
        message.stop()
        self.stop_finding()
        self._pane.focus()

    def stop_finding(self) -> None:
        """Take the marks away."""
        self._pane.query_one(FindBar).close()
        self._pane.view.find("")
        self._pane.view.post_message(self._pane.view.CursorMoved())

    def go_back(self) -> bool:
        """Go back one step within the pane: end the search; False where there is none."""
        if not self.needle and not self._pane.query_one(FindBar).is_open:
            return False
        self.stop_finding()
        self._pane.focus()
        return True

    # Taking out

    def _value(self) -> Value | None:
        """Return the value on the line, or the main one of the tab."""
        here = self._pane.value_here
        if here is not None:
            return here
        values = (self._pane.view.line_at(number).value for number in self._sample())
        found = [value for value in values if value is not None]
        wanted = {"Call": ("output", "text", "diff", "input")}.get(self._pane.tab, ())
        for name in wanted:
            for value in found:
                if value.name == name:
                    return value
        return found[0] if found else None

    def _sample(self) -> range:
        return range(min(self._pane.view.virtual_size.height, 2_000))

    async def do_copy(self) -> None:
        """Copy what is selected with the mouse, else the value."""
        selected = self._pane.screen.get_selected_text()
        if selected:
            await clipboard.copy(self._pane.app, selected)
            return
        value = self._value()
        if value is None:
            self._pane.app.notify("There is nothing to copy here", markup=False)
            return
        await clipboard.copy(self._pane.app, value.read())

    async def do_copy_path(self) -> None:
        """Copy the value's path."""
        value = self._pane.value_here
        if value is not None:
            await clipboard.copy(self._pane.app, value.path)

    def do_copy_as(self) -> None:
        """Choose what to copy."""
        if self._pane.subject is not None and self._pane.store is not None:
            part = self._pane.subject.detail.part
            screen = CopyAsScreen(self._pane.store, part.session_id, part.message_id, part.id)
            self._pane.app.push_screen(screen)

    def do_open(self) -> None:
        """Open the value in the pager."""
        self._hand_over(external.open_in_pager)

    def do_edit(self) -> None:
        """Open a copy of the value in the editor."""
        self._hand_over(external.open_in_editor)

    def _hand_over(self, program: external.Program) -> None:
        value = self._value()
        if value is None:
            self._pane.app.notify("There is nothing to open here", markup=False)
            return
        try:
            program(self._pane.app, value.read(), value.suffix)
        except BackscrollError as error:
            self._pane.app.notify(str(error), severity="error", markup=False)

    def do_save(self) -> None:
        """Save the value to a file."""
        value, subject = self._value(), self._pane.subject
        if value is None or subject is None:
            self._pane.app.notify("There is nothing to save here", markup=False)
            return
        named = f"{subject.name}-{value.name}-{subject.detail.part.id[-6:]}"
        self._pane.app.push_screen(SaveScreen(value.read(), named, value.suffix))


def _top(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _has_closed(root: Node) -> bool:
    waiting = [root]
    for number, node in enumerate(waiting):
        if number == 2_000:
            break
        if node.is_container:
            if not node.open:
                return True
            waiting.extend(node.children)
    return False
