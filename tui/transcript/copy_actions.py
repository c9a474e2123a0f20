"""Copies parts of the transcript, and opens them in the pager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.errors import BackscrollError
from store.rows import PartRow
from tui.transcript.shown import ShownSession
from tui.words.calls import describe
from tui.words.copying import copyables

if TYPE_CHECKING:
    from textual.widget import Widget


class CopyActions:
    """Takes the selected part, or selected text, out of the app."""

    def __init__(self, shown: ShownSession, pane: Widget) -> None:
        """Make the actions of a session, for the app of a widget."""
        self._shown, self._pane = shown, pane

    async def copy(self) -> None:
        """Copy what is selected with the mouse, else the selected part."""
        from tui.kit import clipboard

        selected = self._pane.screen.get_selected_text()
        text, name = (selected, "the selected text") if selected else self._part_text()
        if text:
            await clipboard.copy(self._pane.app, text, name)

    def _part_text(self) -> tuple[str, str]:
        """Return what one would paste of the selected part, and what that is."""
        shown, document = self._shown, self._shown.document
        item = document.item(shown.cursor) if shown.has_parts else None
        if item is None:
            return "", ""
        text: object = item.data.get("text")
        if isinstance(text, str):
            return text, "the text"
        if document.skeleton.is_tool(shown.cursor):
            pieces = copyables(item.data)
            if pieces:
                return pieces[0].text, f"the {pieces[0].name}"
            return describe(item.data).name, "the tool's name"
        block = document.block(shown.cursor)
        lines = block.lines[block.top:] if block else []
        return "\n".join(line.text for line in lines), "the part"

    def copy_as(self) -> None:
        """Choose what of the part, the message or the session to copy."""
        from tui.dialogs.copy_as import CopyAsScreen

        row, reader = self._selected_row(), self._shown.reader
        if row is not None and reader is not None:
            self._pane.app.push_screen(
                CopyAsScreen(reader.store, row.session_id, row.message_id, row.id))

    def open_in_pager(self) -> None:
        """Open the whole part in the pager."""
        from tui.dialogs.copy_choices import part_text
        from tui.kit import external

        row = self._selected_row()
        if row is None:
            return
        try:
            external.open_in_pager(self._pane.app, part_text(row), ".md")
        except BackscrollError as error:
            self._pane.app.notify(str(error), severity="error", markup=False)

    def _selected_row(self) -> PartRow | None:
        """Return the selected part's row; None, with a toast, where there is none."""
        shown = self._shown
        row = shown.document.row(shown.cursor) if shown.has_parts else None
        if row is None:
            self._pane.app.notify("No part is selected", markup=False)
        return row
