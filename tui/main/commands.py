"""Commands that work wherever the focus is; the main screen does them."""

from __future__ import annotations

from typing import Any

from tui.keys.declaration import Command
from tui.verbs.doing import cannot_write


def _has_session(screen: Any) -> str | None:
    return None if screen.session_meant() else "No session is selected"


APP_COMMANDS: tuple[Command, ...] = (
    Command(
        "app.next-pane", ("tab",), "next pane", "Go to the next pane", "app", group="Panes",
    ),
    Command(
        "app.previous-pane", ("shift+tab",), "previous pane", "Go to the previous pane", "app",
        group="Panes",
    ),
    Command(
        "app.sessions", ("1",), "sessions", "Go to the session list", "app", group="Panes",
    ),
    Command(
        "app.transcript", ("2",), "transcript", "Go to the transcript", "app", group="Panes",
    ),
    Command(
        "app.inspector", ("3",), "inspector", "Go to the inspector", "app", group="Panes",
    ),
    Command(
        "app.zoom", ("z",), "zoom", "Give the focused pane the whole screen, and back", "app",
        footer=80, group="Panes",
    ),
    Command(
        "app.hide", ("\\", "f6"), "hide", "Hide the session list or the inspector, and "
        "show it again", "app", group="Panes",
    ),
    Command(
        "app.narrower", ("<", "f7"), "narrower", "Make the focused pane narrower", "app",
        group="Panes",
    ),
    Command(
        "app.wider", (">", "f8"), "wider", "Make the focused pane wider", "app", group="Panes",
    ),
    Command(
        "app.palette", ("ctrl+p",), "palette", "Find any command by its name", "app",
        footer=95,
    ),
    Command(
        "app.help", ("?", "f1"), "keys", "Show all keys of the focused pane", "app",
    ),
    Command(
        "app.theme", ("f9",), "theme", "Go between the dark and the light theme", "app",
    ),
    Command(
        "app.undo", ("U",), "undo", "Take back the newest fork, rewind, archive, rename, star, "
        "tag or label of this store", "app", available=cannot_write, footer=75, group="Verbs",
    ),
    Command(
        "app.redo", ("ctrl+r",), "redo", "Do again what was undone last", "app",
        available=cannot_write, group="Verbs",
    ),
    Command(
        "app.continue", ("C",), "continue", "Go on with the session in its agent", "app",
        available=_has_session, footer=35, group="Verbs",
    ),
    Command("app.back", ("escape",), "back", "Go back one step", "app"),
    Command("app.quit", ("q", "ctrl+q"), "quit", "Quit; the place is remembered", "app", footer=90),
)
