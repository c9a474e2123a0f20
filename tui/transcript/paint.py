"""Inks to colours: the one place of the transcript where a palette becomes a style."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style

from tui.kit.glyphs import glyphs
from tui.kit.palette import Palette

RAISED_GROUNDS = frozenset({"raised", "focus", "hit", "added", "removed"})
_FAINTER = {"text": "muted", "muted": "faint"}


class Paint:
    """Resolves inks against one palette; each style is made once."""

    def __init__(self, palette: Palette) -> None:
        """Take the palette that everything is drawn with."""
        self.palette = palette
        self._gutters: dict[tuple[str, str, bool, bool], tuple[Segment, ...]] = {}
        self._styles: dict[tuple[str, str, bool], Style] = {}

    def style(self, ink: str, ground: str = "background", dimmed: bool = False) -> Style:
        """Return the style of an ink.

        Args:
            ink: A role of the palette, then flags; see ``tui.transcript.lines``.
            ground: Role of the background.
            dimmed: Whether it is drawn a weight fainter.
        """
        key = (ink, ground, dimmed)
        style = self._styles.get(key)
        if style is None:
            style = self._styles[key] = self._resolve(ink, ground, dimmed)
        return style

    def gutter(
        self, bar: str, ground: str, dimmed: bool, marked: bool
    ) -> tuple[Segment, ...]:
        """Return what stands left of the content: the focus mark, the bar, a blank."""
        key = (bar, ground, dimmed, marked)
        known = self._gutters.get(key)
        if known is None:
            marks = glyphs()
            blank = Segment(" ", self.style("text", ground))
            known = self._gutters[key] = (
                Segment(marks.thick_bar, self.style("user", ground)) if marked else blank,
                blank if bar == "none" else Segment(marks.bar, self.style(bar, ground, dimmed)),
                blank,
            )
        return known

    def _resolve(self, ink: str, ground: str, dimmed: bool) -> Style:
        role, _, flags = ink.partition(" ")
        if dimmed:
            role = _FAINTER.get(role, role)
        if role == "faint" and ground in RAISED_GROUNDS:
            role = "muted"
        colour, behind = getattr(self.palette, role), getattr(self.palette, ground)
        if "r" in flags:
            colour, behind = behind, colour
        return Style(
            color=colour, bgcolor=behind,
            bold="b" in flags or None, italic="i" in flags or None,
            underline="u" in flags or None, strike="s" in flags or None,
        )
