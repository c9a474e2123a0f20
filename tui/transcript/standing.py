"""Where the reader stands, by keys that hold when parts come and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from store.rows import PartRow
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
        """Take a part that is there."""
        skeleton = document.skeleton
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
class Standing:
    """The top of the screen and the selected part.

    Attributes:
        on_last: Whether the last part was selected.
        row: The row of the selected part, where it was there.
        shifted: Whether what stood at the top has another number now.
    """

    top: Anchor | None = None
    line: int = 0
    cursor: Anchor | None = None
    on_last: bool = True
    row: PartRow | None = field(default=None)
    shifted: bool = False

    @classmethod
    def of(cls, document: Document, view: TranscriptView) -> Standing:
        """Take the place of a view."""
        count = len(document)
        if not count:
            return cls()
        top, cursor = min(view.scroller.part, count - 1), min(view.cursor, count - 1)
        after = range(cursor + 1, count)
        return cls(
            Anchor.of(document, top), view.scroller.line, Anchor.of(document, cursor),
            not any(document.shows(part) for part in after), document.row(cursor),
        )

    def top_in(self, document: Document) -> tuple[int, int]:
        """Return the part and line at the top now."""
        if self.top is None:
            return 0, 0
        part, same = self.top.find(document)
        self.shifted = part != self.top.part
        return part, self.line if same else 0

    def cursor_in(self, document: Document) -> int:
        """Return the selected part now."""
        return self.cursor.find(document)[0] if self.cursor is not None else 0
