"""Commands that work in every pane; the main screen runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_write
from tui.keys.declaration import Command, CommandFactory

if TYPE_CHECKING:
    from tui.main.screen import MainScreen


def _has_session(screen: MainScreen) -> str | None:
    return None if screen.session_meant() else "No session is selected"


_command = CommandFactory["MainScreen"]("app")

APP_COMMANDS: tuple[Command[MainScreen], ...] = (
    _command("next-pane", ("tab",), "next pane", "Focus the next pane", "Panes",
             run=lambda screen: screen.panes.focus_beside(1)),
    _command("previous-pane", ("shift+tab",), "previous pane", "Focus the previous pane", "Panes",
             run=lambda screen: screen.panes.focus_beside(-1)),
    _command("sessions", ("1",), "sessions", "Focus the session list", "Panes",
             run=lambda screen: screen.panes.focus("sessions")),
    _command("transcript", ("2",), "transcript", "Focus the transcript", "Panes",
             run=lambda screen: screen.panes.focus("transcript")),
    _command("inspector", ("3",), "inspector", "Focus the inspector", "Panes",
             run=lambda screen: screen.panes.focus("inspector")),
    _command("zoom", ("z",), "zoom", "Zoom the focused pane", "Panes", footer=80,
             run=lambda screen: screen.panes.toggle_zoom()),
    _command("hide", ("\\", "f6"), "hide", "Hide or show the session list or the inspector",
             "Panes", run=lambda screen: screen.panes.toggle_hidden()),
    _command("narrower", ("<", "f7"), "narrower", "Make the focused pane narrower", "Panes",
             available=lambda screen: screen.panes.why_not_wider,
             run=lambda screen: screen.panes.widen(-1)),
    _command("wider", (">", "f8"), "wider", "Make the focused pane wider", "Panes",
             available=lambda screen: screen.panes.why_not_wider,
             run=lambda screen: screen.panes.widen(1)),
    _command("search", ("S", "ctrl+f"), "search",
             "Search all sessions: what was typed, thought, run and printed", "General", footer=32,
             run=lambda screen: screen.search()),
    _command("palette", ("ctrl+p",), "palette", "Command palette", "General", footer=95,
             run=lambda screen: screen.app.action_command_palette()),
    _command("help", ("?", "f1"), "keys", "Show the keys of the focused pane", "General",
             run=lambda screen: screen.show_help()),
    _command("theme", ("f9",), "theme", "Switch between the dark and the light theme", "General",
             run=lambda screen: screen.switch_theme()),
    _command("undo", ("U",), "undo", "Undo the last change", "Change", footer=75,
             available=cannot_write, run=lambda screen: screen.undo()),
    _command("redo", ("ctrl+r",), "redo", "Redo", "Change", available=cannot_write,
             run=lambda screen: screen.redo()),
    _command("continue", ("C",), "continue", "Resume in its agent", "Change", footer=35,
             available=_has_session, run=lambda screen: screen.resume()),
    _command("place-back", ("ctrl+o", "alt+o"), "place back",
             "Go back to the place before: in this session or another", "Places",
             run=lambda screen: screen.keeper.step(-1)),
    _command("place-forward", ("alt+i", "ctrl+i"), "place forward",
             "Go forward to the place that you came back from", "Places",
             run=lambda screen: screen.keeper.step(1)),
    _command("mark", ("m",), "mark",
             "Mark the selected part, or in the list the session, with the letter typed next",
             "Places", run=lambda screen: screen.keeper.ask_mark(), available=_has_session),
    _command("marks", ("'",), "marks", "List marks and labels; a letter goes to its mark at once",
             "Places", run=lambda screen: screen.choose_place(), meaning="labels"),
    _command("back", ("escape",), "back", "Go back one step", "General",
             run=lambda screen: screen.go_back(), meaning="close"),
    _command("quit", ("q", "ctrl+q"), "quit", "Quit", "General", footer=90,
             run=lambda screen: screen.app.exit(), meaning="close"),
)
