"""Places in a session that are kept by key, so that they hold when parts come and go."""

from __future__ import annotations

from dataclasses import dataclass

from tui.transcript.document import Document, Key

MESSAGES_ABOVE = 16
"""Messages above a part that replace it when it is deleted."""


@dataclass(slots=True)
class Anchor:
    """A part by its number and by its key, with the messages above it."""

    part: int
    key: Key
    above: list[str]

    @classmethod
    def of(cls, document: Document, part: int) -> Anchor:
        """Return the anchor of a part, or of the nearest that exists."""
        skeleton = document.skeleton
        part = max(0, min(part, len(skeleton) - 1))
        message = skeleton.message[part]
        ids = skeleton.message_ids[max(0, message - MESSAGES_ABOVE): message]
        return cls(part, skeleton.key(part), ids[::-1])

    def find(self, document: Document) -> tuple[int, bool]:
        """Return the number of the part now, and whether it still exists."""
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

    def part_in(self, document: Document) -> int:
        """Return the number of the part now; the nearest one where it no longer exists."""
        return self.find(document)[0]


@dataclass(slots=True)
class Spot:
    """A line of a part, counted from the first line that is the part's own.

    The lines above a part (a gap, a date, a heading) depend on its neighbours and come and
    go with them; the part's own lines stay where they are on the screen.
    """

    part: Anchor
    line: int

    @classmethod
    def of(cls, document: Document, part: int, line: int) -> Spot:
        """Return the spot of a line of a part.

        Args:
            document: Holds the part.
            part: The part, by its number now.
            line: Which of its lines.
        """
        return cls(Anchor.of(document, part), line - _top(document, part))

    def find(self, document: Document) -> tuple[int, int, bool]:
        """Return part and line now, and whether the part still exists."""
        part, same = self.part.find(document)
        return part, max(0, self.line + _top(document, part)) if same else 0, same


def _top(document: Document, part: int) -> int:
    block = document.block(part) if part < len(document) else None
    return block.top if block is not None else 0
