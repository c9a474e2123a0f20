"""The text around a match, for a line or a few on the screen."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from store.search.hits import Excerpt

Span = tuple[int, int]
_WRITTEN = re.compile(r"\S")

WIDTH = 240
"""Characters of a line that an excerpt shows at most."""
_BEFORE = 60
"""Of them, in front of the match where the line is longer."""
_LOOKED_AT = 200
"""Spans of a term among which the best line is chosen."""


def excerpt(
    text: str, spans: Sequence[Sequence[Span]], context: int = 0, start: int = 0
) -> Excerpt:
    """Return the line of a text in which most terms match, with the matches marked.

    Args:
        text: The text of a section.
        spans: Matches of each term in it, ascending; none for a search without words.
        context: How many lines before and after it are shown too.
        start: Where the first line is looked for, for a search without words.
    """
    anchor = _anchor(text, spans, start)
    marks = _merged(sorted(span for found in spans for span in found))
    first, last = _line_of(text, anchor[0])
    piece, piece_marks, cut_before, cut_after = _cut(text, first, last, anchor[0], marks)
    number = text.count("\n", 0, first) + 1
    if not context:
        return Excerpt(piece, piece_marks, cut_before, cut_after, number)
    lines = [(piece, piece_marks)]
    top, stop = first, last
    for _ in range(context):
        if top > 0:
            above = _line_of(text, top - 1)
            lines.insert(0, _cut(text, *above, above[0], marks)[:2])
            top = above[0]
        if stop < len(text):
            below = _line_of(text, stop + 1) if stop + 1 < len(text) else None
            if below is not None:
                lines.append(_cut(text, *below, below[0], marks)[:2])
                stop = below[1]
    shown, found, offset = [], [], 0
    for line, line_marks in lines:
        shown.append(line)
        found += [(begin + offset, end + offset) for begin, end in line_marks]
        offset += len(line) + 1
    return Excerpt("\n".join(shown), tuple(found), cut_before, cut_after, number)


def _anchor(text: str, spans: Sequence[Sequence[Span]], start: int) -> Span:
    """Return the first match of the line in which most terms match.

    Args:
        text: The text.
        spans: Matches of each term in it.
        start: Where the first line that is not blank is looked for, where there are none.
    """
    found = [(span, term) for term, several in enumerate(spans) for span in several[:_LOOKED_AT]]
    if not found:
        written = _WRITTEN.search(text, start) or _WRITTEN.search(text)
        return (written.start(),) * 2 if written else (0, 0)
    if len(spans) == 1:
        return found[0][0]
    lines: dict[int, set[int]] = {}
    first: dict[int, Span] = {}
    for span, term in sorted(found):
        line = _line_of(text, span[0])[0]
        lines.setdefault(line, set()).add(term)
        first.setdefault(line, span)
    best = max(lines, key=lambda line: (len(lines[line]), -line))
    return first[best]


def _line_of(text: str, at: int) -> Span:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return start, len(text) if end < 0 else end


def _cut(
    text: str, start: int, end: int, anchor: int, marks: Sequence[Span]
) -> tuple[str, tuple[Span, ...], bool, bool]:
    """Return a line cut around a match, and the marks in it.

    Args:
        text: The text.
        start: Where the line begins.
        end: Where it ends.
        anchor: What must be seen of it.
        marks: All matches, ascending.
    """
    begin = start
    while begin < min(anchor, end) and text[begin].isspace():
        begin += 1
    from_here = begin
    if end - begin > WIDTH and anchor - begin > _BEFORE:
        from_here = min(anchor - _BEFORE, max(begin, end - WIDTH))
        space = text.find(" ", from_here, from_here + _BEFORE // 3)
        from_here = space + 1 if 0 <= space < anchor else from_here
    until = min(end, from_here + WIDTH)
    shown = []
    at = max(0, bisect_right(marks, (from_here, 0)) - 1)
    for low, high in marks[at:]:
        if low >= until:
            break
        if high > from_here:
            shown.append((max(low, from_here) - from_here, min(high, until) - from_here))
    return text[from_here:until], tuple(shown), from_here > begin, until < end


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif end > start:
            merged.append((start, end))
    return merged
