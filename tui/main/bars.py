"""The lines above the panes: name and counts of the store, and a headline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.figures import count_of
from tui.kit.glyphs import glyphs
from tui.kit.text import cells, fit, wrap
from tui.kit.theme import palette_of
from tui.live.summary import Summary
from tui.sessions.painter import style

if TYPE_CHECKING:
    from tui.kit.palette import Palette


WITHIN = "(24 h)"
"""Of which time waiting sessions are counted, where there is room to say it; what runs is
known of all."""


def join(left: list[Segment], right: list[Segment], width: int, ground: Style) -> Strip:
    """Set segments at both edges of a line; the left ones are cut where room ends."""
    room = width - _width(right)
    segments, used = [], 0
    for segment in left:
        text = fit(segment.text, max(0, room - used - (1 if right else 0)))
        segments.append(Segment(text, segment.style))
        used += cells(text)
        if len(text) < len(segment.text):
            break
    gap = Segment(" " * max(0, room - used), ground)
    return Strip([*segments, gap, *right]).crop(0, width)


def _width(pieces: list[Segment]) -> int:
    return sum(cells(piece.text) for piece in pieces)


class TopLine(Widget):
    """Name, store and counts; at the right what runs, what waits, how fresh it is."""

    DEFAULT_CSS = "TopLine { height: 1; background: $panel; }"
    summary: reactive[Summary] = reactive(Summary())

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        palette = palette_of(self.app)
        ground = palette.raised
        left = [
            Segment(" backscroll", style(palette.text, ground, bold=True)),
            Segment(f"  {self.summary.store}", style(palette.text, ground)),
        ]
        if self.summary.read_only:
            left.append(Segment("  read only", style(palette.tool, ground)))
        counts = [Segment(f"  {words}", style(palette.muted, ground)) for words in self._counts()]
        right = self._right(palette)
        if _width([*left, *counts[:1], *right]) >= self.size.width:
            right = self._right(palette, short=True)
        while len(right) > 1 and _width(right) > self.size.width:
            right.pop()
        for piece in counts:
            # What comes later tells less, and would be taken for what is missing before it.
            if _width([*left, piece, *right]) >= self.size.width:
                break
            left.append(piece)
        return join(left, right, self.size.width, style(palette.text, ground))

    def _counts(self) -> list[str]:
        summary, counts = self.summary, []
        if summary.sessions is not None:
            counts.append(count_of(summary.sessions, "session"))
        if summary.archived:
            counts.append(f"{summary.archived:,} archived")
        if summary.sources:
            counts.append(count_of(summary.sources, "source"))
        return counts

    def _right(self, palette: Palette, *, short: bool = False) -> list[Segment]:
        summary, ground = self.summary, palette.raised
        right = []
        if summary.running:
            words = f"{glyphs().running} {summary.running} running  "
            right.append(Segment(words, style(palette.ok, ground)))
        if summary.waiting:
            within = "" if short else f" {WITHIN}"
            words = f"{glyphs().waiting} {summary.waiting} waiting{within}  "
            right.append(Segment(words, style(palette.tool, ground)))
        if summary.trouble:
            words = f"{glyphs().failed} {summary.trouble} "
            right.append(Segment(words, style(palette.error, ground, bold=True)))
        else:
            right.append(Segment(f"{summary.freshness} ", style(palette.muted, ground)))
        return right


class Headline(Widget):
    """A few words above the panes about what is shown, on as many lines as they need.

    Escape takes them away when there is nothing else to go back from; a click does too.
    """

    DEFAULT_CSS = "Headline { height: auto; }"

    def __init__(self, words: str) -> None:
        """Take the words."""
        super().__init__()
        self._words = f"{words} (esc closes this)"

    def on_click(self) -> None:
        """Go away."""
        self.remove()

    def _lines(self, width: int) -> list[str]:
        spans = wrap(self._words, max(1, width - 2))
        return [self._words[start:end].strip() for start, end in spans]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the words need."""
        return len(self._lines(width))

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        palette, lines = palette_of(self.app), self._lines(self.size.width)
        look = style(palette.tool, palette.background)
        words = lines[y] if y < len(lines) else ""
        return join([Segment(f" {words}", look)], [], self.size.width, look)
