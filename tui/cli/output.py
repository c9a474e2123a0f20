"""Text for a terminal or a pipe: colour where it is wanted, harmless everywhere."""

from __future__ import annotations

import io
import os
import shutil
import sys
from datetime import datetime
from typing import Any, TextIO

from store.neutral import neutral
from tui import figures

_STYLES = {
    "bold": "1", "faint": "2", "italic": "3", "user": "34", "assistant": "36", "tool": "33",
    "reasoning": "35", "ok": "32", "error": "31", "fork": "35", "title": "1", "added": "32",
    "removed": "31", "rule": "2",
}  # fmt: skip


class UsageError(Exception):
    """Arguments that do not go together; the command ends with 2."""


def prepare_streams() -> None:
    """Make pipes UTF-8, and terminals show what their encoding lacks as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def silence_streams() -> None:
    """Let nothing more be written, so that the end of the program does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def wants_colour(stream: TextIO) -> bool:
    """Return whether text to a stream is coloured: a terminal, unless ``NO_COLOR`` is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Printer:
    """Writes text that came from sessions.

    Attributes:
        colour: Whether it is coloured.
        width: Columns of the terminal; None for a pipe, where nothing is cut.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to a stream, by default stdout."""
        self.stream = stream or sys.stdout
        self.colour = wants_colour(self.stream)
        is_terminal = self.stream.isatty()
        self.width = shutil.get_terminal_size().columns if is_terminal else None

    def paint(self, text: str, *styles: str) -> str:
        """Return text, made harmless, in one or more styles."""
        text = neutral(text)
        if not self.colour or not styles or not text:
            return text
        codes = ";".join(_STYLES[style] for style in styles)
        return "\n".join(f"\x1b[{codes}m{line}\x1b[0m" for line in text.split("\n"))

    def line(self, *painted: str) -> None:
        """Write a line of pieces that ``paint`` made."""
        self.stream.write("".join(painted) + "\n")


def note(text: str) -> None:
    """Write a remark to stderr, so that it stays out of what is piped on."""
    print(neutral(text), file=sys.stderr)


def print_json(value: Any) -> None:
    """Write a value as one line of JSON."""
    from store.exports.encoding import encode_for_output

    sys.stdout.write(encode_for_output(value) + "\n")


def local_time(milliseconds: Any, pattern: str = "%Y-%m-%d %H:%M") -> str:
    """Return an epoch ms as local time; what is no time stays as it is."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime(pattern)
    except (OverflowError, ValueError, OSError, TypeError):
        return str(milliseconds)


def home_path(path: str | None) -> str:
    """Return a path with ``~`` for the home folder; empty where there is none."""
    return figures.home_path(path) if path else ""
