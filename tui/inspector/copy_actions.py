"""Copies, opens and saves the value on the line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from store.errors import BackscrollError
from tui.dialogs.copy_as import CopyAsScreen
from tui.dialogs.save import SaveScreen
from tui.inspector.subject import Subject
from tui.kit import clipboard, external
from tui.kit.line_view import LineView
from tui.kit.lines import Value
from tui.verbs.searching import search_everywhere
from tui.words.searching import Wanted, value_query, wanted_of_part

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen
    from textual.widget import Widget

    from store.store import Store

MAIN_VALUES = ("output", "text", "diff", "input")
"""Which value of the Call tab is taken where the line has none, the most wanted first."""
MOST_LINES = 2_000
"""Lines that are looked through for a value."""


class Inspecting(Protocol):
    """The inspector, as far as values are taken from it."""

    view: LineView
    tab: str
    subject: Subject | None
    store: Store | None

    @property
    def app(self) -> App[Any]:
        """The running app."""
        ...

    @property
    def screen(self) -> Screen[Any]:
        """The screen, which knows what the mouse selected."""
        ...


class CopyActions:
    """What is done with the value on the line, or with the main one of the tab."""

    def __init__(self, pane: Inspecting) -> None:
        """Take the inspector."""
        self._pane = pane

    @property
    def value_here(self) -> Value | None:
        """The value on the cursor's line."""
        return self._pane.view.line.value

    async def search_everywhere(self, owner: Widget) -> None:
        """Search all sessions for the selected text, the value on the line, or the call."""
        value, subject = self.value_here, self._pane.subject
        wanted = []
        if value is not None:
            text = value.read()
            query = value_query(value.path or value.name, text)
            wanted = [Wanted(value.name, text, query)] if query else []
        if not wanted and subject is not None:
            wanted = wanted_of_part({"type": subject.type, **subject.data})
        await search_everywhere(owner, wanted)

    @property
    def value(self) -> Value | None:
        """The value on the line, or the main one of the tab."""
        here = self.value_here
        if here is not None:
            return here
        view = self._pane.view
        lines = range(min(view.virtual_size.height, MOST_LINES))
        found = [value for n in lines if (value := view.line_at(n).value) is not None]
        for name in MAIN_VALUES if self._pane.tab == "Call" else ():
            for value in found:
                if value.name == name:
                    return value
        return found[0] if found else None

    async def copy(self) -> None:
        """Copy what is selected with the mouse, else the value."""
        text, name = self._pane.screen.get_selected_text(), "the selected text"
        value = self.value
        if not text and value is not None:
            text, name = value.read(), value.name
        if text or value is not None:
            await clipboard.copy(self._pane.app, text or "", name)
        else:
            self._say("There is nothing to copy here")

    async def copy_path(self) -> None:
        """Copy the value's path in the JSON."""
        value = self.value_here
        if value is not None:
            await clipboard.copy(self._pane.app, value.path, "the path")

    def copy_as(self) -> None:
        """Choose what to copy."""
        pane = self._pane
        if pane.subject is not None and pane.store is not None:
            part = pane.subject.detail.part
            pane.app.push_screen(
                CopyAsScreen(pane.store, part.session_id, part.message_id, part.id))

    def open_in_pager(self) -> None:
        """Open the value in the pager."""
        self._hand_over(external.open_in_pager)

    def open_in_editor(self) -> None:
        """Open a copy of the value in the editor."""
        self._hand_over(external.open_in_editor)

    def _hand_over(self, program: external.Program) -> None:
        value = self.value
        if value is None:
            self._say("There is nothing to open here")
            return
        try:
            program(self._pane.app, value.read(), value.suffix)
        except BackscrollError as error:
            self._pane.app.notify(str(error), severity="error", markup=False)

    def save(self) -> None:
        """Save the value to a file."""
        value, subject = self.value, self._pane.subject
        if value is None or subject is None:
            self._say("There is nothing to save here")
            return
        named = f"{subject.name}-{value.name}-{subject.detail.part.id[-6:]}"
        self._pane.app.push_screen(SaveScreen(value.read(), named, value.suffix))

    def _say(self, words: str) -> None:
        self._pane.app.notify(words, markup=False)
