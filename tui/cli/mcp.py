"""Serve your sessions to coding agents over the Model Context Protocol, on stdin and stdout.

The tools are search, sessions and show: they read, page by page, and change nothing. Keys, tokens
and passwords are masked. It needs the extra: pip install 'backscroll[mcp]'.

What it finds is what the library has: `backscroll sync`, or an open browser, brings it up to date.
"""

from __future__ import annotations

import argparse
import errno
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from store.config import load_config
from store.engine.opening import as_path
from store.errors import Refused
from store.sharing.settings import checked_masking
from store.system.locations import library_path
from store.system.streams import NAMES, SafeStream

EXAMPLES = (
    ("claude mcp add backscroll -- backscroll mcp", "for Claude Code"),
    ("codex mcp add backscroll -- backscroll mcp", "for Codex"),
    ("gemini mcp add backscroll backscroll mcp", "for Gemini CLI"),
)


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""


def run(options: argparse.Namespace) -> int:
    """Serve until stdin ends.

    Raises:
        Refused: The extra is not installed, or a person started it.
    """
    if importlib.util.find_spec("mcp") is None:
        raise Refused("The package `mcp` is missing. Install it: pip install 'backscroll[mcp]'")
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise Refused(
            "`backscroll mcp` is started by a coding agent, which speaks to it through pipes."
            " `backscroll mcp --help` says how to add it to yours.")
    from tui.mcp.library import Library
    from tui.mcp.server import make_server

    # A URL stays one.
    target = (as_path(options.store) or options.store) if options.store else library_path()
    with protocol_output():
        config = load_config()
        library = Library(target, helpers=config.ui.helpers, masking=checked_masking(config))
        make_server(library).run("stdio")
    return 0


@contextmanager
def protocol_output() -> Iterator[None]:
    """Make ``sys.stdout`` the plain stream for a while, for a protocol between programs.

    Raises:
        OSError: Standard output is a terminal.
    """
    guarded = sys.stdout
    if guarded.isatty():
        raise OSError(errno.EINVAL, "is a terminal", NAMES["stdout"])
    if isinstance(guarded, SafeStream):
        sys.stdout = guarded.raw()
    try:
        yield
    finally:
        sys.stdout = guarded
