"""A screen above the main one: head, a view of lines, the keys of its scope."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen

from tui.host import Host, host_of
from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine, Hint
from tui.keys.pane import CommandPane
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView


class StackedScreen(CommandPane, Screen[None]):
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
    def host(self) -> Host:
        """The app, as rooms know it."""
        return host_of(self)

    def show_hints(self) -> None:
        """Fill the line of keys."""
        table = self.host.commands
        hints = [
            Hint(command.id, keys[0], command.label)
            for command in table.footer(self.SCOPE)
            if (keys := table.keys_of(command)) and self.offers(command)
        ]
        line = self.query_one(BottomLine)
        help_id = f"{self.SCOPE}.help"
        line.last = next((hint for hint in hints if hint.command == help_id), None)
        line.hints = tuple(hint for hint in hints if hint.command != help_id)

    def offers(self, command: AnyCommand) -> bool:
        """Return whether the line of keys shows a command; a screen with tabs overrides it."""
        return True

    @on(BottomLine.Pressed)
    def _hint_pressed(self, event: BottomLine.Pressed) -> None:
        event.stop()
        self.request_command(event.command)

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
        from tui.keys.help import HelpScreen

        self.host.push_screen(HelpScreen(self.SCOPE, self.host.commands))
