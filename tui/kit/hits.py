"""Where a pattern is in lines, across soft wraps as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from store.system.records import record
from tui.kit.lines import Line, joined, logical_lines
from tui.kit.text import Span


class Match(Protocol):
    """A place in a text, as regular expressions give it."""

    def start(self) -> int:
        """Return its first character."""
        ...

    def end(self) -> int:
        """Return the character after its last."""
        ...


class Finds(Protocol):
    """What finds places in a text: a regular expression, or the words of a search."""

    def finditer(self, text: str, /) -> Iterable[Match]:
        """Return the places in order; they do not overlap."""
        ...


@record
class Hits:
    """Where a pattern matches in lines.

    Attributes:
        spans: By line, which characters match.
        starts: The line on which each match begins, in order.
        pieces: For each match, which characters of which lines it is.
    """

    spans: dict[int, list[Span]]
    starts: list[int]
    pieces: list[dict[int, Span]]


def hits_in(lines: Sequence[Line], pattern: Finds) -> Hits:
    """Return where a pattern matches, across soft wraps as well."""
    found: dict[int, list[Span]] = {}
    starts: list[int] = []
    pieces: list[dict[int, Span]] = []
    for start, stop in logical_lines(lines):
        text, places = joined(lines[start:stop])
        for match in pattern.finditer(text):
            piece: dict[int, Span] = {}
            for row, (begin, lead, length) in enumerate(places):
                low, high = max(match.start() - begin, 0), min(match.end() - begin, length)
                if low < high:
                    found.setdefault(start + row, []).append((low + lead, high + lead))
                    piece[start + row] = (low + lead, high + lead)
            if piece:
                starts.append(min(piece))
                pieces.append(piece)
    return Hits(found, starts, pieces)
