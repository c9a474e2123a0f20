"""What the bars of the timeline can show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from store.queries.details import Turn
from store.text.figures import duration, money, tokens
from tui.kit.usage import BUCKETS

Stacked = tuple[tuple[float, str], ...]
"""Amounts with the palette roles of their colours, from the bottom."""


class Legend(NamedTuple):
    """One of the things that are stacked in a bar.

    Attributes:
        name: On the screen.
        look: Palette role of its colour.
        short: The name on a narrow screen; empty where that is the same.
    """

    name: str
    look: str
    short: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is measured of a turn.

    Attributes:
        name: In a word or two.
        legend: What is stacked, from the bottom.
        of: Returns the amounts of a turn.
        written: Writes an amount in few cells.
    """

    name: str
    legend: tuple[Legend, ...]
    of: Callable[[Turn], Stacked]
    written: Callable[[float], str]


def _bucket_measure(name: str, keys: Sequence[str]) -> Measure:
    shown = [bucket for bucket in BUCKETS if bucket.key in keys]

    def of(turn: Turn) -> Stacked:
        return tuple((getattr(turn.spent, bucket.key), bucket.ink) for bucket in shown)

    legend = tuple(Legend(bucket.label, bucket.ink, bucket.short) for bucket in shown)
    return Measure(name, legend, of, lambda amount: tokens(round(amount)))


def _of_tools(turn: Turn) -> Stacked:
    return ((turn.failed, "error"), (turn.tools.total() - turn.failed, "tool"))


NEW_BUCKETS = tuple(bucket.key for bucket in BUCKETS if bucket.key != "cache_read")

MEASURES: tuple[Measure, ...] = (
    _bucket_measure("tokens", [bucket.key for bucket in BUCKETS]),
    _bucket_measure("tokens without cache reads", NEW_BUCKETS),
    Measure(
        "duration", (Legend("from prompt to last change", "user"),),
        lambda turn: ((turn.milliseconds, "user"),), lambda amount: duration(round(amount)),
    ),
    Measure(
        "cost", (Legend("dollars", "ok"),), lambda turn: (((turn.spent.cost or 0.0)
        + (turn.spent.estimated or 0.0), "ok"),), money,
    ),
    Measure(
        "tool calls", (Legend("failed", "error"), Legend("done", "tool")), _of_tools,
        lambda amount: f"{amount:.0f}",
    ),
)
