"""Where the thumb of a scroll bar is."""

from __future__ import annotations

from store.system.records import NamedTuple


class Thumb(NamedTuple):
    """The part of a bar that says what is seen.

    Attributes:
        start: Its first cell.
        length: How many cells it has.
    """

    start: int
    length: int


def thumb_of(size: int, lines: float, seen: float, at: float) -> Thumb | None:
    """Return the thumb; None where all is seen.

    Args:
        size: Cells of the bar.
        lines: Of what is scrolled.
        seen: How many lines are seen.
        at: The first line that is seen.
    """
    if not (seen and size and lines > seen):
        return None
    length = max(1, int(-(-seen * size // lines)))  # Rounded up; math would have to be loaded.
    start = round((size - length) * at / (lines - seen))
    return Thumb(max(0, min(start, size - length)), length)
