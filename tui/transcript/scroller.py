"""The line at the top of the screen, as (part, line), and moves from part to part.

The position is a line of a part, never a scroll offset: nothing on the screen moves when
heights above it turn out other than estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.transcript.anchors import Spot
from tui.transcript.document import Document


@dataclass(slots=True)
class Row:
    """One row of the screen: a line of a part."""

    part: int
    line: int


class Scroller:
    """Moves through a document, which must have the rows of the parts on the way."""

    def __init__(self, document: Document) -> None:
        """Start at the first line."""
        self.document = document
        self.part = 0
        self.line = 0
        self.height = 1
        self.pending: Spot | None = None
        """The line to show at the top once its part's row is loaded; until then it is a guess."""

    def end(self) -> tuple[int, int]:
        """Return the position that shows the last line at the bottom."""
        left, part = self.height, len(self.document) - 1
        while part > 0 and (lines := self.document.height(part)) < left:
            left -= lines
            part -= 1
        if part < 0:
            return 0, 0
        return part, max(0, self.document.height(part) - left)

    def to(self, part: int, line: int = 0) -> None:
        """Put a line of a part at the top, but never leave the bottom empty."""
        part = max(0, min(part, len(self.document) - 1))
        lines = self.document.height(part) if len(self.document) else 0
        self.part, self.line = part, max(0, min(line, lines - 1))
        self._settle()

    def to_end(self) -> None:
        """Put the last line at the bottom."""
        self.part, self.line = self.end()

    def stay(self, *, at_end: bool) -> None:
        """Keep the position, or the end, after a resize; change nothing where rows are missing."""
        before, lacking = (self.part, self.line), self.document.lacking
        lacking.clear()
        if at_end:
            self.to_end()
        else:
            self.to(*before)
        if lacking:
            self.part, self.line = before

    def move(self, lines: int) -> int:
        """Move by lines; returns by how many it moved."""
        return self._down(lines) if lines > 0 else -self._up(-lines)

    def _down(self, lines: int) -> int:
        start = self.part, self.line
        document, last = self.document, len(self.document) - 1
        self.line += lines
        while self.part < last and self.line >= (height := document.height(self.part)):
            self.line -= height
            self.part += 1
        if last < 0:
            self.part = self.line = 0
        cut = self._settle()
        return 0 if (self.part, self.line) == start else max(0, lines - cut)

    def _up(self, lines: int) -> int:
        self.line -= lines
        while self.line < 0 and self.part > 0:
            self.part -= 1
            self.line += self.document.height(self.part)
        short = -min(0, self.line)
        self.line = max(0, self.line)
        return lines - short

    def _settle(self) -> int:
        """Step back where the end would leave the screen; returns by how many lines."""
        left, part, line = self.height, self.part, self.line
        count = len(self.document)
        while part < count and left > 0:
            left -= max(0, self.document.height(part) - line)
            part, line = part + 1, 0
        if left <= 0:
            return 0
        before = self.part, self.line
        self.part, self.line = self.end()
        return left if before != (self.part, self.line) else 0

    def rows(self) -> list[Row]:
        """Return the rows on the screen, from the top."""
        rows: list[Row] = []
        part, line, count = self.part, self.line, len(self.document)
        while part < count and len(rows) < self.height:
            height = self.document.height(part)
            rows.extend(Row(part, number) for number in range(line, height))
            part, line = part + 1, 0
        return rows[: self.height]

    def offset_of(self, part: int) -> int | None:
        """Return the screen row at which a part begins, None where it is not on the screen."""
        row = -self.line
        current, count = self.part, len(self.document)
        while current < count and row < self.height:
            if current == part:
                return row
            row += self.document.height(current)
            current += 1
        return None

    def show(self, part: int, line: int = 0, lines: int = 1, margin: int = 2) -> None:
        """Bring lines of a part onto the screen, moving as little as possible.

        Args:
            part: The part.
            line: The first of the lines.
            lines: How many.
            margin: Lines that are kept above them.
        """
        offset = self.offset_of(part)
        if offset is not None:
            top = offset + line
            if top >= min(margin, max(0, self.height - lines)) and top + lines <= self.height:
                return
            if top >= 0 and lines >= self.height and top <= margin:
                return
        self.to(part, line)
        if margin:
            self._up(min(margin, max(0, self.height - 1)))

    @property
    def position(self) -> int:
        """The line at the top, counted from the session's first."""
        if not len(self.document):
            return 0
        return self.document.heights.above(self.part) + self.line
