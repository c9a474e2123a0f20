"""The main screen: three panes over a store, and the lines above and below them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from textual import events, on
from textual.app import ComposeResult
from textual.screen import Screen

from store.engine.changes import Moved
from store.errors import StoreError
from store.queries.listing import ListRow
from tui.host import FollowsStore, Host, ShowsRunning, ShowsTrouble, WayBack
from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine, show_keys
from tui.keys.pane import CommandOwner, CommandPane
from tui.kit.text import one_line
from tui.live.notifying import Notifier
from tui.live.summary import StoreCounter
from tui.live.watcher import Pace, StoreWatcher
from tui.main.bars import TopLine
from tui.main.first_frame import lines_of_list
from tui.main.inspecting import InspectorFeed
from tui.main.opener import SessionOpener
from tui.main.panes import PaneRow, Panes
from tui.main.places import PlaceKeeper
from tui.messages import (
    InspectRequested,
    JumpedFrom,
    NothingSelected,
    PartSelected,
    ProblemOccurred,
    SessionHighlighted,
    SessionOpened,
)
from tui.sessions.first_page import FirstPage
from tui.sessions.pane import SessionsPane
from tui.state.view_state import ViewState
from tui.verbs.doing import asking
from tui.verbs.undo import report_undone_rewind

if TYPE_CHECKING:
    from tui.inspector.pane import InspectorPane
    from tui.main.last_picture import LastPicture
    from tui.main.splitter import Splitter
    from tui.terminal.driver import TerminalDriver
    from tui.transcript.pane import TranscriptPane
    from tui.transcript.shown_hit import ShownHit

AGES_EVERY_S = 5.0
"""Pace at which ages are repainted."""
OPEN_EVERY_S = 1.0
"""Pace at which sessions that run or wait are judged again: their process may have ended."""


class MainScreen(CommandPane, Screen[None]):
    """Puts the panes and what serves them together, and passes their messages on.

    Attributes:
        sessions: The session list.
        transcript: The transcript; None until it is loaded.
        inspector: The inspector; None until it is loaded.
        panes: Layout and focus of the three.
        watcher: Notices what is written to the store.
        counter: Counts the store for the top line.
        opener: Opens sessions in the transcript.
        feed: Hands the selected part to the inspector.
        keeper: Remembers the places that were read, and the marks.
        notifier: Rings and notifies.
    """

    SCOPE = "main"
    BLANK = True  # Covered by what is on it, as in PaneRow.
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    MainScreen { background: $background; }
    MainScreen #panes { height: 1fr; }
    """

    def __init__(
        self, host: Host, state: ViewState, pace: Pace, page: FirstPage | None = None
    ) -> None:
        """Make the screen with the first page of sessions read.

        Args:
            host: The app.
            state: What was remembered; kept up to date.
            pace: How often the store is looked at.
            page: The first page of the list; None reads it.
        """
        super().__init__(id="main")
        self.host: Host = host
        self.library, self.state = host.library, state
        self.watcher = StoreWatcher(
            self, self.library, pace, show=self._show_moved, health_changed=self.show_summary)
        self.counter = StoreCounter(
            self, self.library, counted=self._counted, busy=self.watcher.busy)
        self.notifier = Notifier(self)
        self.sessions = SessionsPane(self.library, state, page)
        self.transcript: TranscriptPane | None = None
        self.inspector: InspectorPane | None = None
        self.panes: Panes = Panes(self, state, self.sessions, arranged=self._arranged)
        self.opener = SessionOpener(self, self.library, state)
        self.feed = InspectorFeed(self, self.library)
        self.keeper = PlaceKeeper(
            host, state, self.panes, self.opener, meant=self.session_meant,
            show=partial(self.open_session, keeps_place=False))

    def compose(self) -> ComposeResult:
        """Make lines, panes and borders."""
        yield TopLine()
        if self.library.headline:
            from tui.main.headline import Headline

            yield Headline(one_line(self.library.headline))
        with PaneRow(id="panes"):
            yield self.sessions
            if self.panes.slot is not None:
                yield self.panes.slot
        yield BottomLine()

    def on_mount(self) -> None:
        """Arrange the panes and give one the focus."""
        self.panes.focus("sessions")
        columns = self.panes.arrangement.widths.get("sessions") or self.size.width
        self.sessions.view.expect_size(columns, lines_of_list(self.size.height))
        self.show_summary()
        if self.library.notice:
            self.host.notify(self.library.notice, timeout=12, markup=False)
        self.call_after_refresh(self.start_following)

    def on_unmount(self) -> None:
        """Stop looking at the store."""
        self.watcher.stop()

    async def load_panes(self) -> None:
        """Load the panes that the first paint did without, and put them in their places."""
        transcript = await asyncio.to_thread(import_module, "tui.transcript.pane")
        inspector = await asyncio.to_thread(import_module, "tui.inspector.pane")
        await asyncio.to_thread(import_module, "tui.sessions.filter_line")
        self.sessions.load_filter()
        self.transcript = transcript.TranscriptPane(id="transcript")
        self.inspector = inspector.InspectorPane(id="inspector")
        self.opener.transcript, self.feed.inspector = self.transcript, self.inspector
        self.transcript.marks_in = self.keeper.marks.of_session
        opened = self.sessions.selected_id if self.panes.arrangement.shows("transcript") else None
        if opened is not None:
            self.transcript.headings.show_opening(self.sessions.selected_title())
        await self.panes.load(transcript=self.transcript, inspector=self.inspector)
        if self.sessions.selected_id and self.panes.arrangement.shows("transcript"):
            self.opener.open(self.sessions.selected_id)

    # Layout and focus

    def on_resize(self) -> None:
        """Arrange the panes for the new size."""
        self.panes.apply()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow the focus; keys behind it are for the session that the list's cursor is on."""
        self.sessions.filter_open = self.sessions.filter_has_focus
        self.panes.follow_focus()
        if self.panes.focused != "sessions":
            self.opener.open_preview()
            self.keeper.reads(self.opener.shown)
        elif self.sessions.selected_id and not self.sessions.contents.is_going:
            self._preview(self.sessions.selected_id)

    def _arranged(self) -> None:
        """Refresh the footer, and the panes that may have become visible."""
        if self.panes.arrangement.shows("transcript"):
            self.opener.came_into_sight()
        self.feed.came_into_sight()
        self.query_one(BottomLine).look()

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer; the way back where one pane is shown."""
        if command.id == "app.back":
            back = self.sessions.way_back if self.panes.focused == "sessions" else None
            if back is not None:
                return f"to the {back.title}"
            if not self.panes.is_single or self.panes.focused == "sessions":
                return None
        return super().footer_label(command)

    def on_splitter_dragged(self, event: Splitter.Dragged) -> None:
        """Move a border."""
        self.panes.drag(event.pane, event.column)

    # Which session is shown

    def session_meant(self) -> str | None:
        """Return the session that a command of any pane acts on."""
        listed = self.panes.focused == "sessions"
        return self.sessions.selected_id if listed else self.opener.shown

    def open_session(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None, *,
        focus: bool = True, back: WayBack | None = None, hit: ShownHit | None = None,
        keeps_place: bool = True,
    ) -> None:
        """Show a session in the transcript, and select it in the list; see ``Host``.

        Args:
            session_id: The session.
            message_id: The message to show; None for the default place.
            part_id: The part of it to unfold and select.
            focus: Whether the transcript gets the focus.
            back: Where escape leads from it; None for the list.
            hit: The hit of a search that it is opened at.
            keeps_place: Whether one can go back to the place that is left.
        """
        if focus:
            if keeps_place:
                self.keeper.reads(session_id, jumps=message_id is not None)
            self.panes.focus("transcript")
        self.opener.open(session_id, message_id, part_id, back=back, hit=hit)
        self.sessions.show_session(session_id)

    def show_in_list(
        self, query: str, sessions: Callable[[], Awaitable[set[int]]], back: WayBack
    ) -> None:
        """Show the sessions of a query in the list; see ``Host``.

        Args:
            query: As it is typed into the filter.
            sessions: Reads their rowids.
            back: Where escape leads.
        """
        self.panes.focus("sessions")
        self.sessions.show_found(query, sessions, back)

    def masks_changed(self) -> None:
        """Draw everything again, with what is masked now."""
        self.sessions.view.refresh()
        if self.transcript is not None and self.transcript.is_mounted:
            self.transcript.masks_changed()
        if self.inspector is not None and self.inspector.is_mounted:
            self.inspector.masks_changed()
        self.query_one(TopLine).refresh()

    def select_session(self, session_id: str) -> None:
        """Select a session in the list, where the list shows it; see ``Host``."""
        if self.panes.focused == "sessions" or session_id == self.opener.shown:
            self.sessions.go_to(session_id)
        else:
            self.sessions.store_changed()

    async def last_picture(self, terminal: TerminalDriver) -> LastPicture | None:
        """Return the picture for the next start; see ``tui.main.last_picture``."""
        from tui.main.last_picture import Parts, last_picture

        parts = Parts(self, self.host, self.library, self.state, self.panes, self.sessions,
                      self.opener, self.watcher)
        return await last_picture(parts, terminal)

    def remember(self) -> ViewState:
        """Return what is to be remembered now."""
        self.opener.keep_place()
        return self.state

    @on(SessionHighlighted)
    def _highlighted(self, event: SessionHighlighted) -> None:
        self.opener.stop_preview()
        # What another program archives or deletes must not take away what is being read.
        chosen = self.panes.focused == "sessions" or self.opener.shown is None
        if event.session_id and chosen:
            self._preview(event.session_id)

    def _preview(self, session_id: str) -> None:
        """Show the session that is selected in the list, once the selection rests."""
        if session_id != self.opener.shown:
            self.opener.preview(session_id, seen=self.panes.arrangement.shows("transcript"))

    @on(SessionOpened)
    def _opened(self, event: SessionOpened) -> None:
        self.open_session(event.session_id, event.message_id)

    # Which part is inspected

    @on(PartSelected)
    async def _part_selected(self, event: PartSelected) -> None:
        await self.feed.select(event)
        show_keys(self)

    @on(JumpedFrom)
    def _jumped(self, event: JumpedFrom) -> None:
        self.keeper.jumped(event)

    @on(NothingSelected)
    def _nothing_selected(self) -> None:
        self.feed.clear()
        show_keys(self)

    @on(InspectRequested)
    async def _inspect(self) -> None:
        self.panes.focus("inspector")
        # Keys that follow act on the part that was selected last, at rest or not.
        await self.feed.show()

    # What is written to the store, and time

    def start_following(self) -> None:
        """Look at the store from now on, and count it."""
        if self.watcher.pace.poll_ms:
            self.watcher.start()
            self.set_interval(AGES_EVERY_S, self._time_went_by)
            self.set_interval(OPEN_EVERY_S, self.look_at_open)
        self.counter.count_now()

    async def _show_moved(self, moved: Moved) -> None:
        self.host.let_picture_go()
        if self.transcript is not None:
            self.opener.open_missed()
            self.transcript.opener.fill_again()
            await self.transcript.follower.refresh(moved)
        await self.sessions.look_again(moved)
        await report_undone_rewind(self.host, moved)
        if moved:  # A server's first answer is no change.
            self.counter.moved_at = self.library.clock()
        self.counter.count_soon()
        above = self.app.screen
        if above is not self and isinstance(above, FollowsStore):
            above.store_changed()

    def _counted(self, active: list[ListRow]) -> None:
        self.notifier.look(active, self.opener.shown)
        self.show_summary()

    def show_summary(self) -> None:
        """Show what was counted last in the top line."""
        if self.is_attached:
            health = self.watcher.poller.health
            summary = self.query_one(TopLine).summary = self.counter.summary(health)
            bottom, note = self.query_one(BottomLine), "read only" if summary.read_only else ""
            if note != bottom.note:
                bottom.note = note
                bottom.look()
                show_keys(self)
            above = self.app.screen
            # One that is being composed shows the count once it is mounted.
            if isinstance(above, ShowsRunning) and above.is_mounted:
                above.show_running(self.counter.running)
            for above in self.app.screen_stack:
                if isinstance(above, ShowsTrouble) and above.is_mounted:
                    above.show_trouble(summary.trouble)

    def _time_went_by(self) -> None:
        self.show_summary()
        self.sessions.time_went_by()

    def look_at_open(self) -> None:
        """Judge again what runs or waits: in the list, in the transcript, in the top line."""
        self.sessions.look_at_open()
        if self.transcript is not None and self.transcript.follower.may_have_ended:
            self.run_worker(
                # A coroutine is made only when it runs: another may take its place.
                self._judge_transcript, group="time",  # type: ignore[arg-type]
                exclusive=True, exit_on_error=False,
            )
        if self.counter.lives:
            self.counter.count_soon()

    async def _judge_transcript(self) -> None:
        try:
            if self.transcript is not None:
                await self.transcript.follower.refresh_activity()
        except StoreError:
            self.watcher.busy()
        except Exception as error:
            self.post_message(
                ProblemOccurred("Whether the session still runs could not be read", error))

    # Commands

    @property
    def owners(self) -> list[CommandOwner]:
        """What runs the commands of the screen: the panes that are loaded, the focused first."""
        found = (self.sessions, self.transcript, self.inspector)
        panes: list[CommandOwner] = [pane for pane in found if pane is not None]
        return [*sorted(panes, key=lambda pane: self.panes.scope != pane.SCOPE), self]

    def run_by_id(self, command_id: str) -> None:
        """Run a command by its id, on the pane that owns it."""
        scope = self.host.commands.by_id[command_id].scope
        owner = next((owner for owner in self.owners if scope == owner.SCOPE), None)
        if owner is not None:
            owner.request_command(command_id)

    async def choose_place(self) -> None:
        """Go to a mark or a label that is chosen."""
        await asking(self, self.keeper.choose())

    async def _of_session(self, work: Callable[[Host, str], Coroutine[Any, Any, None]]) -> None:
        """Do something with the session that is meant."""
        await self.sessions.catch_up()
        session_id = self.session_meant()
        if session_id is not None:
            await asking(self, work(self.host, session_id))

    async def export(self) -> None:
        """Save the session to a file."""
        from tui.verbs.library import export_session

        await self._of_session(
            lambda host, session_id: export_session(host, session_id, self._message_in(session_id)))

    async def share(self) -> None:
        """Choose what of the session, or of the marked ones, goes out."""
        from tui.verbs.library import share_sessions

        await self.sessions.catch_up()
        session_id = self.session_meant()
        if session_id is None:
            return
        marked = list[str]()
        if self.panes.focused == "sessions" and self.sessions.selection.marks:
            marked = [each.id for each in await self.sessions.targets.chosen()]
        await asking(self, share_sessions(
            self.host, marked or [session_id], self._message_in(session_id)))

    def _message_in(self, session_id: str) -> str | None:
        """Return the message that is selected in a session; None where another one is shown."""
        shown = self.transcript.shown if self.transcript is not None else None
        here = shown is not None and shown.has_parts and shown.session_id == session_id
        return shown.message_id if shown is not None and here else None

    async def replay(self) -> None:
        """Play the session from the selected message, or from its start at the list or the end."""
        await self.sessions.catch_up()
        session_id = self.session_meant()
        if session_id is None:
            return
        transcript, message_id = self.transcript, None
        if self.panes.focused != "sessions" and transcript is not None \
                and not transcript.view.at_end:
            message_id = self._message_in(session_id)
        self.host.open_replay(session_id, message_id)

    async def forget(self) -> None:
        """Remove the session permanently."""
        from tui.verbs.library import forget_session

        await self._of_session(forget_session)

    async def import_sessions(self) -> None:
        """Bring in an exported file."""
        from tui.verbs.library import import_sessions

        await asking(self, import_sessions(self.host))

    def sync(self) -> None:
        """Read the sessions of all sources."""
        from tui.verbs.library import sync_now

        self.run_worker(sync_now(self.host), group="verb", exit_on_error=False)

    async def show_sources(self) -> None:
        """Show where sessions are looked for."""
        from tui.verbs.library import show_sources

        await asking(self, show_sources(self.host))

    async def resume(self) -> None:
        """Resume the session in its agent."""
        from tui.verbs.resuming import go_on

        await self._of_session(go_on)

    def go_back(self) -> None:
        """Go back one step: toasts, selected text, filter, zoom, inspector, transcript, list."""
        if self.host.close_toasts():
            return
        if self.get_selected_text():
            self.clear_selection()
            return
        focused = self.panes.focused
        if focused == "sessions":
            went = self.sessions.go_back()
        elif focused == "transcript":
            went = self.transcript is not None and self.transcript.go_back()
        else:
            went = self.inspector is not None and self.inspector.go_back()
        if went:
            return
        if self.panes.zoomed:
            self.panes.toggle_zoom()
        elif focused == "inspector":
            self.panes.leave_inspector()
        elif focused == "transcript":
            self.panes.focus("sessions")
        else:
            self.query("Headline").remove()
