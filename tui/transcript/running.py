"""Calls that run: their spinners turn while one is on the screen."""

from __future__ import annotations

from textual.timer import Timer

from tui.transcript.selected import SelectedPart
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.skeleton import UNSETTLED

TICK_S = 0.2
"""Pace of a running call's spinner; nothing ticks while none is on the screen."""


class RunningCalls:
    """Lays out the calls on the screen again that have no result yet."""

    def __init__(self, shown: ShownSession, pane: PaneServices, selected: SelectedPart) -> None:
        """Start with nothing that runs.

        Args:
            shown: The session.
            pane: Runs the clock.
            selected: Announces the selected part when its call ends.
        """
        self._shown, self._pane, self._selected = shown, pane, selected
        self._clock: Timer | None = None

    @property
    def is_ticking(self) -> bool:
        """Whether a call that runs was on the screen at the last tick."""
        return self._clock is not None

    def parts(self) -> list[int]:
        """Return the calls on the screen that run."""
        shown = self._shown
        if shown.reader is None:
            return []
        document, now = shown.document, shown.reader.store.clock()
        states, document.setting.now = document.skeleton.states, now
        found = []
        for part in shown.view.shown_parts():
            row = document.row(part) if states[part] == UNSETTLED else None
            if row is not None and document.setting.runs(
                row.updated_at, newest=document.around(part).newest
            ):
                found.append(part)
        return found

    def start(self) -> None:
        """Let the spinners turn where a call runs."""
        if self._clock is None and self.parts():
            self._clock = self._pane.set_interval(TICK_S, self.tick)

    def tick(self) -> None:
        """Turn the spinners; stop the clock after the last call has ended."""
        if not self.parts() and self._clock is not None:
            self._clock.stop()
            self._clock = None
        self.lay_out()
        self._selected.stop_running()

    def lay_out(self) -> None:
        """Lay out again the calls on the screen that have no result yet."""
        shown = self._shown
        if shown.reader is None:
            return
        document = shown.document
        document.setting.now = shown.reader.store.clock()
        states = document.skeleton.states
        unsettled = [part for part in shown.view.shown_parts() if states[part] == UNSETTLED]
        for part in unsettled:
            document.forget(part)
        if unsettled:
            shown.view.changed()
