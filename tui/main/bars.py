"""The line above the panes: name and counts of the store."""

from __future__ import annotations

from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from store.text.figures import count_of
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, width_of
from tui.kit.masked import is_view_masked
from tui.kit.paint import paint_of, strip_of
from tui.kit.text import cells, fit
from tui.live.summary import Summary
from tui.main.outline import store_runs

WITHIN = "(24 h)"
"""Of which time waiting sessions are counted, where there is room to say it; what runs is
known of all."""
GAP = 2
"""Cells between what is at the left and what is at the right."""
LEAST = 20
"""Cells of a name, such as a URL, that is cut for what follows it."""
FEWEST = 8
"""Cells below which a cut name says nothing and is left out."""


class TopLine(Widget):
    """Name, store and counts; at the right what runs, what waits, how fresh it is."""

    DEFAULT_CSS = "TopLine { height: 1; background: $panel; }"
    summary: reactive[Summary] = reactive(Summary())

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        left = self._begun(self.summary.store)
        counts: list[Run] = [(f"  {words}", "muted") for words in self._counts()]
        right = self._right()
        if self._room(*left, *counts[:1], *right) < 0:
            right = self._right(short=True)
        while len(right) > 1 and width_of(right) > self.size.width:
            # That what is shown may be old is the last to go.
            right.pop(0 if self.summary.trouble else -1)
        if self._room(*left, *counts[:1], *right) < 0:
            left = self._begun(self._cut_name(counts[:1], right))
        while len(left) > 1 and self._room(*left, *right) < 0:
            left.pop()  # A few letters of "read only" say nothing; the bottom line says it, too.
        for piece in counts:
            # Without this count a later one could be taken for it.
            if self._room(*left, piece, *right) < 0:
                break
            left.append(piece)
        return strip_of(Line(left, right), self.size.width, paint_of(self.app), ground="raised")

    def _room(self, *runs: Run) -> int:
        """Return the cells that are left beside some runs."""
        return self.size.width - width_of(list(runs)) - GAP

    def _cut_name(self, count: list[Run], right: list[Run]) -> str:
        """Return as much of the store's name as leaves room for the rest, or for the right."""
        name = self.summary.store
        room = self._room(*self._begun(""), *right)
        beside = room - width_of(count)
        most = beside if beside >= LEAST else min(room, LEAST)
        if cells(name) <= most:
            return name
        return fit(name, most) if most >= FEWEST else ""

    def _begun(self, name: str) -> list[Run]:
        return store_runs(name, read_only=self.summary.read_only, masked=is_view_masked())

    def _counts(self) -> list[str]:
        summary, counts = self.summary, []
        if summary.sessions is not None:
            counts.append(count_of(summary.sessions, "session"))
        if summary.archived:
            counts.append(f"{summary.archived:,} archived")
        if summary.sources:
            counts.append(count_of(summary.sources, "source"))
        return counts

    def _right(self, *, short: bool = False) -> list[Run]:
        summary = self.summary
        right: list[Run] = []
        if summary.running:
            words = f"{glyphs().running} {summary.running} running  "
            right.append((words, "ok"))
        if summary.waiting:
            within = "" if short else f" {WITHIN}"
            words = f"{glyphs().waiting} {summary.waiting} waiting{within}  "
            right.append((words, "tool"))
        if summary.trouble:
            words = f"{glyphs().failed} {summary.trouble} "
            right.append((words, "error bold"))
        else:
            right.append((f"{summary.freshness} ", "muted"))
        return right
