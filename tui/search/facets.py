"""Facets: what was found by agent, tool, folder and month; each narrows the query by its text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from store.language.query import Query, Span, quoted, without
from store.search.hits import Facets
from store.text import figures
from tui.kit.glyphs import glyphs
from tui.kit.lines import BLANK, Line, Link, Run, cut, set_width, width_of
from tui.kit.text import cells, fit, fit_path, one_line
from tui.words.sessions import folder

ORDER = ("agent", "tool", "where", "role", "workspace", "month")
_FIELDS = {"where": "in"}
"""Fields of the query language that have another name than their facet."""
SAVED, RECENT, MORE = "saved", "recent", "more"
"""Kinds of links beside those of the facets."""
SHOWN, SHOWN_MONTHS = 5, 6
"""Values of a facet that are shown before it is opened."""
_CURVE_CELLS = 8
"""Each stands for four days of a month, the last one for three."""
_DAYS_OF_A_CELL = 4
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Facet(NamedTuple):
    """A value that narrows the query.

    Attributes:
        name: The facet's name.
        value: As the hits have it.
        hits: How many hits have it.
        active: Whether the query asks for it.
        curve: Of a month, its hits in turn, every four days; empty for other values.
    """

    name: str
    value: str
    hits: int
    active: bool = False
    curve: tuple[int, ...] = ()

    @property
    def link(self) -> Link:
        """Where enter on it leads."""
        return Link(self.name, self.value)


# The query's text


def tokens_of(name: str, value: str) -> list[str]:
    """Return what a query says to ask for a value of a facet."""
    if name == "month":
        year, month = (int(part) for part in value.split("-"))
        after = f"{year + month // 12}-{month % 12 + 1:02}"
        return [f"after:{value}", f"before:{after}"]
    if name == "workspace":
        return [f"workspace:={quoted(folder(value))}"] if value else ["-workspace:/"]
    return [f"{_FIELDS.get(name, name)}:{quoted(value)}"]


def spans_of(query: Query, name: str, value: str) -> list[Span]:
    """Return the pieces of a query that ask for a value of a facet; none where it does not.

    Args:
        query: The query.
        name: The facet's name.
        value: The value.
    """
    tokens = tokens_of(name, value)
    found = [
        each.span for each in query.filters
        if query.text[slice(*each.span)].casefold() in [token.casefold() for token in tokens]
    ]
    if name == "month":
        return found if len({query.text[slice(*span)] for span in found}) == 2 else []
    field = _FIELDS.get(name, name)
    return found or [
        each.span for each in query.filters
        if each.field == field and not each.negated
        and str(each.value).casefold() == value.casefold()
    ]


def toggled(query: Query, name: str, value: str) -> str:
    """Return a query's text with a value of a facet asked for, or no longer.

    Args:
        query: The query.
        name: The facet's name.
        value: The value.
    """
    spans = spans_of(query, name, value)
    if spans:
        return without(query, spans)
    return " ".join(filter(None, (query.text.strip(), *tokens_of(name, value))))


# What is shown


def facets_of(
    found: Facets, query: Query, days: Mapping[str, int] | None = None
) -> list[tuple[str, list[Facet]]]:
    """Return the facets that tell something apart, each with its values, most hits first.

    Args:
        found: Hits by value, by facet.
        query: The query that they were found by.
        days: Hits by local day, for the curves of months.
    """
    groups = []
    curves = _curves(days or {})
    for name in ORDER:
        counts = found.get(name, {})
        values = [
            Facet(name, value, hits, bool(spans_of(query, name, value)),
                  curves.get(value, ()) if name == "month" else ())
            for value, hits in counts.items()
        ]
        if name == "month":
            values.sort(key=lambda facet: facet.value, reverse=True)
        if values:
            groups.append((name, values))
    return groups


def _curves(days: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the hits of each month in turn, from hits by day."""
    found: dict[str, list[int]] = {}
    for day, hits in days.items():
        curve = found.setdefault(day[:7], [0] * _CURVE_CELLS)
        curve[(int(day[8:]) - 1) // _DAYS_OF_A_CELL] += hits
    return {month: tuple(curve) for month, curve in found.items()}


def label_of(facet: Facet, this_year: int) -> str:
    """Return how people write a facet's value."""
    if facet.name == "workspace":
        return folder(facet.value) if facet.value else "no folder"
    if facet.name == "month":
        year, month = facet.value.split("-")
        name = _MONTHS[int(month) - 1] if month.isdigit() and 1 <= int(month) <= 12 else month
        return name if year == str(this_year) else f"{name} {year}"
    return one_line(facet.value, 80)


def column(
    groups: Sequence[tuple[str, list[Facet]]], width: int, *, now: int, opened: set[str],
    saved: Mapping[str, str], recent: Sequence[str], text: str,
) -> list[Line]:
    """Return the column of facets, saved searches and recent ones.

    Args:
        groups: The facets.
        width: Cells of a line.
        now: Epoch ms.
        opened: Facets of which all values are shown.
        saved: Saved searches by name.
        recent: The last searches, the newest first.
        text: The query, as it was typed.
    """
    year = time.localtime(now / 1000).tm_year
    lines: list[Line] = []
    for name, values in groups:
        lines += [Line([(f" {name}", "muted bold")])]
        limit = SHOWN_MONTHS if name == "month" else SHOWN
        shown = values if name in opened or len(values) <= limit + 1 else values[:limit]
        shown = [*shown, *(each for each in values[len(shown):] if each.active)]
        most = max((max(each.curve, default=0) for each in shown), default=0)
        lines += [_facet_line(each, width, year, most) for each in shown]
        left = len(values) - len(shown)
        if left:
            words = f" {glyphs().more} {left} more"
            lines.append(Line([(words, "faint")], link=Link(MORE, name)))
        lines.append(BLANK)
    for title, kind, names in ((SAVED, SAVED, list(saved)), (RECENT, RECENT, list(recent))):
        if names:
            lines.append(Line([(f" {title}", "muted bold")]))
            for each in names:
                query = saved[each] if kind == SAVED else each
                lines.append(_kept_line(each, kind, width, active=query == text.strip()))
            lines.append(BLANK)
    return lines


def _facet_line(facet: Facet, width: int, year: int, most: int) -> Line:
    count = f"{facet.hits:,}"
    room = width - cells(count) - 2
    label = label_of(facet, year)
    shown = fit_path(label, room) if facet.name == "workspace" else fit(label, room)
    runs: list[Run] = [*_mark(facet.active), (shown, "tool bold" if facet.active else "text")]
    if facet.curve:
        levels = glyphs().levels[1:]  # The lowest is a base line, for days without a hit.
        steps = len(levels) - 1
        curve = "".join(levels[-(-hits * steps // max(1, most))] for hits in facet.curve)
        runs = [*set_width(runs, 9), (" ", "blank"), (curve, "muted")]
    if width_of(runs) > room + 1:
        runs = list(cut(runs, room + 1))
    return Line(runs, [(count, "faint")], link=facet.link)


def _mark(active: bool) -> list[Run]:
    return [(glyphs().thick_bar, "tool")] if active else [(" ", "blank")]


def _kept_line(name: str, kind: str, width: int, *, active: bool) -> Line:
    words = fit(one_line(name, 200), width - 1)
    ink = "tool bold" if active else "text" if kind == SAVED else "muted"
    return Line([*_mark(active), (words, ink)], link=Link(kind, name))


def chips(groups: Sequence[tuple[str, list[Facet]]], now: int) -> list[tuple[Run, Link | None]]:
    """Return the facets for one line: names of facets, and values with counts, from the left.

    Args:
        groups: The facets.
        now: Epoch ms.
    """
    year = time.localtime(now / 1000).tm_year
    found: list[tuple[Run, Link | None]] = []
    for name, values in groups:
        found.append(((f"{name} ", "faint"), None))
        for facet in values[:SHOWN]:
            mark = glyphs().mark if facet.active else ""
            words = f"{mark}{fit_path(label_of(facet, year), 24)} {figures.tokens(facet.hits)}"
            found.append(((words, "tool bold" if facet.active else "muted"), facet.link))
    return found
