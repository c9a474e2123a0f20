"""Tokens and cost as a table, for the command line and the screen."""

from __future__ import annotations

from collections.abc import Sequence

from store.queries.stats import Spending
from store.text import figures
from store.usage import KEYS
from tui.kit.lines import Line
from tui.kit.text import fit, one_line

CELL = 13
HEADS = ("sessions", "answers", *(key.replace("_", " ") for key in KEYS), "total", "cost")


def row_of(group: Spending) -> str:
    """Return the figures of a group, each in a column of ``CELL``."""
    values = [str(group.sessions), str(group.answers)]
    values += [figures.tokens(group.spent[key]) for key in KEYS]
    values += [figures.tokens(group.total), figures.money(group.cost_usd) if group.cost_usd else ""]
    return "".join(f"{value:>{CELL}}" for value in values)


def copies_of(count: int) -> str:
    """Return how many answers were not counted, as they are copies."""
    are = "is a copy" if count == 1 else "are copies"
    return f"{figures.count_of(count, 'answer')} {are} of others and not counted again"


def spending_lines(whole: Sequence[Spending], groups: Sequence[Spending]) -> list[Line]:
    """Return the lines of a table.

    Args:
        whole: Everything as one group; empty where there is nothing.
        groups: The rows.
    """
    if not whole:
        return [Line((("No answer has tokens yet", "muted"),))]
    spent = whole[0]
    names = [fit(one_line(group.group or "(none)"), 36) for group in groups]
    width = max(map(len, [*names, "all"]))
    lines = [Line(((" " * width + "".join(f"{head:>{CELL}}" for head in HEADS), "muted"),))]
    lines += [
        Line(((f"{name:<{width}}", "text"), (row_of(group), "muted")))
        for name, group in zip(names, groups, strict=True)
    ]
    lines.append(Line(((f"{'all':<{width}}{row_of(spent)}", "text bold"),)))
    if spent.copies:
        lines += [Line(()), Line(((copies_of(spent.copies), "muted"),))]
    return lines
