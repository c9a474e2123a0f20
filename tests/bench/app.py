"""Starts the app, and the floor beside it, on a terminal of the bench."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.terminal import Terminal, clean_environment

HELLO = b"hello, world"
DOWN, UP, PAGE_DOWN, END, ENTER = b"\x1b[B", b"\x1b[A", b"\x1b[6~", b"G", b"\r"
TO_LIST, TO_TOP = b"1", b"g"
QUIT, HELP, ESCAPE = b"\x11", b"?", b"\x1b"
HELP_SHOWN = b"esc"
SETTLED_S = 0.7
HELLO_COMMAND = [sys.executable, "-m", "tests.bench.hello"]
STARTED = "import sys; from tui.__main__ import main; sys.exit(main())"


def command(store: Path) -> list[str]:
    """Return the command line that the installed ``backscroll`` comes to."""
    return [sys.executable, "-c", STARTED, "--store", str(store)]


@contextlib.contextmanager
def running(store: Path, *ready: str, poll_ms: int | None = None) -> Iterator[Terminal]:
    """Run the app on a store until it has come to rest.

    Args:
        store: The store's file.
        ready: Texts that come while it starts, the last of them among the last.
        poll_ms: Set in the config; None leaves the default.
    """
    with (
        clean_environment(poll_ms=poll_ms) as environment,
        Terminal(command(store), environment) as terminal,
    ):
        for text in ready:
            terminal.until(text.encode())
        terminal.quiet(SETTLED_S)
        yield terminal


@contextlib.contextmanager
def hello() -> Iterator[Terminal]:
    """Run the least app."""
    with (
        clean_environment() as environment,
        Terminal(HELLO_COMMAND, environment) as terminal,
    ):
        terminal.until(HELLO)
        yield terminal
