"""Breaks text into rows: a logical line with its prefixes, or a long text row by row.

``wrap_runs`` lays out one logical line with its inks. ``WrappedText`` is for a text of any
size: only the heights of its source lines are worked out (a division for plain ASCII), and a
row is cut when it is drawn, so ten megabytes open as quickly as ten lines. Both are linear in
the length of the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tui.kit.lines import Line, Run, slice_runs, width_of
from tui.kit.text import Span, break_cells, clean, wrap

LONGEST_WIDE_LINE = 1_000_000
"""Characters of a source line beyond which text that is not ASCII is not wrapped."""
LONG_LINE = 10_000
"""Characters of a source line from which its rows are kept once they are known."""
MOST_KEPT = 256
"""Source lines whose rows are kept."""


def wrap_runs(
    runs: Sequence[Run], width: int, first: Sequence[Run] | None = None,
    rest: Sequence[Run] | None = None, ground: str = "", *, by_cells: bool = False,
) -> list[Line]:
    """Lay out one logical line.

    Args:
        runs: Cleaned text without newlines.
        width: Cells, with the prefixes.
        first: Comes before the first row (a list's bullet).
        rest: Comes before each further row; as wide as ``first``.
        ground: The background of the rows.
        by_cells: Break at the edge (code, output), not between words (prose).
    """
    first = first or ()
    rest = rest if rest is not None else first
    text = "".join([piece for piece, _ink in runs])
    room = max(2, width - width_of(first))
    spans = break_cells(text, room) if by_cells else wrap(text, room)
    while len(spans) > 1 and not text[slice(*spans[-1])].strip():
        spans.pop()  # No row for what cannot be seen; it stays in the tail.
    lead = sum([len(piece) for piece, _ink in rest])
    if len(spans) == 1:
        return [Line([*first, *runs], lead=lead, tail=text[spans[0][1]:], ground=ground)]
    lines = []
    for row, (start, end) in enumerate(spans):
        following = spans[row + 1][0] if row + 1 < len(spans) else len(text)
        body = slice_runs(runs, start, end)
        lines.append(Line(
            [*(rest if row else first), *body], lead=lead, soft=row > 0,
            tail=text[end:following], ground=ground,
        ))
    return lines


def plain_lines(
    text: str, width: int, ink: str, indent: Sequence[Run] | None = None
) -> list[Line]:
    """Lay out a text line by line as it is, broken between words.

    Args:
        text: Any text; it is cleaned here.
        width: Cells, with the indent.
        ink: What it is drawn with.
        indent: Comes before each row.
    """
    return [
        line for source in clean(text).split("\n")
        for line in wrap_runs([(source, ink)], width, indent)
    ]


class TextRow(NamedTuple):
    """One row of a wrapped text.

    Attributes:
        text: What is drawn.
        source: The number of its source line, from 0.
        soft: Whether it continues the row above.
        tail: White space that the break after it swallowed.
    """

    text: str
    source: int
    soft: bool
    tail: str = ""


class WrappedText:
    """A text in rows of any width; rows are numbered from 0."""

    def __init__(self, text: str, *, words: bool = False) -> None:
        """Take a text, which is cleaned here.

        Args:
            text: Any text.
            words: Break between words (prose), not at the edge (code, output).
        """
        self.lines = clean(text).split("\n")
        if len(self.lines) > 1 and not self.lines[-1]:
            self.lines.pop()
        self._words = words
        self._width = 0
        self._ends: list[int] = []
        self._spans: dict[int, list[Span]] = {}

    def _spans_of(self, line: str, width: int) -> list[Span]:
        if self._words:
            return wrap(line, width)
        return break_cells(line[:LONGEST_WIDE_LINE], width)

    def _is_plain(self, line: str) -> bool:
        """Say whether the rows of a line follow from a division."""
        return not self._words and line.isascii()

    def _rows_of(self, source: int, line: str, width: int) -> int:
        if len(line) * 2 <= width:  # no character takes more than two cells
            return 1
        if self._is_plain(line):
            return -(-len(line) // width) or 1
        spans = self._spans_of(line, width)
        if len(line) >= LONG_LINE and len(self._spans) < MOST_KEPT:
            self._spans[source] = spans
        return len(spans)

    def height(self, width: int) -> int:
        """Return how many rows the text takes at ``width`` cells."""
        if width != self._width:
            self._width = width
            self._spans.clear()
            rows = (self._rows_of(at, line, width) for at, line in enumerate(self.lines))
            self._ends = list(accumulate(rows))
        return self._ends[-1]

    def row(self, number: int, width: int) -> TextRow:
        """Return a row."""
        self.height(width)
        source = bisect_right(self._ends, number)
        line, at = self.lines[source], number - (self._ends[source - 1] if source else 0)
        if self._is_plain(line):
            return TextRow(line[at * width : (at + 1) * width], source, at > 0)
        spans = self._spans.get(source)
        if spans is None:
            if len(self._spans) >= MOST_KEPT:
                self._spans.clear()
            spans = self._spans[source] = self._spans_of(line, width)
        start, end = spans[at]
        following = spans[at + 1][0] if at + 1 < len(spans) else end
        return TextRow(line[start:end], source, at > 0, line[end:following])

    def find(self, needle: str) -> list[tuple[int, int]]:
        """Return source line and character of each place that holds the needle.

        Args:
            needle: Case-folded.
        """
        found = []
        for number, line in enumerate(self.lines):
            folded = line.casefold()
            at = folded.find(needle)
            while at >= 0:
                found.append((number, at))
                at = folded.find(needle, at + len(needle))
        return found

    def row_of(self, source: int, at: int, width: int) -> int:
        """Return the row that shows a character of a source line.

        Args:
            source: The number of the source line.
            at: The character in it.
            width: Cells of a row.
        """
        self.height(width)
        first = self._ends[source - 1] if source else 0
        line = self.lines[source]
        if self._is_plain(line):
            return first + min(at // width, self._rows_of(source, line, width) - 1)
        starts = [start for start, _ in self._spans_of(line, width)]
        return first + max(0, bisect_right(starts, at) - 1)
