"""What shows that a session runs or waits: spinners, the line for the user, the inspector."""

from __future__ import annotations

from textual.timer import Timer

from store.rows import PartRow
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line
from tui.kit.text import one_line
from tui.transcript.calls import describe
from tui.transcript.opening import OpeningPane
from tui.transcript.skeleton import UNSETTLED, WAITING

TICK_S = 0.2
"""Pace of a running call's spinner; nothing ticks while none is on the screen."""
INSPECTED_EVERY_S = 0.25
"""Pace at which the inspector sees the selected part grow."""
LOOKED_BACK = 200
"""Parts at the end among which the call that waits is looked for."""


class RunningPane(OpeningPane):
    """The transcript with what moves by itself."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start with nothing that runs."""
        super().__init__(id=id)
        self._ticking: Timer | None = None
        self._inspected_due: Timer | None = None
        self._inspected_stale = False

    def show_around(self) -> None:
        """Bring header, status and the line of what waits up to date."""
        super().show_around()
        self._show_waiting()
        if self._ticking is None and self.running_parts():
            self._ticking = self.set_interval(TICK_S, self.tick)

    # Running calls

    def running_parts(self) -> list[int]:
        """Return the calls on the screen that run."""
        if self.reader is None:
            return []
        document, now = self.document, self.reader.store.clock()
        states, document.setting.now = document.skeleton.states, now
        found = []
        for part in self.view.shown_parts():
            row = document.row(part) if states[part] == UNSETTLED else None
            if row is not None and document.setting.runs(
                row.updated_at, newest=document.around(part).newest
            ):
                found.append(part)
        return found

    def tick(self) -> None:
        """Move the spinners on; the last one that ends stops the clock."""
        running = self.running_parts()
        if not running and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None
        self.lay_out_unsettled()
        if self._told is not None and self._told[2] and not self.runs(self.cursor):
            self.select(self.cursor)

    def lay_out_unsettled(self) -> None:
        """Lay out again the calls on the screen that have no result yet."""
        document, reader = self.document, self.reader
        if reader is None:
            return
        document.setting.now = reader.store.clock()
        states = document.skeleton.states
        unsettled = [part for part in self.view.shown_parts() if states[part] == UNSETTLED]
        for part in unsettled:
            document.forget(part)
        if unsettled:
            self.view.changed()

    # What waits for the user

    def _show_waiting(self) -> None:
        words = self._waiting_words()
        self.waiting.display = bool(words)
        if words:
            self.waiting.show([Line([(f" {glyphs().waiting} {words} ", "tool bold reverse")])])

    def _waiting_words(self) -> str:
        state = self.activity.state if self.activity is not None else ""
        if state not in ("waiting-approval", "waiting-input"):
            return ""
        what = "your approval" if state == "waiting-approval" else "your answer"
        return f"waits for {what}{self._waiting_call(state)}"

    def _waiting_call(self, state: str) -> str:
        document = self.document
        wanted = WAITING if state == "waiting-approval" else UNSETTLED
        count = len(document)
        for part in range(count - 1, max(-1, count - 1 - LOOKED_BACK), -1):
            item = document.item(part) if document.skeleton.states[part] == wanted else None
            if item is not None:
                call = describe(item.data)
                return f": {one_line(call.name)} {one_line(call.what)}"
        return ""

    # The inspector

    def told_of_change(self, before: PartRow | None) -> None:
        """Show what changed around; the inspector sees a part that grows at its own pace.

        Args:
            before: The row of the selected part before the change.
        """
        self.show_around()
        row = self.document.row(self.cursor) if len(self.document) else None
        if row is None or row == before:
            return
        if self._inspected_due is not None:
            self._inspected_stale = True
            return
        self._inspected_stale = False
        self.select(self.cursor, force=True)
        self._inspected_due = self.set_timer(INSPECTED_EVERY_S, self.inspect_now)

    def inspect_now(self) -> None:
        """Let the inspector see the newest state of the selected part."""
        if self._inspected_due is not None:
            self._inspected_due.stop()
            self._inspected_due = None
        if self._inspected_stale and len(self.document):
            self._inspected_stale = False
            self.select(self.cursor, force=True)
            self._inspected_due = self.set_timer(INSPECTED_EVERY_S, self.inspect_now)
