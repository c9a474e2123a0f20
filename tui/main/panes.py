"""The three panes of the main screen: which are seen, how wide they are, which has the focus."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.containers import Horizontal
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui.keys.declaration import Scope
from tui.kit.guard import lines_of
from tui.kit.paint import blank, paint_of, strip_of
from tui.main.outline import opening_line
from tui.sessions.pane import SessionsPane
from tui.state.layout import (
    BORDER,
    PANES,
    THREE_PANES,
    TWO_PANES,
    WIDTH_STEP,
    Arrangement,
    arrange,
)
from tui.state.view_state import ViewState

if TYPE_CHECKING:
    from tui.main.splitter import Splitter
    from tui.state.layout import PaneName

SCOPES: dict[PaneName, Scope] = {
    "sessions": "list", "transcript": "transcript", "inspector": "inspector",
}


class PaneRow(Horizontal):
    """Lays the panes out side by side."""

    BLANK = True  # Covered by the panes: Textual would draw each of its lines beneath them.


class PaneSlot(Widget):
    """Draws what is right of the list until transcript and inspector are loaded.

    The first two lines of the transcript are where its header will be: what is being opened. One
    widget for both panes and their borders, as each widget takes 1 % of the time to the screen.
    """

    DEFAULT_CSS = "PaneSlot { height: 1fr; width: 1fr; }"

    def __init__(
        self, title: Callable[[], str | None], arrangement: Callable[[], Arrangement]
    ) -> None:
        """Make the slot.

        Args:
            title: Returns the title of what is being opened, None where nothing is.
            arrangement: Returns which panes are to be seen.
        """
        super().__init__(id="slot")
        self._title, self._arrangement = title, arrangement

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines; most are equal, and drawn once."""
        return lines_of(self, crop, different=2)

    def render_line(self, y: int) -> Strip:
        """Draw a line of the panes and of the borders on their left."""
        paint, left, arrangement = paint_of(self.app), self.size.width, self._arrangement()
        border = blank(BORDER, paint, "background")
        inspector = arrangement.widths.get("inspector", 0)
        if not arrangement.shows("transcript"):
            return blank(left, paint, "panel")
        before = [border] if arrangement.shows("sessions") else []
        behind = [border, blank(inspector, paint, "panel")] if inspector else []
        width = left - sum(strip.cell_length for strip in (*before, *behind))
        line = strip_of(opening_line(self._title(), y), width, paint, ground="background")
        return Strip.join([*before, line, *behind])


