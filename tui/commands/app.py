"""Commands that work wherever the focus is; the main screen does them."""

from __future__ import annotations

from tui.commands.declaration import Command

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
    Command("app.back", ("escape",), "back", "Go back one step", "app"),
    Command("app.quit", ("q", "ctrl+q"), "quit", "Quit; the place is remembered", "app", footer=90),
)
