"""The selected part: announced once to the app, and again at a steady pace while it grows."""

from __future__ import annotations

from textual.timer import Timer

from store.rows import PartRow
from tui.messages import NothingSelected, PartSelected
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.skeleton import EMPTY_INDEX, UNSETTLED

INSPECTED_EVERY_S = 0.25
"""Pace at which the inspector sees the selected part grow."""


class SelectedPart:
    """Selects parts, and posts ``PartSelected`` for what is shown elsewhere."""

    def __init__(self, shown: ShownSession, pane: PaneServices) -> None:
        """Start without an announced part."""
        self._shown, self._pane = shown, pane
        self._announced: PartSelected | None = None
        self._due: Timer | None = None
        self._stale = False

    def reset(self) -> None:
        """Announce the next part in any case: it belongs to another session."""
        self._announced = None

    def select(self, part: int, *, force: bool = False) -> None:
        """Select a part and announce it.

        Args:
            part: The part.
            force: Announce it even where it was announced last.
        """
        shown = self._shown
        shown.view.cursor = part
        self._pane.update_headings()
        row = shown.document.row(part) if len(shown.document) else None
        if row is None:
            if self._is_on_nothing(part) and (force or self._announced is not None):
                self._announced = None
                self._pane.post_message(NothingSelected())
            return
        selected = PartSelected(row.session_id, row.message_id, row.id, runs=self.runs(part))
        if force or not self._same(selected):
            self._announced = selected
            shown.view.changed()
            self._pane.post_message(selected)

    def _is_on_nothing(self, part: int) -> bool:
        """Return whether the session or the selected message has no parts, loaded or not."""
        document = self._shown.document
        return not len(document) or document.skeleton.key(part)[1] == EMPTY_INDEX

    def _same(self, selected: PartSelected) -> bool:
        known = self._announced
        return known is not None and (known.message_id, known.part_id, known.runs) == (
            selected.message_id, selected.part_id, selected.runs)

    def again(self) -> None:
        """Announce the selected part again."""
        self.select(self._shown.cursor, force=True)

    def runs(self, part: int) -> bool:
        """Return whether a part is a call that runs."""
        document = self._shown.document
        item = document.item(part)
        if item is None or item.row is None or document.skeleton.states[part] != UNSETTLED:
            return False
        return document.setting.runs(item.row.updated_at, newest=item.around.newest)

    def stop_running(self) -> None:
        """Announce the selected part once more when its call no longer runs."""
        known, cursor = self._announced, self._shown.cursor
        if known is not None and known.runs and not self.runs(cursor):
            self.select(cursor)

    def changed(self, before: PartRow | None) -> None:
        """Announce the selected part where it changed, not more often than the pace allows.

        Args:
            before: Its row before the change.
        """
        self._pane.update_headings()
        document, cursor = self._shown.document, self._shown.cursor
        row = document.row(cursor) if len(document) else None
        if row is None or row == before:
            return
        if self._due is not None:
            self._stale = True
        else:
            self._announce_change()

    def _announce_change(self) -> None:
        self._stale = False
        self.again()
        self._due = self._pane.set_timer(INSPECTED_EVERY_S, self.announce_now)

    def announce_now(self) -> None:
        """Announce the newest state of the selected part, where it changed since."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        if self._stale and len(self._shown.document):
            self._announce_change()
