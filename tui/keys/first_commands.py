"""The commands that the first screen shows in its last line; all others are loaded later."""

from __future__ import annotations

from tui.keys.declaration import AnyCommand
from tui.main.commands import APP_COMMANDS, MAIN_COMMANDS
from tui.sessions.commands import SESSION_COMMANDS

FIRST_COMMANDS: tuple[AnyCommand, ...] = (*APP_COMMANDS, *MAIN_COMMANDS, *SESSION_COMMANDS)
