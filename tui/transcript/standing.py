"""Where the reader stands, by keys that hold when parts come and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.geometry import Offset
from textual.selection import Selection

from store.rows import PartRow
from tui.kit.selection import offset_y, place_of
from tui.transcript.document import Document, Key

if TYPE_CHECKING:
    from tui.transcript.view import TranscriptView

MESSAGES_ABOVE = 16
"""Messages above a part that stand in for it when it goes."""


@dataclass(slots=True)
class Anchor:
    """A part by its number and by its key, with the messages above it."""

    part: int
    key: Key
    above: list[str]

    @classmethod
    def of(cls, document: Document, part: int) -> Anchor:
        """Take a part; the nearest that is there."""
        skeleton = document.skeleton
        part = max(0, min(part, len(skeleton) - 1))
        message = skeleton.message[part]
        ids = skeleton.message_ids[max(0, message - MESSAGES_ABOVE): message]
        return cls(part, skeleton.key(part), ids[::-1])

    def find(self, document: Document) -> tuple[int, bool]:
        """Return where the part is now, and whether it is there at all."""
        skeleton = document.skeleton
        if self.part < len(skeleton) and skeleton.key(self.part) == self.key:
            return self.part, True
        found = skeleton.locate(*self.key)
        if found is not None:
            return found, skeleton.key(found) == self.key
        for message_id in self.above:
            found = skeleton.locate(message_id)
            if found is not None:
                return skeleton.parts_of(skeleton.message[found]).stop - 1, False
        return max(0, min(self.part, len(skeleton) - 1)), False


@dataclass(slots=True)
class Spot:
    """A line of a part, counted from the first that is the part's own.

    What stands above a part (a gap, a date, a heading) depends on its neighbours and comes
    and goes with them; the part's own lines stay where they are on the screen.
    """

    part: Anchor
    line: int

    @classmethod
    def of(cls, document: Document, part: int, line: int) -> Spot:
        """Take a line of a part."""
        return cls(Anchor.of(document, part), line - _top(document, part))

    def find(self, document: Document) -> tuple[int, int, bool]:
        """Return part and line now, and whether the part is there at all."""
        part, same = self.part.find(document)
        return part, max(0, self.line + _top(document, part)) if same else 0, same


def _top(document: Document, part: int) -> int:
    block = document.block(part) if part < len(document) else None
    return block.top if block is not None else 0


@dataclass(slots=True)
class Standing:
    """The top of the screen, the selected part, the selected text.

    Attributes:
        on_last: Whether the last part was selected.
        row: The row of the selected part, where it was there.
        shifted: Whether what stood at the top has another number now.
        selected: Column and line of the ends of the selected text.
    """

    top: Spot | None = None
    cursor: Anchor | None = None
    on_last: bool = True
    row: PartRow | None = field(default=None)
    shifted: bool = False
    selected: list[tuple[int, Spot] | None] | None = None

    @classmethod
    def of(cls, document: Document, view: TranscriptView) -> Standing:
        """Take the place of a view."""
        count = len(document)
        if not count:
            return cls()
        top, cursor = min(view.scroller.part, count - 1), min(view.cursor, count - 1)
        after = range(cursor + 1, count)
        selection = view.text_selection
        return cls(
            view.scroller.owed or Spot.of(document, top, view.scroller.line),
            Anchor.of(document, cursor),
            not any(document.shows(part) for part in after), document.row(cursor),
            selected=None if selection is None else [
                None if end is None else (end.x, Spot.of(document, *place_of(end.y)))
                for end in selection],
        )

    def top_in(self, document: Document) -> tuple[int, int]:
        """Return the part and line at the top now."""
        if self.top is None:
            return 0, 0
        part, line, _same = self.top.find(document)
        self.shifted = part != self.top.part.part
        return part, line

    def owed_in(self, document: Document) -> Spot | None:
        """Return the line at the top where the row that tells which it is now is not here."""
        if self.top is None or not len(document):
            return None
        part, there = self.top.part.find(document)
        return self.top if there and not document.has(part) else None

    def cursor_in(self, document: Document) -> int:
        """Return the selected part now; what a closed run hides is shown by its first part."""
        part = self.cursor.find(document)[0] if self.cursor is not None else 0
        run = document.run_of(part) if part < len(document) else None
        if run is not None and not document.run_opened(run):
            return document.skeleton.first[run[0]]
        return part

    def selection_in(self, document: Document) -> Selection | None:
        """Return the selected text now; None where an end of it is not there any more."""
        ends: list[Offset | None] = []
        for end in self.selected or ():
            if end is None:
                ends.append(None)
                continue
            part, line, same = end[1].find(document)
            if not same:
                return None
            ends.append(Offset(end[0], offset_y(part, line)))
        return Selection(*ends) if ends else None
