"""What panes, screens and verbs may ask of the app.

They take a ``Host`` and never import the app itself. ``host_of`` returns the host of a widget.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from store.system.records import NamedTuple

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.notifications import SeverityLevel
    from textual.screen import Screen
    from textual.widget import Widget

    from store.config import Settings
    from tui.keys.dispatch import KeyTaker
    from tui.keys.table import CommandTable
    from tui.state.library import Library
    from tui.state.places import Places
    from tui.transcript.shown_hit import ShownHit

T = TypeVar("T")


class Rewound(NamedTuple):
    """A rewind that was done here, kept so that its undoing by another program is noticed.

    Attributes:
        kept: The last message that it left visible.
        last_at: ``created_at`` of the last message that it hid, epoch ms.
        reported: Whether the user knows that another program undid it.
    """

    kept: str
    last_at: int
    reported: bool = False


class WayBack(NamedTuple):
    """Where escape leads from a session that was opened from elsewhere.

    Attributes:
        title: What is shown as the place to go back to.
        go: Goes there.
    """

    title: str
    go: Callable[[], object]


class Terminal(Protocol):
    """What copying and other programs need; any Textual app has it."""

    def notify(
        self, message: str, *, title: str = "", severity: SeverityLevel = "information",
        timeout: float | None = None, markup: bool = True,
    ) -> None:
        """Show a toast.

        Args:
            message: What it says.
            title: Its first line, bold.
            severity: Its colour.
            timeout: Seconds until it goes; None for the usual time.
            markup: Pass False; ``Host`` never reads markup.
        """
        ...

    @property
    def is_web(self) -> bool:
        """Whether the terminal is a web page."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard (OSC 52)."""
        ...

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal to another program while the context lasts."""
        ...


@runtime_checkable
class FollowsStore(Protocol):
    """A screen above the main one that shows what is written to the store."""

    def store_changed(self) -> None:
        """Read again what is shown."""
        ...


@runtime_checkable
class ShowsRunning(Protocol):
    """A screen above the main one that shows how many sessions run."""

    def show_running(self, running: int) -> None:
        """Show another count."""
        ...


@runtime_checkable
class ShowsTrouble(Protocol):
    """A screen above the main one that shows why what it shows may be old."""

    def show_trouble(self, words: str) -> None:
        """Show some words in the top line; empty words remove it."""
        ...


class Host(Terminal, Protocol):
    """The app, as panes, screens and verbs know it."""

    @property
    def library(self) -> Library:
        """The store that is shown, and the clock."""
        ...

    @property
    def settings(self) -> Settings:
        """The config: keys, theme, pace."""
        ...

    @property
    def commands(self) -> CommandTable:
        """The commands with the keys that they have now."""
        ...

    @property
    def size(self) -> Size:
        """The size of the terminal in cells."""
        ...

    @property
    def shown_session(self) -> str | None:
        """The id of the session in the transcript."""
        ...

    @property
    def running_sessions(self) -> int:
        """How many sessions run, as counted last."""
        ...

    @property
    def rewinds(self) -> dict[str, Rewound]:
        """The last rewind of each session that was done here, by session id."""
        ...

    def push_screen(self, screen: Screen[Any]) -> Awaitable[object]:
        """Show a screen above the others; awaiting it waits until it is mounted."""
        ...

    async def push_screen_wait(self, screen: Screen[T]) -> T:
        """Show a dialog and return what was chosen; only in a worker."""
        ...

    def report(self, summary: str, error: BaseException | None) -> None:
        """Show a problem in a toast and keep all of it in the log file."""
        ...

    def read_first(self, session_id: str) -> None:
        """Have a session that is listed and not read yet read before all others."""
        ...

    def why_unread(self) -> str | None:
        """Return that listed sessions stay unread and the way out; None where a sync reads them."""
        ...

    @property
    def way_back(self) -> WayBack | None:
        """Where escape leads from the session in the transcript; None for the list."""
        ...

    def close_toasts(self) -> bool:
        """Close the toasts that are shown; return whether there were any."""
        ...

    def select_session(self, session_id: str) -> None:
        """Select a session in the list, where the list shows it after it is read again.

        Only while the list has the focus, or where the transcript shows the session: list and
        transcript stay on one session.
        """
        ...

    def open_session(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None, *,
        focus: bool = True, back: WayBack | None = None, hit: ShownHit | None = None,
    ) -> None:
        """Show a session in the transcript, and select it in the list.

        This is the only way to open a session. The list goes to it: what folds it away is
        opened, and a filter, folder or shelf that leaves it out is lifted with a toast.

        Args:
            session_id: The session.
            message_id: Where to place it; None for the remembered place or the end. A hidden
                message is shown.
            part_id: A part of that message to select; it is unfolded.
            focus: Give the transcript the focus.
            back: Where escape leads from it; None for the list.
            hit: The hit of a search that it is opened at.
        """
        ...

    def open_search(self, text: str | None = None) -> None:
        """Show the search screen.

        Args:
            text: What to search for; None for what was searched for last.
        """
        ...

    def open_stats(self) -> None:
        """Show the statistics screen, as it was left."""
        ...

    def open_replay(self, session_id: str, message_id: str | None = None) -> None:
        """Play a session as it happened.

        Args:
            session_id: The session.
            message_id: The message to begin at; None for the start.
        """
        ...

    def show_in_list(
        self, query: str, sessions: Callable[[], Awaitable[set[int]]], back: WayBack
    ) -> None:
        """Show the sessions of a query in the list, whatever its shelf and folder are.

        Args:
            query: As it is typed into the filter.
            sessions: Reads their rowids.
            back: Where escape leads; the list is then as it was before.
        """
        ...

    @property
    def places(self) -> Places:
        """The places that jumps have left, for going back and forth."""
        ...

    async def choose_place(self) -> None:
        """Let a mark or a label be chosen, and go there."""
        ...

    def take_keys(self, taker: KeyTaker) -> None:
        """Give the letters that are typed next to something in place of commands."""
        ...

    async def show_written(self) -> None:
        """Show what the app itself has written; returns when the panes show it."""
        ...

    async def sync_now(self, targets: Sequence[str]) -> None:
        """Sync some sources once, by path or URL; gives up after a while."""
        ...

    def let_picture_go(self) -> None:
        """Show what is drawn, where the picture of the last screen still stays."""
        ...


class EveryScreen(Host, Protocol):
    """The app, as the commands that work on every screen know it."""

    @property
    def screen(self) -> Screen[Any]:
        """The screen on top."""
        ...

    def show_palette(self) -> None:
        """List every command that can be run here."""
        ...

    def show_help(self) -> None:
        """Show the keys that work where the focus is."""
        ...

    def toggle_masks(self) -> None:
        """Mask what is shown of sessions, or show it as it is."""
        ...

    def switch_theme(self) -> None:
        """Switch between the dark and the light theme."""
        ...

    def redraw(self) -> None:
        """Draw the whole screen anew."""
        ...

    async def save_picture(self) -> None:
        """Save what the screen shows as a picture and as text."""
        ...

    async def undo(self) -> None:
        """Undo the last change of the store."""
        ...

    async def redo(self) -> None:
        """Redo what was undone last."""
        ...

    def quit(self) -> None:
        """End the app."""
        ...


def host_of(widget: Widget) -> Host:
    """Return the host of a widget or screen."""
    return cast("Host", widget.app)


def cannot_write(owner: Widget) -> str | None:
    """Return why no verb can be done to this store, None where they can."""
    return host_of(owner).library.no_change


def cannot_keep(owner: Widget) -> str | None:
    """Return why no mark, search or place is kept for the next run, None where they are."""
    return host_of(owner).library.limits.read_only


def cannot_save(owner: Widget) -> str | None:
    """Return why no file can be written, None where one can."""
    return host_of(owner).library.limits.no_files


def cannot_run(owner: Widget) -> str | None:
    """Return why no other program can be started, such as a pager; None where one can."""
    return host_of(owner).library.limits.no_programs
