"""Commands of the screen that shares a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_save
from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands

if TYPE_CHECKING:
    from tui.share.screen import ShareScreen

_command = CommandFactory["ShareScreen"]("share")

SHARE_COMMANDS: tuple[Command[ShareScreen], ...] = (
    *line_commands(_command),
    _command("change", ("enter",), "change", "Change the choice on the line", "Change",
             lambda screen: screen.change(1), footer=10, meaning="open"),
    _command("right", ("right", "l"), "next", "Next value of the choice on the line", "Change",
             lambda screen: screen.change(1)),
    _command("left", ("left", "h"), "previous", "Previous value of the choice on the line",
             "Change", lambda screen: screen.change(-1)),
    _command("masks", ("!",), "masks", "List what is masked, and let some of it through",
             "Read", lambda screen: screen.list_masks(), footer=20, meaning="masks"),
    _command("write", ("w",), "write", "Write the file", "Copy",
             lambda screen: screen.write(), footer=5, available=cannot_save, meaning="save"),
    _command("copy", ("y",), "copy", "Copy what goes out as text", "Copy",
             lambda screen: screen.copy(), footer=30),
    *screen_commands(_command, "the sharing"),
)