class Panes:
    """Arranges the panes on a screen, and moves the focus between them.

    Attributes:
        widgets: The panes that are loaded, by name.
        slot: Is where the others will be.
    """

    def __init__(
        self, screen: Screen[None], state: ViewState, sessions: SessionsPane, *,
        arranged: Callable[[], None],
    ) -> None:
        """Take the panes.

        Args:
            screen: The screen that they are on.
            state: Its layout is read and kept up to date.
            sessions: The session list.
            arranged: Called when what is seen or the focus may have changed.
        """
        self._screen, self._state, self._sessions = screen, state, sessions
        self._arranged = arranged
        self.widgets: dict[PaneName, Widget] = {"sessions": sessions}
        self._splitters: tuple[Splitter, ...] = ()
        self.slot: PaneSlot | None = PaneSlot(
            sessions.selected_title, lambda: self.arrangement)

    async def load(self, *, transcript: Widget, inspector: Widget) -> None:
        """Put the panes in the place of the slot, which is seen until both are there."""
        from tui.main.splitter import Splitter  # The first screen has no borders to drag.

        slot = self.slot
        assert slot is not None
        left, right = self._splitters = Splitter("sessions"), Splitter("inspector")
        came: list[Widget] = [left, transcript, right, inspector]
        for widget in came:
            widget.display = False
        await self._screen.query_one(PaneRow).mount_all(came, after=slot)
        slot.display, self.slot = False, None
        self.widgets |= {"transcript": transcript, "inspector": inspector}
        focused = self._state.layout.focused
        if self.widgets[focused].has_focus_within:
            self.apply()  # What is typed meanwhile goes on in the line that has the focus.
        else:
            self.focus(focused)
        await slot.remove()

    @property
    def arrangement(self) -> Arrangement:
        """Which panes are seen now, and how wide they are."""
        return arrange(self._state.layout, self._screen.size.width)

    def apply(self) -> None:
        """Show, hide and size the panes for this width of the screen."""
        arrangement = self.arrangement
        for name, pane in self.widgets.items():
            pane.display = arrangement.shows(name)
            if pane.display:
                pane.styles.width = arrangement.widths[name] or "1fr"
        for splitter in self._splitters:
            splitter.display = self.slot is None and splitter.pane in arrangement.sides
        if self.slot is not None:
            self.slot.display = any(name not in self.widgets for name in arrangement.widths)
            self.slot.refresh()
        self._arranged()

    # Focus

    @property
    def focused(self) -> PaneName:
        """The pane that has the focus."""
        for name, pane in self.widgets.items():
            if pane.has_focus_within:
                return name
        return self._state.layout.focused

    @property
    def is_single(self) -> bool:
        """Whether the screen has room for one pane only."""
        return self._screen.size.width < TWO_PANES

    @property
    def scope(self) -> Scope:
        """The scope of the focused pane's commands."""
        return SCOPES[self.focused]

    def focus(self, name: PaneName) -> None:
        """Bring a pane into sight and give it the focus."""
        self._state.layout = self._state.layout.with_focus(name)
        self.apply()
        self._screen.set_focus(self._focus_target(self.widgets.get(name)))
        self._arranged()

    def _focus_target(self, pane: Widget | None) -> Widget | None:
        if pane is None:
            return None
        if pane is self._sessions:
            return self._sessions.view
        if pane.can_focus:
            return pane
        return next((w for w in pane.query("*") if w.can_focus), None)

    def focus_beside(self, step: int) -> None:
        """Focus the next pane (1) or the previous one (-1)."""
        focused, layout = self.focused, self._state.layout
        names = [
            name for name in PANES
            if name == focused or self._screen.size.width < THREE_PANES
            or name not in layout.hidden
        ]
        self.focus(names[(names.index(focused) + step) % len(names)])

    def follow_focus(self) -> None:
        """Take over a focus that the mouse moved."""
        name = self.focused
        if name != self._state.layout.focused:
            self._state.layout = self._state.layout.with_focus(name)
            self._screen.call_later(self.apply)
        self._arranged()

    # Size

    @property
    def zoomed(self) -> bool:
        """Whether the focused pane has the whole screen."""
        return self._state.layout.zoomed

    def toggle_zoom(self) -> None:
        """Give the focused pane the whole screen, or show the others again."""
        self._state.layout = self._state.layout._replace(zoomed=not self.zoomed)
        self.apply()

    def toggle_hidden(self) -> None:
        """Hide the focused side pane; from the transcript, show or hide the side panes."""
        layout, focused = self._state.layout, self.focused
        if focused != "transcript":
            self._state.layout = layout._replace(hidden=layout.hidden | {focused}, zoomed=False)
            self.focus("transcript")
            return
        hidden: set[PaneName] = set()
        if not layout.hidden:
            sides = self.arrangement.sides
            hidden.update(("inspector",) if "inspector" in sides else sides)
        self._state.layout = layout._replace(hidden=frozenset(hidden))
        self.apply()

    def leave_inspector(self) -> None:
        """Go from the inspector to the transcript, and have the list back where two panes fit."""
        self._state.layout = self._state.layout._replace(side="sessions")
        self.focus("transcript")

    @property
    def why_not_wider(self) -> str | None:
        """Why no pane can be made wider or narrower now, None where one can."""
        return None if self.arrangement.sides else "There is no pane beside this one"

    @property
    def why_not_hidden(self) -> str | None:
        """Why no pane can be hidden or shown now, None where one can."""
        if self.focused != "transcript" or self._state.layout.hidden:
            return None
        return self.why_not_wider

    def widen(self, steps: int) -> None:
        """Make the focused pane wider, or narrower where the steps are negative."""
        arrangement, focused = self.arrangement, self.focused
        if not arrangement.sides:
            return
        pane = arrangement.sides[0] if focused == "transcript" else focused
        by = steps * (-WIDTH_STEP if focused == "transcript" else WIDTH_STEP)
        self._resize(pane, arrangement.widths[pane] + by)

    def drag(self, pane: PaneName, column: int) -> None:
        """Move the border of a side pane to a column of the screen."""
        self._resize(pane, column if pane == "sessions" else self._screen.size.width - column - 1)

    def _resize(self, pane: PaneName, width: int) -> None:
        screen = self._screen.size.width
        self._state.layout = self._state.layout.resized(pane, width, screen)
        self.apply()
