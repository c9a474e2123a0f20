"""Figures of statistics in words and as CSV, for the command line and the screens."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from store.stats.figures import Figures
from store.text import figures
from store.text.neutral import neutral_line
from store.usage import KEYS

_FORMULA = ("=", "+", "-", "@")
"""With these a spreadsheet takes a cell for a formula."""
_DIGITS = 6
"""Of dollars, after the point."""


def cost_words(found: Figures) -> str:
    """Return a cost: ``$1.20``, ``≈ $0.12`` where a part is estimated, ``unknown``."""
    cost = found.cost_usd
    if cost is None:
        return "unknown" if found.answers else ""
    return f"{'≈ ' if found.is_estimate else ''}{figures.money(cost) if cost else '$0'}"


def covered_words(found: Figures) -> str:
    """Return a cost and how many answers it covers: ``$0.60 of 35 of 53 answers``."""
    answers = figures.count_of(found.answers, "answer")
    if found.cost_usd is None:
        return f"unknown cost of {answers}" if found.answers else "no answers"
    covered = answers if not found.unknown_answers else f"{found.covered:,} of {answers}"
    return f"{cost_words(found)} of {covered}"


def csv_of(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV. None is an empty cell; no text is a formula to a spreadsheet.

    Args:
        heads: The names of the columns.
        rows: Texts, numbers and None.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(heads)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return written.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return "" if value is None else round(value, _DIGITS)
    text = neutral_line(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def figures_csv(rows: Iterable[tuple[str, Figures]]) -> str:
    """Return the figures of groups as CSV, by the name of each."""
    heads = ["group", *flat(figures_json(Figures()))]
    return csv_of(heads, ([name, *flat(figures_json(each)).values()] for name, each in rows))


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with what is inside of its objects as columns of its own."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        cells |= flat(value) if isinstance(value, dict) else {name: value}
    return cells


def figures_json(found: Figures) -> dict[str, Any]:
    """Return figures by the names that JSON and CSV have for them; an unknown cost is None."""
    cost = found.cost_usd
    is_told = found.told_answers or found.told_usd
    return {
        "sessions": found.sessions,
        "turns": found.turns,
        "answers": found.answers,
        "copies": found.copies,
        "spent": dict(zip(KEYS, found.tokens, strict=True)),
        "total": found.total,
        "cost_usd": None if cost is None else round(cost, _DIGITS),
        "told_usd": round(found.told_usd, _DIGITS) if is_told else None,
        "told_answers": found.told_answers,
        "estimated_usd": round(found.estimated_usd, _DIGITS) if found.estimated_answers else None,
        "estimated_answers": found.estimated_answers,
        "covered_answers": found.covered,
        "unknown_answers": found.unknown_answers,
        "calls": found.calls,
        "failed": found.failed,
        "denied": found.denied,
        "tool_ms": found.tool_ms,
        "active_ms": found.active_ms,
    }


def copies_of(count: int) -> str:
    """Return how many answers were not counted, as they are copies."""
    are = "is a copy" if count == 1 else "are copies"
    return f"{figures.count_of(count, 'answer')} {are} of others and not counted again"
