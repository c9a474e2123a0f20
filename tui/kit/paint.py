"""Lines to strips: the only place where inks become styles of the active theme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.lines import Line, Run, arrange, slice_runs
from tui.kit.palette import RAISED_GROUNDS, Palette, look_of, placeholder_colour
from tui.kit.text import Span, drawable
from tui.kit.theme import palette_of

W = TypeVar("W", bound=Widget)
_FOLLOWERS = WeakKeyDictionary[App[Any], WeakKeyDictionary[Widget, Callable[[Any], object]]]()
"""What widgets do when their app has another theme."""
MARGIN = 1
"""Blank cells at both edges of a row."""
HIT, CURRENT_HIT = "text bold on:hit", "tool bold reverse on:hit"
"""Inks of what a search found, and of the hit that the search is at."""


class Paint:
    """Resolves inks against one palette; each style is made once."""

    def __init__(self, palette: Palette) -> None:
        """Take the palette that everything is drawn with."""
        self.palette = palette
        self._styles: dict[tuple[str, str, bool], Style] = {}

    def style(self, ink: str, ground: str = "background", dimmed: bool = False) -> Style:
        """Return the style of an ink.

        Args:
            ink: See ``tui.kit.lines``. Its own ground gives way to that of a cursor or a
                dialog (``focus``, ``raised``); the ground of a hit does not.
            ground: Role of the background.
            dimmed: Whether it is drawn a weight fainter.
        """
        key = (ink, ground, dimmed)
        style = self._styles.get(key)
        if style is None:
            style = self._styles[key] = self._resolve(ink, ground, dimmed)
        return style

    @property
    def placeholder(self) -> Style:
        """The style of the words of an empty input."""
        return Style(color=placeholder_colour(self.palette), bgcolor=self.palette.panel)

    @property
    def selected(self) -> Style:
        """The style of text that is selected with the mouse; it hides the text's own colours."""
        return Style(color=self.palette.text, bgcolor=self.palette.selected)

    def _resolve(self, ink: str, ground: str, dimmed: bool) -> Style:
        look = look_of(self.palette, ink, ground, dimmed=dimmed)
        flags = look.flags
        return Style(
            color=look.colour, bgcolor=look.ground,
            bold="bold" in flags or None, italic="italic" in flags or None,
            underline="underline" in flags or None, strike="strike" in flags or None,
        )


@lru_cache(maxsize=16)
def paint_with(palette: Palette) -> Paint:
    """Return what paints with a palette."""
    return Paint(palette)


def paint_of(app: App[Any]) -> Paint:
    """Return what paints with the colours of the active theme."""
    return paint_with(palette_of(app))


def follow_theme(widget: W, changed: Callable[[W], object]) -> None:
    """Call a function with a widget after each change of the theme, as long as the widget is used.

    A subscription of the widget's own would keep it until the theme changes, with all it shows.

    Args:
        widget: A widget that is mounted.
        changed: The function, which does not hold the widget.
    """
    app = widget.app
    followers = _FOLLOWERS.get(app)
    if followers is None:
        followers = _FOLLOWERS[app] = WeakKeyDictionary()
        app.theme_changed_signal.subscribe(app, lambda _: _tell(followers))
    followers[widget] = changed


def _tell(followers: WeakKeyDictionary[Widget, Callable[[Any], object]]) -> None:
    for widget, changed in list(followers.items()):
        if widget.is_running:
            widget.call_next(changed, widget)


