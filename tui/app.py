"""The app: themes, keys, errors, and the main screen."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import re
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import App
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from store.activity.judgement import leave_to_watcher
from store.engine.transactions import explained, is_of_a_server
from store.errors import BackscrollError, Refused, StoreError
from store.system.locations import library_path
from store.system.paths import real_path
from store.system.records import NamedTuple
from store.text.figures import home_path
from tui.keys.dispatch import CommandApp
from tui.keys.names import key_name
from tui.keys.pane import CommandOwner, owners_of
from tui.kit.closing import forget_drawn
from tui.kit.guard import Guard
from tui.kit.key_hints import take_keys
from tui.kit.masked import is_view_masked, mask_view
from tui.kit.palette import default_theme
from tui.kit.text import clean, fit_middle
from tui.kit.theme import OWN_THEMES, palette_of, selection_variables
from tui.live.indexing import Indexing
from tui.live.syncing import Syncing
from tui.messages import ProblemOccurred
from tui.start import problems
from tui.state.last_screen import drop_screen
from tui.state.library import Library
from tui.state.view_state import ViewState, remembered_state, save_state, state_path

if TYPE_CHECKING:
    from textual.driver import Driver

    from store.config import Config, Settings
    from tui.host import EveryScreen, Rewound, WayBack
    from tui.keys.declaration import AnyCommand
    from tui.keys.table import CommandTable
    from tui.main.last_picture import LastPicture
    from tui.main.screen import MainScreen
    from tui.search.model import SearchModel
    from tui.search.tour import Tour
    from tui.start.begin import Begun
    from tui.start.making import Making
    from tui.start.wanted import Place
    from tui.state.places import Places
    from tui.stats.model import StatsModel
    from tui.terminal.driver import TerminalDriver
    from tui.transcript.shown_hit import ShownHit

SYNC_WAIT_S = 20
"""How long a single session that an agent went on with may take to be read."""

MOST_UNCAUGHT = 20
"""The app ends after this many errors that nothing caught."""


FILLED_AFTER_S = 2.0
"""So long after the transcript has its session the inspector has its part, also under load."""
MOST_TOASTS = 2
MOST_PATH = 48
_LONG_PATH = rf"(?<!\S)(?:~|/)\S{{{MOST_PATH},}}"  # Compiled when a toast is shown.


class ShownToast(NamedTuple):
    """A toast that is shown until ``until``, by ``time.monotonic``."""

    words: str
    title: str
    severity: SeverityLevel
    until: float


def _shortened(path: re.Match[str]) -> str:
    """Return a long path without its middle."""
    return fit_middle(path[0], MOST_PATH)


def _other_commands() -> tuple[AnyCommand, ...]:
    """Return the commands that the first screen does without."""
    from tui.keys.registry import OTHER_COMMANDS

    return OTHER_COMMANDS


class BackscrollApp(CommandOwner, CommandApp):
    """Shows one store; its own commands work on every screen."""

    SCOPE = "app"
    TITLE = "backscroll"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    Screen { scrollbar-size: 1 1; }
    Toast { background: $panel; color: $foreground; width: 64; max-width: 80%; }
    ToastRack { margin-bottom: 2; }
    ReplayScreen ToastRack { margin-bottom: 4; }
    """

    def __init__(
        self, library: Library, settings: Settings, *, poll_ms: int | None = None,
        state: ViewState | None = None, begun: Begun | None = None,
    ) -> None:
        """Make the app.

        Args:
            library: The store, open.
            settings: The config, as ``quick_config`` reads it.
            poll_ms: Between two looks at the store; None takes the config's.
            state: What was remembered; None reads it.
            begun: What is on the screen already; what is typed meanwhile waits for the main
                screen.
        """
        self.guard = Guard()
        # Textual asks for the variables of a theme of its own before ours is chosen.
        self._themed = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self._begun = begun
        self._terminal: TerminalDriver | None = None
        self._last_picture: LastPicture | None = None
        self._is_ending = False
        self._reads_sessions = True
        self.keeps_screen = False
        super().__init__()
        self._main: MainScreen | None = None
        self.library = library
        self.settings = settings
        self._commands: CommandTable | None = None
        self.first_place: Place | None = None
        self._search: tuple[SearchModel, Tour] | None = None
        self._stats: StatsModel | None = None
        self.rewinds: dict[str, Rewound] = {}
        self._uncaught = 0
        self.failure = ""
        self._toasts: list[ShownToast] = []
        self._toasts_shown: list[ShownToast] = []
        self._toasts_drawn = set[Widget]()
        self._syncing = Syncing(
            library.path, self._show_sync, self.report, servers=self._show_servers,
            read=self._sync_has_read,
        )  # fmt: skip
        self._indexing = Indexing(
            library.path, self.report, server=library.database.server)
        self.view_state: ViewState = state or remembered_state(library.path, settings.ui)
        self._poll_ms = settings.live.poll_ms if poll_ms is None else poll_ms
        self._mask_view(settings.masks.view)
        for theme in OWN_THEMES:
            self.register_theme(theme)
        wanted = default_theme(settings.ui.theme or "auto")
        self._start_in(wanted if wanted in self.available_themes else default_theme("auto"))

    def _start_in(self, theme: str) -> None:
        """Take the first theme; our dark one without having every style sheet parsed twice."""
        self._themed = True
        if theme == "backscroll-dark":
            self.set_reactive(App.theme, theme)
            self.set_class(True, f"-theme-{theme}", update=False)
        else:
            self.theme = theme
        self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's variables, with readable colours for selected text.

        Until a theme is chosen nothing is drawn, and Textual's own is not worked out.
        """
        if not self._themed:
            return {}
        return {**super().get_css_variables(), **selection_variables(palette_of(self))}

    @property
    def main(self) -> MainScreen:
        """The main screen."""
        assert self._main is not None
        return self._main

    @property
    def shown_session(self) -> str | None:
        """The id of the session in the transcript."""
        return self.main.opener.shown

    @property
    def running_sessions(self) -> int:
        """How many sessions run, as counted last."""
        return self.main.counter.running

    @property
    def way_back(self) -> WayBack | None:
        """Where escape leads from the session in the transcript; None for the list."""
        return self.main.opener.way_back

    @property
    def places(self) -> Places:
        """The places that jumps have left, for going back and forth."""
        return self.main.keeper.places

    async def choose_place(self) -> None:
        """Let a mark or a label be chosen, and go there."""
        await self.main.choose_place()

    def select_session(self, session_id: str) -> None:
        """Select a session in the list, where the list shows it; see ``Host``."""
        self.main.select_session(session_id)

    def open_session(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None, *,
        focus: bool = True, back: WayBack | None = None, hit: ShownHit | None = None,
    ) -> None:
        """Show a session in the transcript, and select it in the list; see ``Host``.

        Args:
            session_id: The session.
            message_id: The message to show; None for the default place.
            part_id: The part of it to unfold and select.
            focus: Whether the transcript gets the focus.
            back: Where escape leads from it; None for the list.
            hit: The hit of a search that it is opened at.
        """
        self.main.open_session(session_id, message_id, part_id, focus=focus, back=back, hit=hit)

    def open_search(self, text: str | None = None, *, back: bool = False) -> None:
        """Show the search screen.

        Args:
            text: What to search for; None for what was searched for last.
            back: Whether it is shown again after a hit was opened from it.
        """
        from tui.search.screen import SearchScreen

        model, tour = self._made_search()
        open_one = next((one for one in self.screen_stack if isinstance(one, SearchScreen)), None)
        if self.main.watcher.passed_at > model.searched_at:
            model.store_changed()
        if open_one is None:
            self.push_screen(SearchScreen(model, tour, text, back=back))
            return
        while self.screen is not open_one:
            self.pop_screen()
        if text is not None:
            open_one.ask(text)

    def open_stats(self) -> None:
        """Show the statistics screen, as it was left."""
        from tui.stats.model import StatsModel
        from tui.stats.screen import StatsScreen

        if self._stats is None:
            self._stats = StatsModel(
                self.library, self.settings, self._start_beside, self.report)
        if not any(isinstance(one, StatsScreen) for one in self.screen_stack):
            self.push_screen(StatsScreen(self._stats))
            return
        while not isinstance(self.screen, StatsScreen):
            self.pop_screen()

    def open_replay(self, session_id: str, message_id: str | None = None) -> None:
        """Play a session as it happened.

        Args:
            session_id: The session.
            message_id: The message to begin at; None for the start.
        """
        from tui.replay.screen import ReplayScreen

        if not isinstance(self.screen, ReplayScreen):
            self.push_screen(ReplayScreen(
                session_id, message_id, clock=self.library.clock, ticks=bool(self._poll_ms)))

    def show_in_list(
        self, query: str, sessions: Callable[[], Awaitable[set[int]]], back: WayBack
    ) -> None:
        """Show the sessions of a query in the list; see ``Host``.

        Args:
            query: As it is typed into the filter.
            sessions: Reads their rowids.
            back: Where escape leads.
        """
        self.main.show_in_list(query, sessions, back)

    def _made_search(self) -> tuple[SearchModel, Tour]:
        if self._search is None:
            from tui.search.model import SearchModel
            from tui.search.tour import Tour

            model = SearchModel(
                self.library, self._start_beside, self.report,
                helpers=self.settings.ui.helpers)
            self._search = model, Tour(self, model, partial(self.open_search, back=True))
        return self._search

    def _start_beside(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        made: Any = work  # A coroutine only when it is its turn; another may take its place.
        self.run_worker(made, group=group, exclusive=True, exit_on_error=False)

    async def show_written(self) -> None:
        """Show what the app itself has written; returns when the panes show it."""
        await self.main.watcher.show_written()

    def get_default_screen(self) -> Screen[None]:
        """Make the main screen."""
        leave_to_watcher(self.library.path)
        from tui.live.watcher import Pace
        from tui.main.screen import MainScreen

        live = self.settings.live
        pace = Pace(self._poll_ms, live.unfocused_poll_ms, live.repaint_ms)
        page = None
        if self._begun is not None:
            page = self._begun.page
            self.inputs.pause()
        self._main = MainScreen(self, self.view_state, pace, page)
        return self._main

    def get_driver_class(self) -> type[Driver]:
        """Return the driver: one that sends what changed, over what is on the screen already."""
        kind = super().get_driver_class()
        if self._begun is not None or kind.__module__ == "textual.drivers.linux_driver":
            from tui.start.driver import driver_on

            early = None if self._begun is None else self._begun.terminal
            kind = driver_on(early, partial(setattr, self, "_terminal"))
        return kind

    def on_load(self) -> None:
        """Say where the app can be reached from other threads."""
        self.loop = asyncio.get_running_loop()

    def on_mount(self) -> None:
        """Be ready to be stopped before there is anything to see."""
        from tui.start.stopped import start_anew_when_continued

        start_anew_when_continued(self)
        if self._begun is not None and self._begun.terminal.is_to_stop:
            signal.raise_signal(signal.SIGTSTP)

    async def on_ready(self) -> None:
        """Load what the first paint did not need, now that it is on the screen."""
        self.call_after_refresh(self._after_first_paint)

    def _after_first_paint(self) -> None:
        self.inputs.resume()
        gc.collect()
        gc.freeze()
        gc.enable()
        self.run_worker(self._load_rest(), exit_on_error=False)

    async def _load_rest(self) -> None:
        if self.library.making is not None:
            self.run_worker(self._made(self.library.making), exit_on_error=False)
        await self.library.ready()
        await self.main.load_panes()
        self.run_worker(self._picture_is_drawn(), exit_on_error=False)
        if self.first_place is not None:
            self.open_session(*self.first_place)
        if not self.is_headless and self.library.is_kept:
            self.run_worker(self._indexing.run(), exit_on_error=False)
        sources = (await self._report_config()).sources
        targets = self.library.sync_targets
        if targets or (targets is not None and sources.sync_on_start):
            if not sources.watch:
                leave_to_watcher(self.library.path, left=False)
            await self._syncing.run(targets, watch=sources.watch)
        else:
            leave_to_watcher(self.library.path, left=False)
            self._sync_has_read(False)
        self._reads_sessions = False
        if self.main.transcript is not None and self.main.transcript.is_mounted:
            self.main.transcript.update_headings()

    async def _picture_is_drawn(self) -> None:
        """Show what is drawn once the panes are filled, even where the picture was another one."""
        await self.main.opener.opened()
        self.set_timer(FILLED_AFTER_S, self.let_picture_go)

    def let_picture_go(self) -> None:
        """Show what is drawn, where the picture of the last screen still stays."""
        if self._terminal is not None and not self._is_ending:
            self._terminal.let_go()

    async def _made(self, making: Making) -> None:
        """Show what another process fills the store with, once that is there."""
        try:
            await making.done()
        except BackscrollError as error:
            self.report(f"{making.words} failed", error)
        self.library.making = None
        self.main.sessions.store_changed()
        self.main.counter.count_now()

    async def sync_now(self, targets: Sequence[str]) -> None:
        """Sync some places, beside whatever sync runs; gives up where that does not end."""
        if not self.library.is_kept:
            return
        syncing = Syncing(self.library.path, self._show_sync, self.report)
        try:
            await asyncio.wait_for(syncing.run(targets), SYNC_WAIT_S)
        except TimeoutError:
            await syncing.stop()

    def read_first(self, session_id: str) -> None:
        """Have a session that is listed and not read yet read before all others."""
        self._syncing.read_first(session_id)

    def why_unread(self) -> str | None:
        """Return that listed sessions stay unread and the way out; None where a sync reads them."""
        if self._reads_sessions:
            return None
        path, option = str(self.library.path), ""
        if self.library.path != real_path(library_path()):
            import shlex

            quoted = shlex.quote(path)
            option = f" --store {home_path(path) if quoted == path else quoted}"
        return f"Not read yet; run: backscroll sync{option}"

    def _show_servers(self, words: str) -> None:
        self.main.counter.servers = words
        self.main.show_summary()

    def _show_sync(self, words: str) -> None:
        self.main.counter.syncing = words
        self.main.counter.count_now()

    def _sync_has_read(self, elsewhere: bool, /) -> None:
        """Have an empty list say that it stays empty, or that another browser fills it.

        Args:
            elsewhere: Whether another browser's watcher reads what there is.
        """
        library = self.library
        if (library.is_synced, library.is_read_elsewhere) != (True, elsewhere):
            library.is_synced, library.is_read_elsewhere = True, elsewhere
            if not len(self.main.sessions.view.model):
                self.main.sessions.store_changed()

    async def _report_config(self) -> Config:
        config: Config = import_module("store.config").load_config()
        self.main.notifier.settings = config.notify
        check = import_module("tui.start.config_check")
        mistakes = check.mistakes_of(config, self.available_themes)
        if mistakes:
            words = [str(mistake) for mistake in mistakes[:3]]
            if len(mistakes) > 3:
                words.append(f"… and {len(mistakes) - 3} more in {config.path}")
            self.notify("\n".join(words), severity="warning", timeout=10)
        return config

    # Textual takes the focus away in this private method, and has no setting for it.
    def _watch_app_focus(self, focus: bool) -> None:
        """Keep the focus where it is when the terminal's window loses it."""

    @property
    def commands(self) -> CommandTable:
        """The commands with the keys that they have now; made when they are first wanted."""
        if self._commands is None:
            from tui.keys.first_commands import FIRST_COMMANDS
            from tui.keys.table import CommandTable

            self._commands = CommandTable(FIRST_COMMANDS, self.settings.keys, _other_commands)
            take_keys(self._commands.label_of)
        return self._commands

    def before_key(self) -> None:
        """Give keys to the filter while it is open, even where it has lost the focus."""
        main = self._main
        if main is None or self.screen is not main or not main.is_mounted:
            return
        if main.sessions.filter_open and not main.sessions.filter_has_focus:
            main.sessions.open_filter()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what each row of the screen goes through; the guard is the last."""
        return [*super().get_line_filters(), self.guard]

    def notify(
        self, message: str, *, title: str = "", severity: SeverityLevel = "information",
        timeout: float | None = None, markup: bool = False,
    ) -> None:
        """Show a toast, unless the same text is still shown; its text is never markup.

        With the newest two are shown, so that they do not pile up.
        """
        words = re.sub(_LONG_PATH, _shortened, clean(message))
        now = time.monotonic()
        self._toasts = [toast for toast in self._toasts if now < toast.until]
        if any(toast.words == words for toast in self._toasts):
            return
        lasts = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        toast = ShownToast(words, clean(title), severity, now + lasts)
        self._toasts = [*self._toasts, toast][-MOST_TOASTS:]
        # Textual shows a toast a message later; those before must be there to be cleared.
        self.call_later(self._show_toasts)

    def _show_toasts(self) -> None:
        """Show the newest toasts in place of those that are shown."""
        if self._toasts_shown == self._toasts:
            return
        self._forget_old_toasts()
        now, shown = time.monotonic(), self._toasts_shown
        self._toasts_shown = list(self._toasts)
        if self._toasts[: len(shown)] != shown:
            self.clear_notifications()
            shown = []
        for toast in self._toasts[len(shown):]:
            if toast.until > now:
                super().notify(
                    toast.words, title=toast.title, severity=toast.severity,
                    timeout=toast.until - now, markup=False,
                )

        # They are there once the screen was drawn, or, if another key comes first, when they go.
        self.call_later(self.call_after_refresh, self._note_toasts)

    def _note_toasts(self) -> None:
        for screen in self.screen_stack:
            self._toasts_drawn.update(screen.query("Toast"))

    def _forget_old_toasts(self) -> None:
        """Remove what Textual keeps of toasts that went: what held them, and what was drawn."""
        self._note_toasts()
        for screen in self.screen_stack:
            for holder in screen.query("ToastHolder"):
                if not holder.children:
                    holder.remove()
        for toast in [each for each in self._toasts_drawn if not each.is_attached]:
            self._toasts_drawn.remove(toast)
            forget_drawn(toast)

    def close_toasts(self) -> bool:
        """Close the toasts; return whether there were any."""
        now = time.monotonic()
        shown = any(now < toast.until for toast in self._toasts)
        self._note_toasts()
        self._toasts, self._toasts_shown = [], []
        self.clear_notifications()
        return shown

    @on(ProblemOccurred)
    def _problem(self, event: ProblemOccurred) -> None:
        self.report(event.summary, event.error)

    def report(self, summary: str, error: BaseException | None) -> None:
        """Say what went wrong, and keep the whole of it in the log file."""
        path = problems.keep(summary, error)
        if is_of_a_server(error):
            return  # The top line of each screen says so, and since when.
        words = summary if error is None else f"{summary}: {problems.reason(error)}"
        if path is not None:
            words += f"\nlog: {path}"
        self.notify(words, severity="error", timeout=10)

    @on(Worker.StateChanged)
    def _worker_ended(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.report("Something failed in the background", event.worker.error)

    # Textual has no public hook for errors of handlers: it ends the app on each.
    def _handle_exception(self, error: Exception) -> None:
        """Keep running after an error that nothing caught, and say so.

        A test's app ends on it, so that the test fails; so does one that does nothing else,
        and one that has nothing to show yet.
        """
        self._uncaught += 1
        if not self.is_headless and (self._main is None or not self._main.is_mounted):
            self._could_not_start(error)
        elif self.is_headless or self._uncaught > MOST_UNCAUGHT:
            super()._handle_exception(error)
        else:
            self.report("Something went wrong", error)

    def _could_not_start(self, error: Exception) -> None:
        """End with exit code 1; ``failure`` is printed once the terminal is restored."""
        path = problems.keep("The browser could not start", error)
        if not self.failure:
            cause: Exception = error
            if isinstance(error, sqlite3.Error):
                cause = explained(error, self.library.path)
            words = f"the browser could not start: {problems.reason(cause)}"
            self.failure = words if path is None else f"{words}; log: {path}"
        self.exit(return_code=1)

    # What the commands of every screen do

    def show_palette(self) -> None:
        """List every command that can be run here."""
        from tui.dialogs.palette import Entry, PaletteScreen, entries_of

        main = self.screen is self._main
        owners = self.main.owners if main else owners_of(self.screen)[:-1]
        entries = entries_of(self.commands, [*owners, self])
        entries.append(Entry("Choose a theme", "All themes, ours and Textual's",
                             self._choose_theme, also="colours dark light"))
        self.push_screen(PaletteScreen("Commands", entries, "type what you want to do"))

    def _choose_theme(self) -> None:
        from tui.dialogs.palette import Entry, PaletteScreen

        entries = [
            Entry(name, "the theme that is shown" if name == self.theme else "",
                  partial(setattr, self, "theme", name))
            for name in sorted(self.available_themes)
        ]
        self.push_screen(PaletteScreen("Themes", entries, "type the name of a theme"))

    def show_help(self) -> None:
        """Show the keys that work where the focus is; close that where it is shown."""
        from tui.dialogs.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
            return
        scopes = [owner.SCOPE for owner in owners_of(self.focused or self.screen)]
        self.push_screen(HelpScreen(scopes, self.commands))

    def toggle_masks(self) -> None:
        """Mask what is shown of sessions, or show it as it is."""
        self._mask_view(not is_view_masked())
        if self._main is not None:
            self._main.masks_changed()
        if self._search is not None:
            self._search[0].masks_changed()
        self.theme_changed_signal.publish(self.current_theme)  # All is painted again.
        self.screen.refresh(layout=True)
        words = "Secrets are masked on the screen" if is_view_masked() else (
            "The screen shows everything again")
        self.notify(words)

    def _mask_view(self, masked: bool) -> None:
        """Mask what is drawn from now on, or nothing; own rules that are wrong are left out."""
        if not masked:
            mask_view(None)
            return
        from store.sharing.masks import BadRule
        from store.sharing.settings import masking_of

        settings = self.settings.masks
        try:
            mask_view(masking_of(settings))
        except BadRule as error:
            mask_view(dataclasses.replace(masking_of(settings), own_rules={}))
            self.call_later(self.report, "The rules of the config are not used", error)

    def redraw(self) -> None:
        """Draw the whole screen anew, whatever the terminal shows."""
        if hasattr(signal, "SIGWINCH"):
            # The driver forgets what the terminal shows, as it does at a new size.
            signal.raise_signal(signal.SIGWINCH)
        self.refresh(layout=True)

    def switch_theme(self) -> None:
        """Switch between the dark and the light theme."""
        self.theme = "backscroll-light" if self.current_theme.dark else "backscroll-dark"

    async def save_picture(self) -> None:
        """Save what the screen shows as a picture and as text, into the current folder."""
        from tui.kit.picture import save_picture

        svg = self.export_screenshot(title="backscroll")
        try:
            path = await asyncio.to_thread(save_picture, svg, self.library.clock())
        except (Refused, OSError) as error:
            self.notify(f"The picture was not saved: {error}", severity="error")
            return
        self.notify(f"Saved {path} and the same as .txt")

    async def undo(self) -> None:
        """Undo the last change of the store."""
        from tui.verbs.undo import undo

        await undo(self)

    async def redo(self) -> None:
        """Redo what was undone last."""
        from tui.verbs.undo import redo

        await redo(self)

    def action_help_quit(self) -> None:
        """Show which keys quit, as ctrl+c stops a program elsewhere."""
        own = map(key_name, self.commands.keys_of(self.commands.by_id["app.quit"]))
        textual = (key for key, active in self.active_bindings.items()
                   if active.binding.action in ("quit", "app.quit"))
        keys = dict.fromkeys([*own, *textual])
        self.notify(f"{' or '.join(keys) or 'The palette'} quits Backscroll")

    @contextlib.contextmanager
    def suspend(self) -> Iterator[None]:
        """Give the terminal to another program while the context lasts.

        Raises:
            Refused: No program may be started here.
        """
        reason = self.library.limits.no_programs
        if reason is not None:
            raise Refused(reason)
        with super().suspend():
            yield

    async def action_quit(self) -> None:
        """Quit."""
        self.quit()

    def quit(self, code: int = 0) -> None:
        """End, once the picture for the next start is drawn."""
        if self._is_ending or not self.keeps_screen or self._terminal is None:
            self.exit(return_code=code)
            return
        self._is_ending = True
        self.save_place()
        self.run_worker(self._draw_last(self._terminal, code), exit_on_error=False)

    async def _draw_last(self, terminal: TerminalDriver, code: int) -> None:
        try:
            # It would be out of date; a folder that cannot be written keeps it so.
            with contextlib.suppress(OSError):
                drop_screen(str(self.library.path))
            # A server is asked for its sessions at each start.
            if self.screen is self._main and self.library.database.server is None:
                self._last_picture = await self._main.last_picture(terminal)
        finally:
            self.exit(return_code=code)

    async def on_unmount(self) -> None:
        """Remember the place, close the store, and keep the picture for the next start."""
        self.inputs.stop()
        if not self._is_ending:
            self.save_place()
        await self._syncing.stop()
        await self._indexing.stop()
        if self._search is not None:
            await self._search[0].close()
        await self.library.close()
        if self._last_picture is not None:
            # It spares the next start a moment, and is no reason to fail.
            with contextlib.suppress(OSError, StoreError):
                self._last_picture.keep()

    def save_place(self) -> None:
        """Remember the place for the next run; a folder that cannot be written goes without."""
        if self._main is not None and self.library.limits.read_only is None:
            with contextlib.suppress(OSError):
                save_state(state_path(self.library.path), self._main.remember())

    def leave(self, code: int) -> None:
        """Save the place and end with an exit code."""
        if self._main is not None and self._main.is_mounted:
            self.save_place()
            self.quit(code)
            return
        self.exit(return_code=code)


if TYPE_CHECKING:

    def _is_host(app: BackscrollApp) -> EveryScreen:
        """Have the type checker compare the app with what rooms ask of it."""
        return app
