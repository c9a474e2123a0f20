"""Commands of a file at its points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_save, cannot_write
from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands

if TYPE_CHECKING:
    from tui.files.screen import FileScreen


def _has_file(screen: FileScreen) -> str | None:
    return None if screen.file is not None else "The file is still being read"


def _has_call(screen: FileScreen) -> str | None:
    return None if screen.fork_message() is not None else "No call belongs to this point"


def _can_fork(screen: FileScreen) -> str | None:
    return _has_call(screen) or screen.no_fork() or cannot_write(screen)


def _can_save(screen: FileScreen) -> str | None:
    point = screen.point
    if point is None or point.content.body is None:
        return "What was in the file at this point is not known, or there was none"
    return cannot_save(screen)


_command = CommandFactory["FileScreen"]("file")

FILE_COMMANDS: tuple[Command[FileScreen], ...] = (
    *line_commands(_command),
    _command("open", ("enter",), "the call",
             "Go to the call or checkpoint of the line in the transcript", "Read",
             lambda screen: screen.follow(), footer=10, available=_has_call),
    _command("earlier", ("left", "h"), "earlier", "The file at the point before", "Move",
             lambda screen: screen.step(-1), footer=20, meaning="left",
             available=lambda screen: screen.no_step(-1)),
    _command("later", ("right", "l"), "later", "The file at the next point", "Move",
             lambda screen: screen.step(1), footer=21, meaning="right",
             available=lambda screen: screen.no_step(1)),
    _command("previous-file", ("[", "ctrl+up"), "previous file", "The file before in the list",
             "Move", lambda screen: screen.go_to_file(-1), meaning="previous-section",
             available=lambda screen: screen.no_file(-1)),
    _command("next-file", ("]", "ctrl+down"), "next file", "The next file in the list", "Move",
             lambda screen: screen.go_to_file(1), footer=25, meaning="next-section",
             available=lambda screen: screen.no_file(1)),
    _command("compare", ("D",), "compare from here",
             "Compare any two points: from this one to those that you go to; again to end it",
             "Read", lambda screen: screen.compare_from_here(), footer=35, meaning="compare",
             available=_has_file),
    _command("view", ("V",), "view",
             "View: what the point changed, the whole text, how the disk differs", "Read",
             lambda screen: screen.next_view(), footer=30, available=_has_file),
    _command("save", ("w",), "save a copy", "Save the file as it was to another file", "Copy",
             lambda screen: screen.save(), footer=40, available=_can_save),
    _command("copy", ("y",), "copy path", "Copy the path", "Copy",
             lambda screen: screen.copy_path(), footer=50, available=_has_file),
    _command("fork", ("f",), "fork", "Fork the session at this point, or before the checkpoint",
             "Change", lambda screen: screen.fork(), footer=45, available=_can_fork),
    *screen_commands(_command, "the file"),
)
