"""Which session the transcript shows, and how another one is opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.timer import Timer
from textual.worker import Worker, WorkerError

from store.engine.transactions import is_of_a_server
from store.errors import NotFound
from tui.messages import ProblemOccurred
from tui.state.library import Library
from tui.state.view_state import ViewState

if TYPE_CHECKING:
    from tui.host import WayBack
    from tui.transcript.pane import TranscriptPane
    from tui.transcript.shown_hit import ShownHit

PREVIEW_AFTER_S = 0.12
"""The list's cursor rests this long before its session is opened beside the list."""


class SessionOpener:
    """Opens sessions in the transcript, and remembers the place in each.

    Attributes:
        transcript: The pane; None until it is loaded.
        shown: The id of the session that is shown, or being opened.
        way_back: Where escape leads from it; None for the list.
        opening: What opens it, or has opened it.
    """

    def __init__(self, screen: Screen[None], library: Library, state: ViewState) -> None:
        """Make an opener with nothing shown.

        Args:
            screen: Runs timers and workers.
            library: The store.
            state: Keeps the places.
        """
        self._screen, self._library, self._state = screen, library, state
        self._preview: Timer | None = None
        self._next: str | None = None
        self._missed: Callable[[], None] | None = None
        """Opens the session that its server could not be asked for; None where there is none."""
        self.transcript: TranscriptPane | None = None
        self.shown: str | None = None
        self.way_back: WayBack | None = None
        self.opening: Worker[None] | None = None

    def preview(self, session_id: str, *, seen: bool = True) -> None:
        """Open a session once the list's cursor rests on it.

        Args:
            session_id: The session.
            seen: Whether the transcript is seen; else it is opened by ``open_preview`` alone.
        """
        self.stop_preview()
        self._next = session_id
        if seen:
            self._preview = self._screen.set_timer(PREVIEW_AFTER_S, self.open_preview)

    def open_preview(self) -> None:
        """Open the session that the list's cursor rests on, where that is still to be done."""
        if self._next is not None:
            self.open(self._next)

    def came_into_sight(self) -> None:
        """Open the session that the list's cursor came to while the transcript was not seen."""
        if self._preview is None:
            self.open_preview()

    def stop_preview(self) -> None:
        """Open nothing that the list's cursor passed before."""
        self._next = None
        if self._preview is not None:
            self._preview.stop()
            self._preview = None

    def open(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None, *,
        back: WayBack | None = None, hit: ShownHit | None = None,
    ) -> None:
        """Show a session; one that is shown already stays as it is.

        Args:
            session_id: The session.
            message_id: Where to place it; None for the remembered place or the end.
            part_id: The part of that message to unfold and select.
            back: Where escape leads from it; None for the list.
            hit: The hit of a search that it is opened at.
        """
        self.stop_preview()
        self._missed = None
        same = session_id == self.shown and message_id is None and back is None
        if self.transcript is None or same:
            return
        if hit is None or session_id != self.shown:
            self.keep_place()
        self.shown, self.way_back = session_id, back
        self.opening = self._screen.run_worker(
            # A coroutine is made only when it runs: another may take its place.
            partial(
                self._open, self.transcript, session_id, message_id, part_id, hit),
            group="open", exclusive=True, exit_on_error=False,
        )

    def open_missed(self) -> None:
        """Open the session that was asked for last, where the server did not answer then."""
        if self._missed is not None and self._next is None:
            self._missed()

    def has_opened(self, session_id: str) -> bool:
        """Return whether a session is shown, not only being opened."""
        done = self.opening is not None and self.opening.is_finished
        return done and self.shown == session_id

    async def opened(self) -> None:
        """Wait until the session is shown, or could not be."""
        if self.opening is not None:
            with suppress(WorkerError):
                await self.opening.wait()

    async def _open(
        self, transcript: TranscriptPane, session_id: str, message_id: str | None,
        part_id: str | None, hit: ShownHit | None,
    ) -> None:
        try:
            if hit is not None and transcript.shows(session_id):
                await transcript.show_hit(hit)
                return
            from store.queries.sessions import get

            store = await self._library.ready()
            row = await store.read(get, session_id)
            if row is None:
                raise NotFound(f"session {session_id} is no longer in the store")
            place = self._state.places.get(session_id)
            await transcript.open_session(
                store, row, message_id=message_id, part_id=part_id, place=place,
                back=self.way_back.title if self.way_back is not None else "")
            if hit is not None:
                await transcript.show_hit(hit)
        except Exception as error:
            if self.shown == session_id:
                self.shown = None
                if is_of_a_server(error):
                    self._missed = partial(
                        self.open, session_id, message_id, part_id, back=self.way_back, hit=hit)
            self._screen.post_message(
                ProblemOccurred("The session could not be opened", error))

    def keep_place(self) -> None:
        """Remember the place in the session that is shown."""
        if self.shown is None or self.transcript is None:
            return
        session, place = self.transcript.session, self.transcript.place()
        # The one before may still be on the screen while this one is opened.
        if place is not None and session is not None and session.id == self.shown:
            self._state.keep_place(self.shown, place)
