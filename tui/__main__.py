"""The command ``backscroll``: the browser, or one of the commands of ``tui.cli``.

Whatever a command line does not need is not imported: the browser shows its first rows
before the slow half of its libraries is loaded.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from store.system.streams import guard_streams
from tui.kit.glyphs import ascii_only
from tui.start.wanted import BrowserWanted, Place
from tui.words.commands import COMMAND_NAMES

USAGE = 2
OPTIONS = ("--demo", "--help", "--read-only", "--store", "--version")
NO_TERMINALS = ("", "dumb", "unknown")
"""Values of ``TERM`` of terminals that cannot move the cursor."""


@dataclass(slots=True)
class Request:
    """What the browser is asked to show.

    Attributes:
        target: A file, folder or URL; None for the library.
        store: The store that ``--store`` names.
        read_only: Whether ``--read-only`` was given.
        problem: Why the arguments make no sense, or None.
        place: What is opened first; None for what was open last.
    """

    target: str | None = None
    store: str | None = None
    demo: bool = False
    read_only: bool = False
    problem: str | None = None
    place: Place | None = None


def browser_request(arguments: Sequence[str]) -> Request | None:
    """Read the arguments of the browser.

    Returns:
        None where they are for the command line (a command's name, ``--help``...).
    """
    request = Request()
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument in ("-h", "--help", "--version"):
            return None
        if argument == "--demo":
            request.demo = True
        elif argument == "--read-only":
            request.read_only = True
        elif argument == "--store" or argument.startswith("--store="):
            _, equals, value = argument.partition("=")
            if not equals and not waiting:
                request.problem = "--store needs a path"
                return request
            request.store = value if equals else waiting.pop(0)
        elif argument == "--":
            waiting = ["./" + rest if rest.startswith("-") else rest for rest in waiting]
        elif argument.startswith("-"):
            request.problem = _unknown_option(argument)
            return request
        elif request.target is None and argument in (*COMMAND_NAMES, "help", "version"):
            return None
        elif request.target is None:
            request.target = argument
        else:
            request.problem = f"one target at a time, not also {argument!r}"
            return request
    return request


def _unknown_option(argument: str) -> str:
    """Return that there is no such option, and the option or command that may be meant."""
    from store.text.likeness import nearest

    named = argument.partition("=")[0]
    near = nearest(named.lstrip("-"), (*COMMAND_NAMES, *(one.lstrip("-") for one in OPTIONS)))
    near = f"--{near}" if f"--{near}" in OPTIONS else near
    return f"unknown option {argument}; did you mean {near}?" if near else (
        f"unknown option {argument}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the browser or a command.

    Args:
        arguments: What follows the program's name; the process's by default.

    Returns:
        The exit code: 0, 1 (refused or not found), 2 (usage).
    """
    guard_streams(ascii_only)
    given = list(sys.argv[1:] if arguments is None else arguments)
    request = browser_request(given)
    if request is None:
        from tui.cli import main as run_command

        try:
            return int(run_command(given))
        except BrowserWanted as wanted:
            return _on_terminal(Request(store=wanted.store, place=wanted.place))
    if request.problem is not None:
        print(f"backscroll: {request.problem}; see backscroll --help", file=sys.stderr)
        return USAGE
    return _on_terminal(request)


def _on_terminal(request: Request) -> int:
    """Run the browser, or say why the terminal cannot show it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _without_terminal(request)
    if os.environ.get("TERM", "") in NO_TERMINALS and os.name != "nt":
        print(f"backscroll: {_no_terminal()}", file=sys.stderr)
        return USAGE
    if not sys.stderr.isatty():
        print("backscroll: the browser draws on standard error; do not redirect it")
        return USAGE
    return browse(request)


def _no_terminal() -> str:
    """Return why the browser cannot draw on this terminal, and the way out."""
    name = os.environ.get("TERM")
    said = f"TERM is {name}" if name else "TERM is not set"
    return (
        f"{said}, and the browser needs a terminal that it can draw on; set TERM, for example"
        " to xterm-256color, or use the commands in backscroll --help"
    )


def _without_terminal(request: Request) -> int:
    """Say why what is named could not be opened in any case, else that a terminal is needed."""
    from tui.start.startup import refusal

    reason = None if request.demo else refusal(request.target, request.store)
    if reason is not None:
        print(f"backscroll: {reason}", file=sys.stderr)
        return 1
    print("backscroll: the browser needs a terminal; see backscroll --help", file=sys.stderr)
    return USAGE


def browse(request: Request, *, in_page: bool = False) -> int:
    """Run the browser until it ends.

    Args:
        request: What it shows.
        in_page: Whether it is shown in a web page.

    Returns:
        The exit code.
    """
    gc.disable()
    from store.config import quick_config
    from store.errors import BackscrollError
    from tui.start.startup import open_library
    from tui.state.limits import limits_of

    settings = quick_config()
    store = request.store or os.environ.get("BACKSCROLL_STORE") or settings.store
    limits = limits_of(option=request.read_only, setting=settings.read_only, in_page=in_page)
    try:
        library = open_library(request.target, store, demo=request.demo, limits=limits)
    except BackscrollError as error:
        print(f"backscroll: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        from tui.cli import of_file

        print(f"backscroll: {of_file(error)}", file=sys.stderr)
        return 1
    from tui.app import BackscrollApp
    from tui.start.hangup import end_in_order

    app = BackscrollApp(library, settings, rows_first=True)
    app.first_place = request.place
    end_in_order(app, sys.stdin.fileno())
    app.run(mouse=settings.ui.mouse)
    if app.failure:
        print(f"backscroll: {app.failure}", file=sys.stderr)
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main())
