"""Which panes are seen and how wide they are, for a width of the screen."""

from __future__ import annotations

from store.system.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    PaneName = Literal["sessions", "transcript", "inspector"]

PANES: tuple[PaneName, ...] = ("sessions", "transcript", "inspector")

THREE_PANES = 150
TWO_PANES = 100
BORDER = 1
"""Columns between two panes."""
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
        side: The pane beside the transcript where two fit: the one that had the focus last.
    """

    sessions_width: int | None = None
    inspector_width: int | None = None
    hidden: frozenset[PaneName] = frozenset()
    zoomed: bool = False
    focused: PaneName = "sessions"
    side: PaneName = "sessions"

    def with_focus(self, pane: PaneName) -> LayoutState:
        """Return the state with the focus in a pane, which is no longer hidden."""
        side = self.side if pane == "transcript" else pane
        return self._replace(focused=pane, hidden=self.hidden - {pane}, side=side)

    def width_of(self, pane: PaneName, screen: int) -> int:
        """Return the columns of a side pane on a screen of a width."""
        if pane == "sessions":
            wanted = self.sessions_width or (44 if screen >= THREE_PANES else 36)
        elif screen >= THREE_PANES:
            wanted = self.inspector_width or (48 if screen >= 170 else 42)
        else:
            wanted = self.inspector_width or max(42, 2 * screen // 5)
        return _limited(pane, wanted, screen)

    def resized(self, pane: PaneName, width: int, screen: int) -> LayoutState:
        """Return the state with a pane at a width, within its limits.

        Args:
            pane: The pane; the transcript takes what the others leave.
            width: Columns that are wanted.
            screen: Columns of the screen.
        """
        if pane == "transcript":
            return self
        width = _limited(pane, width, screen)
        if pane == "sessions":
            return self._replace(sessions_width=width)
        return self._replace(inspector_width=width)


def _limited(pane: PaneName, width: int, screen: int) -> int:
    most = screen - LEAST_WIDTH["transcript"] - BORDER
    return max(LEAST_WIDTH[pane], min(width, most))


class Arrangement(NamedTuple):
    """Which panes are seen.

    Attributes:
        widths: Columns of each pane that is seen; 0 takes what is left.
    """

    widths: dict[PaneName, int]

    def shows(self, pane: PaneName) -> bool:
        """Say whether a pane is seen."""
        return pane in self.widths

    @property
    def sides(self) -> list[PaneName]:
        """The panes beside the transcript."""
        return [pane for pane, width in self.widths.items() if width]


def arrange(state: LayoutState, screen: int) -> Arrangement:
    """Return which panes are seen on a screen, none of them narrower than its least width.

    Three panes from 150 columns; from 100 the transcript and one beside it; else the focused one.

    Args:
        state: What the user chose.
        screen: Columns of the screen.
    """
    focused = state.focused
    if state.zoomed or screen < TWO_PANES:
        return Arrangement({focused: 0})
    sides: list[PaneName] = [
        pane for pane in ("sessions", "inspector") if pane not in state.hidden or pane == focused]
    first = focused if focused in sides else state.side
    sides.sort(key=lambda pane: pane != first)
    widths: dict[PaneName, int] = {"transcript": 0}
    room = screen - LEAST_WIDTH["transcript"]
    if screen < THREE_PANES:
        sides = [pane for pane in sides if pane in (first, "sessions")][:1]
    for pane in sides:
        if room >= LEAST_WIDTH[pane] + BORDER:
            widths[pane] = min(state.width_of(pane, screen), room - BORDER)
            room -= widths[pane] + BORDER
    return Arrangement(widths)
