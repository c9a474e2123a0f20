"""Tokens and cost as lines: the figures and bars of the five buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from store import usage
from store.text.figures import estimate, money, tokens
from store.usage import Spent
from tui.kit.lines import Line, Run, cut


class PlottedBucket(NamedTuple):
    """A bucket as plots show it.

    Attributes:
        key: Its field in ``Spent``.
        label: Its name.
        short: Its name in narrow columns.
        ink: Its colour.
    """

    key: str
    label: str
    short: str
    ink: str


_INKS = {
    "cache_read": "tool", "cache_write": "ok", "input": "user", "output": "assistant",
    "reasoning": "reasoning",
}  # fmt: skip
_BY_KEY = {bucket.key: bucket for bucket in usage.BUCKETS}
BUCKETS = tuple(
    PlottedBucket(key, _BY_KEY[key].label, _BY_KEY[key].short, ink) for key, ink in _INKS.items()
)
"""The five buckets, in the order of every plot."""
FIRST = ("input", "output", "reasoning")
"""The buckets in the first of two lines; the second has the cache."""


def cost_words(spent: Spent) -> str:
    """Return the cost, marked where a part of it is an estimate; empty where none is known."""
    if spent.estimated is not None:
        return estimate((spent.cost or 0.0) + spent.estimated)
    return "" if spent.cost is None else money(spent.cost)


def spent_lines(spent: Spent, width: int) -> list[Line]:
    """Return the five buckets in two lines, the cost at the right where it is known."""
    first = _figures([(_BY_KEY[key].short, getattr(spent, key)) for key in FIRST])
    second: list[Run] = [("cache", "faint")]
    second += [(f" {tokens(spent.cache_read)}", "text"), (" read", "faint")]
    second += [(f"  {tokens(spent.cache_write)}", "text"), (" write", "faint")]
    cost: tuple[Run, ...] = ()
    if words := cost_words(spent):
        cost = ((words, "text"),)
    return [Line(cut(first, width)), Line(cut(second, width), cost)]


def _figures(named: Sequence[tuple[str, int]]) -> list[Run]:
    runs: list[Run] = []
    for at, (name, count) in enumerate(named):
        runs += [("  " if at else "", "text"), (name, "faint"), (f" {tokens(count)}", "text")]
    return runs


def bar_lines(spent: Spent, width: int) -> list[Line]:
    """Return one bar for each bucket: its name, share, bar and count."""
    cells = max(6, width - 24)
    lines = []
    for key, label, _short, ink in BUCKETS:
        count = getattr(spent, key)
        share = count / spent.total if spent.total else 0.0
        percent = "<1%" if 0 < share < 0.01 else f"{share:.0%}"
        full = bar(share, cells)
        runs: tuple[Run, ...] = (
            (label.ljust(11), "faint"), (percent.rjust(5) + " ", "muted"),
            (full, ink), (" " * (cells - len(full)), "text"),
        )
        lines.append(Line(runs, ((tokens(count).rjust(5), "muted"),)))
    return lines


def bar(share: float, cells: int) -> str:
    """Return a bar of full and partial blocks for a share from 0 to 1."""
    eighths = round(share * cells * 8)
    if share > 0 and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