def segments_of(
    line: Line, width: int, paint: Paint, *, ground: str, own: str = "", dimmed: bool = False,
    margin: int = 0,
) -> list[Segment]:
    """Return a line as segments of together ``width + margin`` cells.

    Args:
        line: The line.
        width: Cells of the line.
        paint: Resolves the inks.
        ground: Role of the ground beneath it.
        own: Role of the ground beneath its content, "" for none.
        dimmed: Whether it is drawn a weight fainter.
        margin: Blank cells after it, on ``ground``.
    """
    if not own:
        return [
            Segment(drawable(text), paint.style(ink, ground, dimmed))
            for text, ink in arrange(line, width, margin) if text
        ]
    segments, lead = [], line.lead
    for text, ink in arrange(line, width):
        if text:
            behind = own if lead <= 0 else ground
            segments.append(Segment(drawable(text), paint.style(ink, behind, dimmed)))
            lead -= len(text)
    if margin:
        segments.append(Segment(" " * margin, paint.style("blank", ground)))
    return segments


def strip_of(
    line: Line, width: int, paint: Paint, *, ground: str = "panel", needle: str = ""
) -> Strip:
    """Return a line as a strip of exactly ``width`` cells.

    Args:
        line: The line; its own ground wins over the view's, not over the cursor's.
        width: Cells.
        paint: Resolves the inks.
        ground: Role of the ground beneath it.
        needle: What is searched for, case-folded; "" marks nothing.
    """
    own = line.ground if ground not in RAISED_GROUNDS else ""
    if needle:
        runs = arrange(line, width)
        spans = spans_of("".join([text for text, _ink in runs]), needle)
        if spans:
            line = Line(marked(runs, spans, HIT), lead=line.lead)
    segments = segments_of(line, width, paint, ground=ground, own=own)
    return Strip(segments).adjust_cell_length(width, paint.style("blank", own or ground))


def row_of(
    line: Line, width: int, paint: Paint, *, ground: str = "panel", needle: str = ""
) -> Strip:
    """Return a line between its margins, as a strip of exactly ``width`` cells.

    Args:
        line: See ``strip_of``.
        width: Cells, with the margins.
        paint: Resolves the inks.
        ground: Role of the ground beneath it.
        needle: What is searched for, case-folded; "" marks nothing.
    """
    inner = max(1, width - 2 * MARGIN)
    strip = strip_of(line, inner, paint, ground=ground, needle=needle)
    return between_margins(strip, width, paint.style("blank", ground))


def blank(width: int, paint: Paint, ground: str) -> Strip:
    """Return an empty row of a width on a ground.

    Args:
        width: Cells.
        paint: Resolves the inks.
        ground: Role of the ground.
    """
    return Strip([Segment(" " * width, paint.style("blank", ground))], width)


def between_margins(strip: Strip, width: int, style: Style) -> Strip:
    """Return a strip with its margins in a style, ``width`` cells wide.

    Args:
        strip: The content.
        width: Cells, with the margins.
        style: What the margins are drawn with.
    """
    right = Strip.blank(max(0, width - MARGIN - strip.cell_length), style)
    return Strip.join([Strip.blank(MARGIN, style), strip, right])


def spans_of(text: str, needle: str) -> list[Span]:
    """Return which characters of a text are a needle.

    Args:
        text: One line; one whose length case folding changes has none.
        needle: Case-folded.
    """
    folded = text.casefold()
    if needle not in folded or len(folded) != len(text):
        return []
    spans = []
    at = folded.find(needle)
    while at >= 0:
        spans.append((at, at + len(needle)))
        at = folded.find(needle, at + len(needle))
    return spans


def marked(
    runs: Sequence[Run], spans: Sequence[Span], ink: str = "", current: Span | None = None
) -> tuple[Run, ...]:
    """Return the runs with hits on the hits' ground.

    Args:
        runs: One line.
        spans: Which characters are hits, in order.
        ink: What hits are drawn with; "" leaves them their own.
        current: The hit that the search is at.
    """
    pieces: list[Run] = []
    at, length = 0, sum([len(text) for text, _ink in runs])
    for start, end in spans:
        pieces += slice_runs(runs, at, start)
        for text, own in slice_runs(runs, max(at, start), end):
            hit = CURRENT_HIT if (start, end) == current else ink or f"{own} on:hit"
            pieces.append((text, hit))
        at = max(at, end)
    return (*pieces, *slice_runs(runs, at, length))
