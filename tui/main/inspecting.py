"""Shows the transcript's selected part in the inspector, once the selection rests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.timer import Timer

from tui.messages import PartSelected, ProblemOccurred
from tui.state.library import Library

if TYPE_CHECKING:
    from tui.inspector.pane import InspectorPane

INSPECT_AFTER_S = 0.12
"""A selection that moves faster than this is inspected only when it rests."""


class InspectorFeed:
    """Hands the selected part to the inspector while that is seen.

    Attributes:
        inspector: The pane; None until it is loaded.
    """

    def __init__(self, screen: Screen[None], library: Library) -> None:
        """Make a feed with no part selected.

        Args:
            screen: Runs the timer.
            library: The store.
        """
        self._screen, self._library = screen, library
        self.inspector: InspectorPane | None = None
        self._wanted: PartSelected | None = None
        self._due: Timer | None = None
        self._shown: str | None = None
        self._selected_at = 0.0

    async def select(self, part: PartSelected) -> None:
        """Take the selected part; it is shown at once, or when the selection rests."""
        before, self._selected_at = self._selected_at, time.monotonic()
        self._wanted = part
        self._stop()
        rests = self._selected_at - before >= INSPECT_AFTER_S
        if rests or part.part_id == self._shown:
            await self.show()
        else:
            self._due = self._screen.set_timer(INSPECT_AFTER_S, self.show)

    def clear(self) -> None:
        """Show that no part is selected."""
        self._wanted = self._shown = None
        self._stop()
        if self.inspector is not None:
            self.inspector.show_nothing()

    def _stop(self) -> None:
        if self._due is not None:
            self._due.stop()
            self._due = None

    def came_into_sight(self) -> None:
        """Show what was selected while the inspector was hidden."""
        if self._wanted is not None and self._due is None:
            self._screen.call_later(self.show)

    async def show(self) -> None:
        """Show the selected part now; later, where the inspector is not seen."""
        self._stop()
        wanted, inspector = self._wanted, self.inspector
        if wanted is None or inspector is None or not inspector.display:
            return
        self._wanted, self._shown = None, wanted.part_id
        try:
            store = await self._library.ready()
            await inspector.show_part(
                store, wanted.session_id, wanted.part_id, runs=wanted.runs
            )
        except Exception as error:
            self._screen.post_message(ProblemOccurred("The part could not be shown", error))
