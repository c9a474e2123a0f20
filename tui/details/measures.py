"""What the bars of the timeline can stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from store.queries.details import Turn
from tui.inspector.spent import BUCKETS
from tui.kit.figures import duration, money, tokens

Stacked = tuple[tuple[float, str], ...]
"""Amounts with the palette roles of their colours, from the bottom."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is measured of a turn.

    Attributes:
        name: In a word or two.
        legend: Names and colours of what is stacked.
        of: Gives a turn's amounts.
        told: Says an amount in few cells.
    """

    name: str
    legend: tuple[tuple[str, str], ...]
    of: Callable[[Turn], Stacked]
    told: Callable[[float], str]


def _bucket_measure(name: str, keys: Sequence[str]) -> Measure:
    shown = [bucket for bucket in BUCKETS if bucket[0] in keys]

    def of(turn: Turn) -> Stacked:
        return tuple((getattr(turn.spent, key), look) for key, _, look in shown)

    legend = tuple((label, look) for _, label, look in shown)
    return Measure(name, legend, of, lambda amount: tokens(round(amount)))


def _of_tools(turn: Turn) -> Stacked:
    return ((turn.failed, "error"), (turn.tools.total() - turn.failed, "tool"))


NEW_BUCKETS = tuple(key for key, _, _ in BUCKETS if key != "cache_read")

MEASURES: tuple[Measure, ...] = (
    _bucket_measure("tokens", [key for key, _, _ in BUCKETS]),
    _bucket_measure("tokens without cache reads", NEW_BUCKETS),
    Measure(
        "duration", (("from prompt to last change", "user"),),
        lambda turn: ((turn.milliseconds, "user"),), lambda amount: duration(round(amount)),
    ),
    Measure(
        "cost", (("dollars", "ok"),), lambda turn: ((turn.spent.cost or 0.0, "ok"),), money,
    ),
    Measure(
        "tool calls", (("failed", "error"), ("done", "tool")), _of_tools,
        lambda amount: f"{amount:.0f}",
    ),
)
