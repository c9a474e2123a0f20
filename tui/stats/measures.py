"""What bars and rows can show of figures: cost, tokens, calls, time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from store.stats.statistics import Figures, Order
from store.text.figures import count_of, duration, tokens
from tui.kit.glyphs import glyphs
from tui.kit.lines import Run
from tui.words.costs import cost_words, money_short


def dollars(figures: Figures) -> float:
    """Return what is known of the cost, 0 where nothing is."""
    return figures.cost_usd or 0.0


def money_tick(value: float) -> str:
    """Return an amount of dollars on an axis, without digits that say nothing."""
    if value >= 1:
        return f"${value:,.2f}".removesuffix("0").removesuffix(".0")
    return f"${value:.3f}".rstrip("0").rstrip(".")


def percent(part: float, whole: float) -> str:
    """Return a share as a percentage, ``<1 %`` where it is very small; "" of nothing."""
    if not whole:
        return ""
    share = 100 * part / whole
    if 0 < share < 0.5:
        return "<1 %"
    return f"{share:.0f} %"


def covers(figures: Figures) -> str:
    """Return what a cost covers, ``of 35 of 53 answers``; "" where it is all of them."""
    if not figures.unknown_answers or figures.cost_usd is None:
        return ""
    return f"of {figures.covered:,} of {figures.answers:,} answers"


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is measured.

    Attributes:
        name: In a word, as headings of columns have it.
        title: As the heading of a plot begins.
        of: Returns the amount of figures.
        words: Writes the amount of figures in a row.
        written: Writes an amount.
        tick: Writes an amount on an axis.
        order: What the store orders groups by.
        whole: Whether amounts are whole numbers.
    """

    name: str
    title: str
    of: Callable[[Figures], float]
    words: Callable[[Figures], str]
    written: Callable[[float], str]
    tick: Callable[[float], str]
    order: Order
    whole: bool = True


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _tokens(value: float) -> str:
    return tokens(round(value)).replace(".0k", "k").replace(".0M", "M")


MEASURES: tuple[Measure, ...] = (
    Measure("cost", "Cost", dollars, cost_words, money_short, money_tick, "cost", whole=False),
    Measure("tokens", "Tokens", lambda figures: figures.total,
            lambda figures: tokens(figures.total), _tokens, _tokens, "tokens"),
    Measure("calls", "Tool calls", lambda figures: figures.calls,
            lambda figures: _count(figures.calls), _count, _tokens, "calls"),
    Measure("time", "Time in turns", lambda figures: figures.active_ms,
            lambda figures: duration(figures.active_ms) if figures.active_ms else "0 s",
            duration, lambda value: duration(value).split(" ")[0] if value >= 60_000
            else duration(value), "active"),
)
COST = MEASURES[0]


def unknown_words(figures: Figures) -> str | None:
    """Return ``not known, 9 answers`` where nothing of a cost is known, else None."""
    if figures.cost_usd is None and figures.answers:
        return f"not known, {count_of(figures.answers, 'answer')}"
    return None


def all_words(figures: Figures) -> list[Run]:
    """Return everything of figures in a line: cost, tokens, turns, calls, time."""
    cost = unknown_words(figures)
    if cost is None:
        cost = " ".join(filter(None, (cost_words(figures).removesuffix("+"), covers(figures))))
    pieces = [cost, f"{tokens(figures.total)} tokens", count_of(figures.turns, "turn")]
    if figures.sessions > 1:
        pieces.insert(2, count_of(figures.sessions, "session"))
    if figures.calls:
        failed = f", {figures.failed:,} failed" if figures.failed else ""
        pieces.append(f"{count_of(figures.calls, 'call')}{failed}")
    if figures.active_ms:
        pieces.append(duration(figures.active_ms))
    return [(f"{glyphs().dot.center(3)}".join(pieces), "muted")]
