"""What the viewport shows, by keys: taken before a document changes, restored after it."""

from __future__ import annotations

from dataclasses import dataclass, field

from textual.geometry import Offset
from textual.selection import Selection

from store.rows import PartRow
from tui.kit.selection import offset_y, place_of
from tui.transcript.anchors import Anchor, Spot
from tui.transcript.document import Document
from tui.transcript.view import TranscriptView


@dataclass(slots=True)
class ViewportSnapshot:
    """The top of the screen, the selected part and the selected text.

    Attributes:
        top: The line at the top of the screen.
        cursor: The selected part.
        on_last: Whether the last part was selected.
        row: The row of the selected part, where it was loaded.
        selected: Column and line of the ends of the selected text.
    """

    top: Spot | None = None
    cursor: Anchor | None = None
    on_last: bool = True
    row: PartRow | None = field(default=None)
    selected: list[tuple[int, Spot] | None] | None = None

    @classmethod
    def of(cls, view: TranscriptView) -> ViewportSnapshot:
        """Return the snapshot of a view."""
        document = view.document
        count = len(document)
        if not count:
            return cls()
        top, cursor = min(view.scroller.part, count - 1), min(view.cursor, count - 1)
        selection = view.text_selection
        return cls(
            view.scroller.pending or Spot.of(document, top, view.scroller.line),
            Anchor.of(document, cursor),
            document.last_shown() <= cursor, document.row(cursor),
            selected=None if selection is None else [
                None if end is None else (end.x, Spot.of(document, *place_of(end.y)))
                for end in selection],
        )

    def restore(self, view: TranscriptView) -> None:
        """Show the same lines again, in a document that has just changed."""
        document, scroller = view.document, view.scroller
        scroller.part, scroller.line = self._top_in(document)
        scroller.pending = self._pending_in(document)
        view.cursor = self._cursor_in(document)
        if view.at_end and self.on_last and len(document):
            view.cursor = document.last_shown()
        before = view.text_selection
        if before is not None and (now := self._selection_in(document)) != before:
            view.select_text(now)
        view.changed()

    def _top_in(self, document: Document) -> tuple[int, int]:
        if self.top is None:
            return 0, 0
        part, line, _exists = self.top.find(document)
        return part, line

    def _pending_in(self, document: Document) -> Spot | None:
        """Return the line at the top where the row that its position depends on is missing."""
        if self.top is None or not len(document):
            return None
        part, exists = self.top.part.find(document)
        return self.top if exists and not document.has(part) else None

    def _cursor_in(self, document: Document) -> int:
        """Return the selected part now; of a closed run, the first part."""
        part = self.cursor.part_in(document) if self.cursor is not None else 0
        run = document.run_of(part) if part < len(document) else None
        if run is not None and not document.run_opened(run):
            return document.skeleton.first[run[0]]
        return part

    def _selection_in(self, document: Document) -> Selection | None:
        """Return the selected text now; None where one of its ends no longer exists."""
        ends: list[Offset | None] = []
        for end in self.selected or ():
            if end is None:
                ends.append(None)
                continue
            part, line, exists = end[1].find(document)
            if not exists:
                return None
            ends.append(Offset(end[0], offset_y(part, line)))
        return Selection(*ends) if ends else None
