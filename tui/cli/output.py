"""Output for a terminal or a pipe: neutralised text, in colour on a terminal."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from store.system.paths import expanded
from store.system.streams import Painted, joined, paint, status
from store.text import figures
from store.text.neutral import neutral

_STYLES = {
    "bold": "1", "faint": "2", "italic": "3", "user": "34", "assistant": "36", "tool": "33",
    "reasoning": "35", "ok": "32", "error": "31", "fork": "35", "title": "1", "added": "32",
    "removed": "31", "rule": "2", "match": "1;7",
}  # fmt: skip

NAME_HELP = "its id, its id at the agent, or the start of one"
"""Help text for arguments that name a session or message."""


class UsageError(Exception):
    """Invalid arguments; the exit code is 2."""


STREAM = "-"
"""Standard output or input, where a command names a file."""


def named_path(text: str) -> str:
    """Return an argument that names a file or folder, for a command that takes no stream.

    Raises:
        argparse.ArgumentTypeError: It is ``-``.
    """
    if text == STREAM:
        raise argparse.ArgumentTypeError(
            "- means standard input or output, but this needs a name; "
            "for a file named -, write ./-")
    return text


@contextlib.contextmanager
def file_or_stdin(name: str) -> Iterator[tuple[Path, str]]:
    """Yield the path of a file that an argument names, and what messages call it.

    For ``-`` that is a copy of standard input.
    """
    if name != STREAM:
        path = expanded(name)
        yield path, home_path(str(path))
        return
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="backscroll-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name), "stdin"


def wants_colour(stream: TextIO) -> bool:
    """Return whether a stream gets colour: if it is a terminal and ``NO_COLOR`` is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Printer:
    """Writes neutralised text to a stream.

    Attributes:
        colour: Whether text is coloured.
        width: Columns of the terminal; None for a pipe, where lines are not cut.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to a stream, by default stdout."""
        self.stream = stream or sys.stdout
        self.colour = wants_colour(self.stream)
        is_terminal = self.stream.isatty()
        self.width = shutil.get_terminal_size().columns if is_terminal else None

    def paint(self, text: str, *styles: str) -> Painted:
        """Return neutralised text in one or more styles."""
        return paint(text, ";".join(_STYLES[style] for style in styles) if self.colour else "")

    def lines(self, text: str, *styles: str) -> list[Painted]:
        """Return the lines of a text, each painted."""
        return [self.paint(line, *styles) for line in neutral(text).split("\n")]

    def line(self, *painted: Painted) -> None:
        """Write a line of pieces from ``paint``."""
        self.stream.write(joined([*painted, "\n"]))

    def status(self, text: str) -> None:
        """Replace the cursor's line and stay on it; for terminals only."""
        self.stream.write(status(text))
        self.stream.flush()


def note(text: str) -> None:
    """Write a remark to stderr, so that it is not part of piped output."""
    print(text, file=sys.stderr)


def print_json(value: Any) -> None:
    """Write a value as one line of JSON."""
    from store.text.exact_json import encode_for_output

    sys.stdout.write(encode_for_output(value) + "\n")


def as_text(argument: str) -> str:
    """Return an argument that is a text, not the name of a file.

    Raises:
        UnicodeEncodeError: It has bytes that are not UTF-8; the command line reports it.
    """
    argument.encode()
    return argument


def local_time(milliseconds: Any, pattern: str = "%Y-%m-%d %H:%M") -> str:
    """Return epoch ms as local time; an invalid value is returned as text."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime(pattern)
    except (OverflowError, ValueError, OSError, TypeError):
        return str(milliseconds)


def home_path(path: str | None) -> str:
    """Return a path with ``~`` for the home folder; "" without a path."""
    return figures.home_path(path) if path else ""
