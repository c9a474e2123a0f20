"""Codes of one or two letters for what is on the screen: made, and drawn over its rows."""

from __future__ import annotations

from itertools import product

from rich.segment import Segment
from textual.strip import Strip

from tui.kit.paint import Paint

LETTERS = "asdfghjklqwertyuiopzxcvbnm"
"""The home row first, then the row above it, then the one below."""
CODE = "tool bold reverse"


def codes(count: int) -> list[str]:
    """Return as many codes: single letters where they are enough, the home row first.

    Where they are not, the last letters begin codes of two, so that no code begins another.
    Two letters make 676 codes; what is beyond has none.
    """
    pairs = 0
    while len(LETTERS) - pairs + pairs * len(LETTERS) < count and pairs < len(LETTERS):
        pairs += 1
    singles = LETTERS[: len(LETTERS) - pairs]
    twos = ("".join(pair) for pair in product(LETTERS[len(singles):], LETTERS))
    return [*singles, *twos][:count]


def coded(strip: Strip, code: str, paint: Paint) -> Strip:
    """Return a row with a code over its first cells, and a blank after it.

    Args:
        strip: The row.
        code: The letters that are still to be typed.
        paint: Resolves the ink.
    """
    words = f"{code} "
    head = Strip([
        Segment(code, paint.style(CODE)), Segment(" ", paint.style("blank")),
    ], len(words))
    return Strip.join([head, strip.crop(len(words), strip.cell_length)])
