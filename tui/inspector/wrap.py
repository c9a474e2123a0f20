"""Breaks a text into rows of a width: lazily, and linear in its length.

Only the heights of all source lines are worked out (a division for plain ASCII); a row's
own text is cut when it is drawn, so that ten megabytes open as quickly as ten lines.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from rich.cells import cached_cell_len

from tui.kit.text import clean, wrap

LONGEST_WIDE_LINE = 1_000_000
"""Characters of a source line beyond which text that is not ASCII is not wrapped."""


def break_offsets(line: str, width: int) -> list[int]:
    """Return where each row of a line starts, broken at ``width`` cells."""
    offsets, used = [0], 0
    for position, character in enumerate(line):
        cells = 1 if character < "\u0300" else cached_cell_len(character)
        if used + cells > width and used:
            offsets.append(position)
            used = 0
        used += cells
    return offsets


def word_rows(line: str, width: int) -> list[str]:
    """Return a line as rows broken between words; a word that is too long is cut."""
    return [line[start:end] for start, end in wrap(line, width)]


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
        self._offsets: dict[int, list[int]] = {}

    def _rows_of(self, line: str, width: int) -> int:
        if len(line) * 2 <= width:  # no character takes more than two cells
            return 1
        if self._words:
            return len(word_rows(line, width))
        if line.isascii():
            return -(-len(line) // width) or 1
        return len(break_offsets(line[:LONGEST_WIDE_LINE], width))

    def height(self, width: int) -> int:
        """Return how many rows the text takes at ``width`` cells."""
        if width != self._width:
            self._width = width
            self._offsets.clear()
            self._ends = list(accumulate(self._rows_of(line, width) for line in self.lines))
        return self._ends[-1]

    def row(self, number: int, width: int) -> tuple[str, int, bool]:
        """Return a row's text, the number of its source line, and whether it goes on one."""
        self.height(width)
        source = bisect_right(self._ends, number)
        first = self._ends[source - 1] if source else 0
        line, at = self.lines[source], number - first
        if self._words:
            return word_rows(line, width)[at], source, at > 0
        if line.isascii():
            return line[at * width : (at + 1) * width], source, at > 0
        starts = self._offsets.get(source)
        if starts is None:
            if len(self._offsets) > 256:
                self._offsets.clear()
            starts = self._offsets[source] = break_offsets(line[:LONGEST_WIDE_LINE], width)
        end = starts[at + 1] if at + 1 < len(starts) else min(len(line), LONGEST_WIDE_LINE)
        return line[starts[at] : end], source, at > 0

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
        """Return the row that shows a character of a source line."""
        self.height(width)
        first = self._ends[source - 1] if source else 0
        line = self.lines[source]
        if self._words:
            starts = [start for start, _ in wrap(line, width)]
        elif line.isascii():
            return first + min(at // width, self._rows_of(line, width) - 1)
        else:
            starts = break_offsets(line[:LONGEST_WIDE_LINE], width)
        return first + max(0, bisect_right(starts, at) - 1)
