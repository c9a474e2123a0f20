"""The main screen: three panes over a store, and the lines above and below them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from importlib import import_module
from typing import Any

from textual import on
from textual.timer import Timer

from tui.keys.declaration import Scope
from tui.keys.footer import BottomLine
from tui.keys.registry import BY_ID, bindings
from tui.main.bars import Headline
from tui.main.layout import PANES, WIDTH_STEP, PaneName
from tui.main.live import LiveScreen
from tui.main.panes import SCOPES
from tui.messages import (
    InspectRequested,
    NothingSelected,
    PartSelected,
    ProblemOccurred,
    SessionHighlighted,
    SessionOpened,
)
from tui.start.state import ViewState
from tui.verbs.everywhere import ContinueVerb, UndoVerbs

PREVIEW_AFTER_S = 0.12
"""The selection rests this long before its session is opened beside the list."""
INSPECT_AFTER_S = 0.12
"""A selection that moves faster than this is inspected only when it rests."""


class MainScreen(UndoVerbs, ContinueVerb, LiveScreen):
    """Hands the store and the selection down to the panes, and their messages on."""

    SCOPE = "app"
    BINDINGS = bindings("app")

    _part_wanted: PartSelected | None = None
    _part_due: Timer | None = None
    _part_shown: str | None = None
    _part_at = 0.0

    def on_mount(self) -> None:
        """Arrange the panes and give one the focus."""
        self.apply_layout()
        self.focus_pane("sessions")
        self._show_summary()
        if self.library.notice:
            self.app.notify(self.library.notice, timeout=12, markup=False)
        self.call_after_refresh(self.start_following)

    async def load_panes(self) -> None:
        """Load the panes that the first paint did without, and put them in their places."""
        transcript = await asyncio.to_thread(import_module, "tui.transcript.transcript_pane")
        inspector = await asyncio.to_thread(import_module, "tui.inspector.pane")
        places = self.query_one("#panes")
        self.transcript = transcript.TranscriptPane(id="transcript")
        self.inspector = inspector.InspectorPane(id="inspector")
        for slot, pane in zip(self._slots, (self.transcript, self.inspector), strict=True):
            pane.display, slot.display = slot.display, False
            pane.styles.width = slot.styles.width
            await places.mount(pane, after=slot)
            await slot.remove()
        self.apply_layout()
        self.focus_pane(self.state.layout.focused)
        if self.sessions.selected_id and self.arrangement.shows("transcript"):
            self.open_session(self.sessions.selected_id)

    async def settle_selection(self) -> None:
        """Wait until the list's selection is where earlier keys moved it."""
        await self.sessions.catch_up()

    def session_meant(self) -> str | None:
        """Return the session that a verb everywhere acts on."""
        listed = self.focused_pane == "sessions"
        return self.sessions.selected_id if listed else self.shown_session

    # What the panes report

    @on(SessionHighlighted)
    def _highlighted(self, event: SessionHighlighted) -> None:
        if self._preview is not None:
            self._preview.stop()
        session_id = event.session_id
        # What another program archives or deletes must not take away what is being read.
        chosen = self.focused_pane == "sessions" or self.shown_session is None
        if session_id is not None and chosen and self.arrangement.shows("transcript"):
            self._preview = self.set_timer(
                PREVIEW_AFTER_S, lambda: self.open_session(session_id)
            )

    @on(SessionOpened)
    def _opened(self, event: SessionOpened) -> None:
        self.go_into(event.session_id, event.message_id)

    def go_into(self, session_id: str, message_id: str | None = None) -> None:
        """Show a session and give the transcript the focus."""
        self.focus_pane("transcript")
        self.open_session(session_id, message_id)

    def open_session(self, session_id: str, message_id: str | None = None) -> None:
        """Show a session in the transcript; one that is shown already stays as it is."""
        if self._preview is not None:
            # What the cursor passed before must not take the place of what was asked for.
            self._preview.stop()
        if self.transcript is None or (session_id == self.shown_session and message_id is None):
            return
        self._keep_place()
        self.shown_session = session_id
        opening: Any = partial(self._open, session_id, message_id)  # Another may take its place.
        self.run_worker(opening, group="open", exclusive=True, exit_on_error=False)

    async def _open(self, session_id: str, message_id: str | None) -> None:
        try:
            from store.queries.sessions import get

            store = await self.library.ready()
            row = await store.read(get, session_id)
            if row is None:
                raise LookupError(f"session {session_id} is no longer in the store")
            place = self.state.places.get(session_id)
            transcript: Any = self.transcript
            opened = transcript.open_session(
                store, row, message_id=message_id, place=place
            )
            if opened is not None:
                await opened
        except Exception as error:
            if self.shown_session == session_id:
                self.shown_session = None
            self.post_message(ProblemOccurred("The session could not be opened", error))

    def _keep_place(self) -> None:
        place_of = getattr(self.transcript, "place", None)
        if self.shown_session is None or place_of is None:
            return
        place = place_of() if callable(place_of) else place_of
        if place is not None:
            self.state.keep_place(self.shown_session, place)

    def remember(self) -> ViewState:
        """Return what is to be remembered now."""
        self._keep_place()
        return self.state

    @on(PartSelected)
    async def _part_selected(self, event: PartSelected) -> None:
        same = event.part_id == self._part_shown
        before, self._part_at = self._part_at, time.monotonic()
        self._part_wanted = event
        if self._part_due is not None:
            self._part_due.stop()
            self._part_due = None
        if same or self._part_at - before >= INSPECT_AFTER_S:
            await self._show_part()
        else:
            self._part_due = self.set_timer(INSPECT_AFTER_S, self._show_part)

    @on(NothingSelected)
    def _nothing_selected(self) -> None:
        self._part_wanted = self._part_shown = None
        if self._part_due is not None:
            self._part_due.stop()
            self._part_due = None
        if self.inspector is not None:
            self.inspector.show_nothing("There is no part to show")

    async def _show_part(self) -> None:
        """Show the selected part in the inspector; later, where that is not seen."""
        wanted, inspector, self._part_due = self._part_wanted, self.inspector, None
        if wanted is None or inspector is None or not inspector.display:
            return
        self._part_wanted, self._part_shown = None, wanted.part_id
        try:
            store = await self.library.ready()
            await inspector.show_part(
                store, wanted.session_id, wanted.part_id, runs=wanted.runs
            )
        except Exception as error:
            self.post_message(ProblemOccurred("The part could not be shown", error))

    def apply_layout(self) -> None:
        """Show, hide and size the panes; an inspector that comes into sight is up to date."""
        super().apply_layout()
        if self._part_wanted is not None and self._part_due is None:
            self.call_later(self._show_part)

    @on(InspectRequested)
    def _inspect(self) -> None:
        self.focus_pane("inspector")

    @on(BottomLine.Pressed)
    async def _pressed(self, event: BottomLine.Pressed) -> None:
        await self.run_by_id(event.command)

    async def run_by_id(self, command_id: str) -> None:
        """Run any command by its id, on the pane that owns it."""
        command = BY_ID[command_id]
        owners: dict[Scope, Any] = {
            "app": self, "list": self.sessions, "transcript": self.transcript,
            "inspector": self.inspector,
        }
        owner = owners[command.scope]
        if owner is not None:
            await owner.run_command(command)

    # Commands

    def _step(self, by: int) -> None:
        names = [
            name for name in PANES
            if name == self.focused_pane or self.size.width < 150
            or name not in self.state.layout.hidden
        ]
        at = names.index(self.focused_pane)
        self.focus_pane(names[(at + by) % len(names)])

    def do_next_pane(self) -> None:
        """Go to the next pane."""
        self._step(1)

    def do_previous_pane(self) -> None:
        """Go to the previous pane."""
        self._step(-1)

    def do_sessions(self) -> None:
        """Go to the list."""
        self.focus_pane("sessions")

    def do_transcript(self) -> None:
        """Go to the transcript."""
        self.focus_pane("transcript")

    def do_inspector(self) -> None:
        """Go to the inspector."""
        self.focus_pane("inspector")

    def do_zoom(self) -> None:
        """Give the focused pane the whole screen, and back."""
        self.state.layout = self.state.layout._replace(zoomed=not self.state.layout.zoomed)
        self.apply_layout()

    def do_hide(self) -> None:
        """Hide the focused side pane, or show what is hidden."""
        layout, focused = self.state.layout, self.focused_pane
        if focused != "transcript":
            self.state.layout = layout._replace(hidden=layout.hidden | {focused}, zoomed=False)
            self.focus_pane("transcript")
            return
        hidden: frozenset[PaneName] = frozenset() if layout.hidden else frozenset({"inspector"})
        self.state.layout = layout._replace(hidden=hidden)
        self.apply_layout()

    def _resize(self, by: int) -> None:
        layout, screen = self.state.layout, self.size.width
        focused = self.focused_pane
        pane: PaneName = "sessions" if focused == "transcript" else focused
        by = -by if focused == "transcript" else by
        width = layout.width_of(pane, screen) + by
        self.state.layout = layout.resized(pane, width, screen)
        self.apply_layout()

    def do_narrower(self) -> None:
        """Make the focused pane narrower."""
        self._resize(-WIDTH_STEP)

    def do_wider(self) -> None:
        """Make the focused pane wider."""
        self._resize(WIDTH_STEP)

    def do_palette(self) -> None:
        """Open the command palette."""
        self.app.action_command_palette()

    def do_help(self) -> None:
        """Show the keys."""
        from tui.keys.help import HelpScreen

        self.app.push_screen(HelpScreen(SCOPES[self.focused_pane], self.changed_keys))

    def do_theme(self) -> None:
        """Go between dark and light."""
        dark = self.app.current_theme.dark
        self.app.theme = "backscroll-light" if dark else "backscroll-dark"

    def do_back(self) -> None:
        """Go back one step: filter, zoom, inspector, transcript, list, the words on top."""
        focused = self.focused_pane
        go_back = getattr(self.panes[focused], "go_back", None)
        if go_back is not None and go_back():
            return
        if self.state.layout.zoomed:
            self.do_zoom()
        elif focused == "inspector":
            self.focus_pane("transcript")
        elif focused == "transcript":
            self.focus_pane("sessions")
        else:
            self.query(Headline).remove()

    def do_quit(self) -> None:
        """Quit."""
        self.app.exit()
