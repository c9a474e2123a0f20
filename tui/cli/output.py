"""Text for a terminal or a pipe: colour where it is wanted, harmless everywhere."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime
from typing import Any, TextIO

from store.system.streams import Painted, joined, paint, status
from store.text.neutral import neutral
from tui.kit import figures

_STYLES = {
    "bold": "1", "faint": "2", "italic": "3", "user": "34", "assistant": "36", "tool": "33",
    "reasoning": "35", "ok": "32", "error": "31", "fork": "35", "title": "1", "added": "32",
    "removed": "31", "rule": "2",
}  # fmt: skip

NAME_HELP = "its id, its id at the agent, or the start of one"
"""How a session or message is named on the command line."""


class UsageError(Exception):
    """Arguments that do not go together; the command ends with 2."""


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

    def paint(self, text: str, *styles: str) -> Painted:
        """Return text, made harmless, in one or more styles."""
        return paint(text, ";".join(_STYLES[style] for style in styles) if self.colour else "")

    def lines(self, text: str, *styles: str) -> list[Painted]:
        """Return the lines of a text, each painted."""
        return [self.paint(line, *styles) for line in neutral(text).split("\n")]

    def line(self, *painted: Painted) -> None:
        """Write a line of pieces that ``paint`` made."""
        self.stream.write(joined([*painted, "\n"]))

    def status(self, text: str) -> None:
        """Replace the line on which the cursor is, and stay on it; for terminals only."""
        self.stream.write(status(text))
        self.stream.flush()


def note(text: str) -> None:
    """Write a remark to stderr, so that it stays out of what is piped on."""
    print(text, file=sys.stderr)


def print_json(value: Any) -> None:
    """Write a value as one line of JSON."""
    from store.text.exact_json import encode_for_output

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
