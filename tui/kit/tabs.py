"""The inspector's head: what the part is, and the tabs."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.lines import BLANK, Line, Run, cut, width_of
from tui.kit.paint import MARGIN, follow_theme, paint_of, row_of


class Tabs(Widget, can_focus=False):
    """Two lines: a name with its kind and the tabs at the right; then a summary."""

    DEFAULT_CSS = "Tabs { height: 3; }"

    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        tab: str

    def __init__(self, tabs: tuple[str, ...], *, ground: str = "panel") -> None:
        """Make a head.

        Args:
            tabs: Their names, the first is current.
            ground: Role of the background.
        """
        super().__init__()
        self._tabs, self._ground = tabs, ground
        self.current = tabs[0]
        self._title: Run = ("", "text bold")
        self._kind = ""
        self._summary: tuple[Run, ...] = ()

    def show(self, name: Run, kind: str, summary: tuple[Run, ...]) -> None:
        """Show what the tabs are of.

        Args:
            name: At the left, with its ink.
            kind: Faint, after the name.
            summary: The second line.
        """
        self._title, self._kind, self._summary = name, kind, summary
        self.refresh()

    def choose(self, tab: str) -> None:
        """Mark a tab as the current one."""
        self.current = tab
        self.refresh()

    def on_mount(self) -> None:
        """Repaint with the colours of a new theme."""
        follow_theme(self, Tabs.refresh)

    def _tab_runs(self) -> tuple[Run, ...]:
        runs: list[Run] = []
        for tab in self._tabs:
            runs.append((" " if runs else "", "text"))
            runs.append((tab, "text bold underline" if tab == self.current else "faint"))
        return tuple(runs)

    def render_line(self, y: int) -> Strip:
        """Paint one of the three lines; the last one is empty."""
        width = max(8, self.size.width - 2 * MARGIN)
        line = BLANK
        if y == 0:
            right = self._tab_runs()
            room = width - width_of(right) - 2
            line = Line(cut((self._title, (f"  {self._kind}", "faint")), max(0, room)), right)
        elif y == 1:
            line = Line(self._summary)
        return row_of(line, width + 2 * MARGIN, paint_of(self.app), ground=self._ground)

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the mouse."""
        if event.y != 0:
            return
        end = self.size.width - MARGIN
        for tab in reversed(self._tabs):
            start = end - len(tab)
            if start <= event.x < end:
                self.post_message(self.Chosen(tab))
                return
            end = start - 1
