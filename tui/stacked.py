"""Screens above the main one; most have a head, a view of lines, and the keys of their scope."""

from __future__ import annotations

from textual.app import ComposeResult

from store.errors import BackscrollError
from tui.host import Host, host_of
from tui.keys.footer import BottomLine, show_keys
from tui.keys.pane import CommandPane
from tui.kit.blocks import Fixed
from tui.kit.closing import ClosingScreen
from tui.kit.glyphs import glyphs
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import Line


class TroubleBar(LineBar):
    """Says above everything else that what is shown may be old."""

    DEFAULT_CSS = "TroubleBar { dock: top; }"


class UpperScreen(CommandPane, ClosingScreen[None]):
    """The base of every screen above the main one, whatever it shows."""

    @property
    def host(self) -> Host:
        """The app, as rooms know it."""
        return host_of(self)

    def show_trouble(self, words: str) -> None:
        """Show above the screen why what it shows may be old; see ``ShowsTrouble``.

        Args:
            words: Such as "server cannot be reached"; empty where all is well.
        """
        bar = next(iter(self.query(TroubleBar)), None)
        if not words:
            if bar is not None:
                bar.remove()
            return
        if bar is None:
            bar = TroubleBar(ground="raised")
            self.mount(bar)
        bar.show(Line([(f"{glyphs().failed} {words}", "error bold")]))

    def open_in_transcript(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None
    ) -> None:
        """Close, and show a session.

        Args:
            session_id: The session.
            message_id: Where to place it.
            part_id: The part to select.
        """
        host = self.host
        self.dismiss()
        host.open_session(session_id, message_id, part_id)

    def close(self) -> None:
        """Go back to the screen below."""
        self.dismiss()

    def show_help(self) -> None:
        """Show the keys."""
        from tui.dialogs.help import HelpScreen

        self.host.push_screen(HelpScreen((self.SCOPE, "app"), self.host.commands))


class StackedScreen(UpperScreen):
    """The base of tree, comparison and details: they fill the view and add commands."""

    AUTO_FOCUS = "LineView"
    view: LineView
    DEFAULT_CSS = """
    StackedScreen { background: $background; }
    StackedScreen > #stacked-title, StackedScreen > #stacked-head { width: 1fr; }
    StackedScreen LineView { height: 1fr; background: $background; }
    """

    def __init__(self, view: LineView | None = None) -> None:
        """Make the screen.

        Args:
            view: Shows the lines; an empty one where None.
        """
        super().__init__()
        self.view = view or LineView(ground="background")

    def compose(self) -> ComposeResult:
        """Compose head, view and keys."""
        yield LineBar(id="stacked-title", ground="raised")
        yield LineBar(id="stacked-head", ground="background")
        yield self.view
        yield BottomLine()

    @property
    def has_parts(self) -> bool:
        """Whether there is anything to draw into: a screen that closes loses its parts first."""
        return self.is_attached and bool(self.query("#stacked-title"))

    def tell(self, words: str) -> None:
        """Show a sentence instead of the lines."""
        self.view.show([Fixed(lambda _: [Line(((words, "faint"),))])])

    def tell_unread(self, what: str, error: Exception) -> None:
        """Show that something could not be read.

        Args:
            what: Such as ``the file``.
            error: Why; what the user cannot mend is reported, too.
        """
        if isinstance(error, BackscrollError):
            self.tell(str(error))
        else:
            self.tell(f"{what} could not be read")
            self.host.report(f"{what[:1].upper()}{what[1:]} could not be read", error)

    def on_line_view_cursor_moved(self, message: LineView.CursorMoved) -> None:
        """Show the keys that can be used on this line."""
        show_keys(self)
