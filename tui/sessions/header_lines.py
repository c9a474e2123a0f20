"""What the header of the list says; its widgets and the first frame draw these lines."""

from __future__ import annotations

from store.queries.list_options import GROUPS, SHELVES, SORTS
from store.queries.listing import ListQuery
from store.system.records import NamedTuple
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line
from tui.kit.text import cells, fit, one_line

SLASH = " / "
"""Before the filter."""
ORDER_CELLS = 14
"""Width of the order, behind the filter."""


class Tally(NamedTuple):
    """How many sessions are shown.

    Attributes:
        shown: After the filter; None while nothing is counted yet.
        total: Before the filter.
        looked_at: How many the filter has looked at so far, None when it is done.
        marked: How many are marked.
        unseen: How many of these are not in the list.
        filtered: Whether there is a filter.
        searching: Whether the filter searches, or will, what was said in the sessions.
        partly: Whether it has ended before all of that was searched.
    """

    shown: int | None = None
    total: int = 0
    looked_at: int | None = None
    marked: int = 0
    unseen: int = 0
    filtered: bool = False
    searching: bool = False
    partly: bool = False

    def words(self) -> str:
        """Return the words of the header."""
        if self.shown is None:
            return "counting" + glyphs().more
        words = f"{self.total:,}"
        if self.filtered:
            words = f"{self.shown:,} of {self.total:,}"
        if self.looked_at is not None:
            words += f"  {100 * self.looked_at // max(1, self.total)}%{glyphs().more}"
        elif self.searching:
            words += f"  searching{glyphs().more}"
        elif self.partly:
            words += "  not all searched"
        if self.marked:
            words += f"  {self.marked} marked"
        return words + (f", {self.unseen} not listed" if self.unseen else "")


def title_line(
    query: ListQuery, tally: Tally, width: int, *, saved: str | None = None
) -> Line:
    """Return what is listed, how many sessions that are, and how they are grouped.

    Args:
        query: What is listed.
        tally: How many.
        width: Cells.
        saved: The name of the saved search that is shown, None where none is.
    """
    name = SHELVES[query.shelf].label
    if saved is not None:
        name = fit(one_line(saved), max(8, width // 2))
    group = GROUPS[query.group].label + " "
    words = "  " + tally.words()
    if cells(name) + cells(words) + cells(group) + 2 > width:
        group = " "  # A number that is cut is a wrong one.
    words = fit(words, width - cells(name) - cells(group) - 1)
    gap = " " * max(0, width - 1 - cells(name) - cells(words) - cells(group))
    return Line(((f" {name}", "text bold"), (words + gap, "muted"), (group, "faint")))


def order_line(query: ListQuery, width: int) -> Line:
    """Return the order at the right edge; its arrow is up where the smallest are first."""
    sort = SORTS[query.sort]
    words = f"{sort.label} {glyphs().up if sort.ascending else glyphs().down} "
    return Line(((" " * max(0, width - cells(words)) + words, "faint"),))
