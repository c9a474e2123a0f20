"""The widget that shows a page of statistics: the cursor goes from bar to bar, row to row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from textual import events
from textual.message import Message

from tui.kit.blocks import Fixed
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Run, width_of
from tui.kit.paint import MARGIN
from tui.kit.scrollbar import ThinScrollBar, set_lines
from tui.kit.text import cells, column_offset

Key = tuple[str, str]
"""What a spot stands for, the same in a newer page: its section and its name there."""


class Spot(NamedTuple):
    """A bar or a row that can be selected.

    Attributes:
        key: What it stands for.
        top: Its first line.
        bottom: The line after its last.
        left: Its first cell.
        right: The cell after its last.
        column: -1 in a plot, where left and right go from spot to spot; else that of its table.
        marks: Whether its cells are raised while it is selected; a plot marks its bar itself.
    """

    key: Key
    top: int
    bottom: int
    left: int
    right: int
    column: int
    marks: bool = True


@dataclass(slots=True)
class Page:
    """Lines, and what can be selected in them.

    Attributes:
        lines: From the top.
        spots: In reading order.
        by_key: The same by key.
    """

    lines: list[Line] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)

    @property
    def by_key(self) -> Mapping[Key, Spot]:
        """The spots by their keys."""
        return {spot.key: spot for spot in self.spots}


def highlighted(line: Line, left: int, right: int) -> Line:
    """Return a line with the cells of a spot on the cursor's ground.

    Args:
        line: The line.
        left: The first cell.
        right: The cell after the last.
    """
    runs: list[Run] = []
    at = 0
    for text, ink in line.runs:
        size = width_of([(text, ink)])
        start, end = max(left - at, 0), min(right - at, size)
        if start >= end:
            runs.append((text, ink))
        else:
            first, last = column_offset(text, start), column_offset(text, end)
            last = len(text) if end >= size else last
            runs += [(text[:first], ink), (text[first:last], f"{ink} on:focus"), (text[last:], ink)]
        at += size
    if at < right:
        runs.append((" " * (right - max(at, left)), "blank on:focus"))
    return Line([run for run in runs if run[0]], line.right, value=line.value)


class StatsView(LineView):
    """Shows a page; posts where the cursor went and what was opened.

    Attributes:
        page_now: The page that is shown.
        selected: The key of the selected spot; None before anything can be selected.
    """

    DEFAULT_CSS = "StatsView { overflow-y: scroll; }"

    class Moved(Message):
        """Another spot is selected."""

    class Opened(Message):
        """A spot was clicked that was selected already, or twice."""

    def __init__(self, build: Callable[[int, Key | None], Page]) -> None:
        """Make an empty view.

        Args:
            build: Returns the page for a width and the selected spot.
        """
        super().__init__(id="stats-view", ground="background")
        self._build = build
        self.page_now = Page()
        self.selected: Key | None = None
        self._bar: Key | None = None

    def on_mount(self) -> None:
        """Draw a thin scroll bar."""
        super().on_mount()
        self.vertical_scrollbar.renderer = ThinScrollBar  # type: ignore[misc]

    # What is shown

    def renew(self) -> None:
        """Build the page again; the selected spot stays selected, on its row of the screen."""
        if not self.size.width:
            return
        before = self.spot
        offset = before.top - self.scroll_offset.y if before is not None else 0
        self.page_now = self._build(self.cells, self.selected)
        if self.selected is not None and self.selected not in self.page_now.by_key:
            self.selected = self._next_to(before)
            self.page_now = self._build(self.cells, self.selected)
        page = self.page_now
        self.stack.blocks = [Fixed(lambda _: page.lines)]
        self.stack.changed()
        set_lines(self, len(page.lines))
        spot = self.spot
        if spot is not None:
            self.cursor = spot.top
            if before is not None and spot.key == before.key and spot.top != before.top:
                self.scroll_to(y=max(0, spot.top - offset), animate=False, force=True,
                               immediate=True)
        self.refresh()

    def lay_out(self) -> None:
        """Build the page for another width."""
        self.renew()

    @property
    def spot(self) -> Spot | None:
        """The selected spot."""
        return self.page_now.by_key.get(self.selected) if self.selected is not None else None

    def _next_to(self, gone: Spot | None) -> Key | None:
        """Return the spot that is nearest to one that is no more."""
        spots = self.page_now.spots
        if gone is None or not spots:
            return spots[0].key if spots else None
        same = [spot for spot in spots if spot.key[0] == gone.key[0]] or spots
        nearest = min(same, key=lambda one: (abs(one.top - gone.top), abs(one.left - gone.left)))
        return nearest.key

    def line_at(self, number: int) -> Line:
        """Return a line; the selected spot's cells are raised."""
        line = super().line_at(number)
        spot = self.spot
        if spot is None or not spot.marks or not spot.top <= number < spot.bottom:
            return line
        return highlighted(line, spot.left, spot.right)

    def ground_of(self, number: int) -> str:
        """Return the view's own ground: the cursor raises a spot, not a whole line."""
        return "background"

    # Moving

    @property
    def page(self) -> int:
        """The rows of one column that fit on the screen."""
        spot, height = self.spot, self.scrollable_content_region.height
        first, column = (spot.top, spot.column) if spot is not None else (0, 0)
        rows = {one.top for one in self.page_now.spots
                if one.column == max(0, column) and first <= one.top < first + height}
        return max(1, len(rows) - 1)

    def select(self, key: Key | None) -> None:
        """Select a spot and make it visible."""
        spot = self.page_now.by_key.get(key) if key is not None else None
        if spot is None:
            return
        marks_itself = [one for one in (self.spot, spot) if one is not None and not one.marks]
        self.selected = spot.key
        if spot.column < 0:
            self._bar = spot.key
        if marks_itself:
            self.page_now = page = self._build(self.cells, self.selected)
            self.stack.blocks = [Fixed(lambda _: page.lines)]
            self.stack.changed()
        self.cursor = spot.top
        self._reveal(spot)
        self.refresh()
        self.post_message(self.Moved())

    def _reveal(self, spot: Spot) -> None:
        top, page = self.scroll_offset.y, max(1, self.scrollable_content_region.height)
        first = min((one.top for one in self.page_now.spots), default=0)
        wanted = top
        if spot.column < 0 or spot.top <= first:
            wanted = 0 if spot.bottom <= page else max(0, spot.bottom - page)
        elif spot.top - 1 < top:
            wanted = spot.top - 1
        elif spot.bottom > top + page:
            wanted = spot.bottom - page
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, force=True, immediate=True)

    def move_by(self, lines: int) -> None:
        """Go some rows down, or up where it is negative; a plot is one row."""
        step = 1 if lines > 0 else -1
        key = self.selected
        for _ in range(min(abs(lines), len(self.page_now.spots))):
            following = self._below(key, step)
            if following is None:
                break
            key = following
        if key is None and self.page_now.spots:
            key = self.page_now.spots[0].key
        self.select(key)

    def _below(self, key: Key | None, step: int) -> Key | None:
        spot = self.page_now.by_key.get(key) if key is not None else None
        if spot is None:
            return None
        beyond = [one for one in self.page_now.spots
                  if (one.top >= spot.bottom if step > 0 else one.bottom <= spot.top)]
        if spot.column >= 0:
            column = [one for one in beyond if one.column == spot.column]
            plot = [one for one in beyond if one.column < 0]
            beyond = column or plot
        if not beyond:
            return None
        edge = min(beyond, key=lambda one: one.top if step > 0 else -one.bottom)
        row = [one for one in beyond if (one.top if step > 0 else one.bottom)
               == (edge.top if step > 0 else edge.bottom)]
        if row[0].column < 0 and self._bar in {one.key for one in row}:
            return self._bar
        if row[0].column < 0:
            return row[-1].key
        return min(row, key=lambda one: (
            0 if one.left <= spot.left < one.right else abs(one.left - spot.left))).key

    def move_beside(self, by: int) -> None:
        """Go to the next bar of a plot, or to the table beside this one."""
        spot = self.spot
        if spot is None:
            self.move_by(by)
            return
        spots = self.page_now.spots
        if spot.column < 0:
            row = sorted((one for one in spots if one.column < 0 and one.top == spot.top),
                         key=lambda one: one.left)
            at = row.index(spot) + by
            if 0 <= at < len(row):
                self.select(row[at].key)
            return
        beside = [one for one in spots if one.column == spot.column + (1 if by > 0 else -1)
                  and one.column >= 0]
        if beside:
            self.select(min(beside, key=lambda one: (abs(one.top - spot.top), one.top)).key)

    def move_to(self, number: int) -> None:
        """Select the spot on a line, or the nearest one."""
        spots = self.page_now.spots
        if not spots:
            return
        spot = self.spot
        column = spot.column if spot is not None and spot.column >= 0 else 0
        nearest = min(spots, key=lambda one: (
            0 if one.top <= number < one.bottom else
            min(abs(one.top - number), abs(one.bottom - 1 - number)),
            one.column != column,
        ))
        bar = self.page_now.by_key.get(self._bar) if self._bar is not None else None
        self.select(bar.key if nearest.column < 0 and bar is not None else nearest.key)

    def jump_stops(self) -> list[int]:
        """Return the lines on the screen on which something can be selected."""
        top, page = self.scroll_offset.y, self.scrollable_content_region.height
        return sorted({spot.top for spot in self.page_now.spots if top <= spot.top < top + page})

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; open it where it was selected, or at a second click."""
        if self._pressed != (event.x, event.y):
            return
        event.stop()
        number, cell = event.y + self.scroll_offset.y, event.x - MARGIN
        spot = self._spot_at(number, cell)
        if spot is None:
            return
        again = spot.key == self.selected
        self.select(spot.key)
        if again or event.chain == 2:
            self.post_message(self.Opened())

    def _spot_at(self, number: int, cell: int) -> Spot | None:
        here = [spot for spot in self.page_now.spots if spot.top <= number < spot.bottom]
        inside = next((spot for spot in here if spot.left <= cell < spot.right), None)
        if inside is not None:
            return inside
        # The gap after a bar belongs to it.
        bars = [spot for spot in here if spot.column < 0 and spot.left <= cell <= spot.right]
        return bars[0] if bars else None


def padded(text: str, size: int) -> str:
    """Return a text filled up with spaces to a number of cells."""
    return text + " " * max(0, size - cells(text))
