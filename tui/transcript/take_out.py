"""What takes a part of the transcript out of the app: copy as…, the pager."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from store.errors import BackscrollError
from tui.dialogs.copy_as import CopyAsScreen
from tui.inspector.choices import part_text
from tui.kit import external

if TYPE_CHECKING:
    from tui.transcript.transcript_pane import TranscriptPane


class TakeOutActions:
    """Mixin of the transcript."""

    def do_copy_as(self) -> None:
        """Choose what of the part, the message or the session to copy."""
        pane = cast("TranscriptPane", self)
        row = pane.document.row(pane.cursor) if pane.has_session else None
        if row is None or pane.reader is None:
            pane.app.notify("No part is selected", markup=False)
            return
        screen = CopyAsScreen(pane.reader.store, row.session_id, row.message_id, row.id)
        pane.app.push_screen(screen)

    def do_open(self) -> None:
        """Open the whole part in the pager."""
        pane = cast("TranscriptPane", self)
        row = pane.document.row(pane.cursor) if pane.has_session else None
        if row is None:
            pane.app.notify("No part is selected", markup=False)
            return
        try:
            external.open_in_pager(pane.app, part_text(row), ".md")
        except BackscrollError as error:
            pane.app.notify(str(error), severity="error", markup=False)
