"""Which panes are seen and how wide they are, for a width of the screen."""

from __future__ import annotations

from typing import Literal, NamedTuple

PaneName = Literal["sessions", "transcript", "inspector"]
PANES: tuple[PaneName, ...] = ("sessions", "transcript", "inspector")

THREE_PANES = 150
TWO_PANES = 100
LEAST_TRANSCRIPT = 40
WIDTH_STEP = 4
LEAST_WIDTH: dict[PaneName, int] = {"sessions": 24, "transcript": 40, "inspector": 28}


class LayoutState(NamedTuple):
    """What the user chose; remembered.

    Attributes:
        sessions_width: Columns; None lets the width of the screen decide.
        inspector_width: Columns, likewise.
        hidden: Panes that are put away where several fit.
        zoomed: Whether the focused pane has the whole screen.
        focused: The pane with the focus.
    """

    sessions_width: int | None = None
    inspector_width: int | None = None
    hidden: frozenset[PaneName] = frozenset()
    zoomed: bool = False
    focused: PaneName = "sessions"

    def width_of(self, pane: PaneName, screen: int) -> int:
        """Return the columns of a side pane on a screen of a width."""
        if pane == "sessions":
            wanted = self.sessions_width or (44 if screen >= THREE_PANES else 36)
        else:
            wanted = self.inspector_width or (48 if screen >= 170 else 42)
        most = max(LEAST_WIDTH[pane], screen - LEAST_TRANSCRIPT)
        return max(LEAST_WIDTH[pane], min(wanted, most))

    def resized(self, pane: PaneName, width: int, screen: int) -> LayoutState:
        """Return the state with a pane at a width, within its limits.

        Args:
            pane: The pane; the transcript takes what the others leave.
            width: Columns that are wanted.
            screen: Columns of the screen.
        """
        if pane == "transcript":
            return self
        most = max(LEAST_WIDTH[pane], screen - LEAST_TRANSCRIPT)
        width = max(LEAST_WIDTH[pane], min(width, most))
        if pane == "sessions":
            return self._replace(sessions_width=width)
        return self._replace(inspector_width=width)


class Arrangement(NamedTuple):
    """Which panes are seen, and how.

    Attributes:
        widths: Columns of each pane that is seen; 0 takes what is left.
        overlay: Whether the inspector lies above the transcript.
    """

    widths: dict[PaneName, int]
    overlay: bool = False

    def shows(self, pane: PaneName) -> bool:
        """Say whether a pane is seen."""
        return pane in self.widths


def arrange(state: LayoutState, screen: int) -> Arrangement:
    """Return which panes are seen on a screen.

    Args:
        state: What the user chose.
        screen: Columns of the screen.
    """
    focused = state.focused
    if state.zoomed or screen < TWO_PANES:
        return Arrangement({focused: 0})
    widths: dict[PaneName, int] = {"transcript": 0}
    if "sessions" not in state.hidden or focused == "sessions":
        widths["sessions"] = state.width_of("sessions", screen)
    if screen < THREE_PANES:
        if focused != "inspector":
            return Arrangement(widths)
        widths["inspector"] = min(max(48, screen // 2), screen - 4)
        return Arrangement(widths, overlay=True)
    if "inspector" not in state.hidden or focused == "inspector":
        widths["inspector"] = state.width_of("inspector", screen)
    if screen - sum(widths.values()) < LEAST_TRANSCRIPT:
        widths.pop("inspector" if focused != "inspector" else "sessions", None)
    return Arrangement(widths)
