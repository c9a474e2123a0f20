"""Lines as they are laid out, before they have colours.

A run is a piece of text with an *ink*: the name of a palette role, then flags
(``b`` bold, ``i`` italic, ``u`` underlined, ``s`` struck), such as ``"user b"``. Inks are
resolved when a line is painted, so that a layout outlives a change of theme or focus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tui.kit.text import Span, break_cells, cells, fit, wrap

Run = tuple[str, str]
"""Text and ink."""
Action = Literal["", "fold", "hidden", "child", "more"]


@dataclass(slots=True)
class Line:
    """One row of a part.

    Attributes:
        runs: The content; its widths add up to at most the layout's width.
        right: Facts at the right edge.
        lead: Characters at the start that are decoration, left out when a soft-wrapped
            line is joined for copying and searching.
        soft: Goes on the line above it, which was too long.
        tail: White space that the break after this row swallowed.
        ground: Role of the background under the content (``added`` ...), "" for none.
        action: What a click on it does.
        bar: Role of the accent bar, "" for the part's own, ``none`` for no bar.
    """

    runs: list[Run]
    right: list[Run] = field(default_factory=list)
    lead: int = 0
    soft: bool = False
    tail: str = ""
    ground: str = ""
    action: Action = ""
    bar: str = ""

    @property
    def text(self) -> str:
        """The content as plain text."""
        return "".join(text for text, _ink in self.runs)


@dataclass(slots=True)
class Block:
    """One part, laid out.

    Attributes:
        bar: Role of its accent bar.
        top: Lines at its top that are not its own: the gap, dividers.
        dimmed: Drawn a weight fainter (hidden or inherited).
        folded: Whether something of it is not shown.
        width: The width it was laid out for.
    """

    lines: list[Line]
    bar: str = "none"
    top: int = 0
    dimmed: bool = False
    folded: bool = False
    width: int = 0
    _found: tuple[re.Pattern[str], Hits] | None = None

    def hits(self, pattern: re.Pattern[str]) -> Hits:
        """Return where a pattern matches, across soft wraps as well."""
        if self._found is None or self._found[0] is not pattern:
            self._found = (pattern, _hits(self.lines, pattern))
        return self._found[1]


@dataclass(slots=True)
class Hits:
    """Where a pattern matches in a block.

    Attributes:
        spans: By line, which characters match.
        starts: The line on which each match begins, in order.
        pieces: For each match, which characters of which lines it is.
    """

    spans: dict[int, list[Span]]
    starts: list[int]
    pieces: list[dict[int, Span]]


def _hits(lines: list[Line], pattern: re.Pattern[str]) -> Hits:
    found: dict[int, list[Span]] = {}
    starts: list[int] = []
    pieces: list[dict[int, Span]] = []
    for start, stop in logical_lines(lines):
        group = lines[start:stop]
        text, places = joined(group)
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


def logical_lines(lines: list[Line]) -> Iterable[tuple[int, int]]:
    """Yield start and end of each run of rows that are one line of the source."""
    start = 0
    for number in range(1, len(lines) + 1):
        if number == len(lines) or not lines[number].soft:
            yield start, number
            start = number


def joined(group: list[Line]) -> tuple[str, list[tuple[int, int, int]]]:
    """Join soft-wrapped rows to the text they came from.

    Returns:
        The text, and for each row where it begins there, its lead and its length.
    """
    pieces, places, at = [], [], 0
    for row, line in enumerate(group):
        lead = line.lead if row else 0
        text = line.text[lead:]
        places.append((at, lead, len(text)))
        pieces += [text, line.tail]
        at += len(text) + len(line.tail)
    return "".join(pieces), places


def width_of(runs: Iterable[Run]) -> int:
    """Return the columns that runs take."""
    return sum(cells(text) for text, _ink in runs)


def slice_runs(runs: list[Run], start: int, end: int) -> list[Run]:
    """Return the runs of the characters from start to end."""
    cut, at = [], 0
    for text, ink in runs:
        if at >= end:
            break
        stop = at + len(text)
        if stop > start:
            cut.append((text[max(0, start - at): end - at], ink))
        at = stop
    return cut


def wrapped(
    runs: list[Run], width: int, first: list[Run] | None = None, rest: list[Run] | None = None,
    ground: str = "", *, by_cells: bool = False,
) -> list[Line]:
    """Lay out one logical line.

    Args:
        runs: Cleaned text without newlines.
        width: Columns, with the prefixes.
        first: Stands before the first row (a list's bullet).
        rest: Stands before each further row; as wide as ``first``.
        ground: The background of the rows.
        by_cells: Break at the edge (code, output), not between words (prose).
    """
    first, rest = first or [], rest if rest is not None else first or []
    text = "".join(piece for piece, _ink in runs)
    room = max(2, width - width_of(first))
    spans = break_cells(text, room) if by_cells else wrap(text, room)
    while len(spans) > 1 and not text[slice(*spans[-1])].strip():
        spans.pop()  # No row for what cannot be seen; it stays in the tail.
    lead = sum(len(piece) for piece, _ink in rest)
    lines = []
    for row, (start, end) in enumerate(spans):
        following = spans[row + 1][0] if row + 1 < len(spans) else len(text)
        body = runs if len(spans) == 1 else slice_runs(runs, start, end)
        lines.append(Line(
            [*(rest if row else first), *body], lead=lead, soft=row > 0,
            tail=text[end:following], ground=ground,
        ))
    return lines


def fitted(runs: list[Run], width: int) -> list[Run]:
    """Cut runs to a width, with an ellipsis."""
    if width_of(runs) <= width:
        return runs
    kept: list[Run] = []
    left = width
    for text, ink in runs:
        size = cells(text)
        if size >= left:
            kept.append((fit(text + " " if size == left else text, left), ink))
            break
        kept.append((text, ink))
        left -= size
    return kept
