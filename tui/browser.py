"""The browser as a program: what its arguments ask for, and its run from start to end.

Whatever the first rows do not need is not imported before they are shown.
"""

from __future__ import annotations

import gc
import os
import sys

from store.system.records import record
from store.system.streams import silence_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.config import Settings
    from tui.start.early import EarlyTerminal
    from tui.start.wanted import Place

OPTIONS = ("--demo", "--help", "--read-only", "--store", "--version")


@record
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
                request.problem = "--store needs a path or a URL"
                return request
            request.store = value if equals else waiting.pop(0)
        elif argument == "--":
            waiting = ["./" + rest if rest.startswith("-") or _is_command(rest) else rest
                       for rest in waiting]
        elif argument.startswith("-"):
            request.problem = _unknown_word(request.target) or _unknown_option(argument)
            return request
        elif request.target is None and _is_command(argument):
            return None
        elif request.target is None:
            request.target = argument
        else:
            unknown = _unknown_word(request.target)
            request.problem = unknown if unknown and unknown.endswith("?") else (
                f"one target at a time, not also {argument!r}"
                + (f"; and {unknown}" if unknown else ""))
            return request
    return request


def _is_command(argument: str) -> bool:
    """Return whether a first argument is no target; behind ``--`` it is a file of that name."""
    from tui.words.commands import COMMAND_NAMES  # Most starts name none.

    return argument in COMMAND_NAMES or argument in ("help", "version")


def _unknown_word(target: str | None) -> str | None:
    """Return that what was taken for a target is no command, where it can be nothing else."""
    from tui.words.commands import no_command

    return None if target is None or os.path.lexists(target) else no_command(target)


def _unknown_option(argument: str) -> str:
    """Return that there is no such option, and the option or command that may be meant."""
    from store.text.likeness import nearest
    from tui.words.commands import COMMAND_NAMES

    named = argument.partition("=")[0]
    near = nearest(named.lstrip("-"), (*COMMAND_NAMES, *(one.lstrip("-") for one in OPTIONS)))
    near = f"--{near}" if f"--{near}" in OPTIONS else near
    return f"unknown option {argument}; did you mean {near}?" if near else (
        f"unknown option {argument}")


def browse(request: Request, *, in_page: bool = False) -> int:
    """Run the browser until it ends.

    Args:
        request: What it shows.
        in_page: Whether it is shown in a web page.

    Returns:
        The exit code.
    """
    gc.disable()
    from tui.start.early import EarlyTerminal
    from tui.start.hangup import end_in_order

    terminal = EarlyTerminal(end_in_order(sys.stdin.fileno()))
    named = request.store or os.environ.get("BACKSCROLL_STORE") or None
    others = (in_page, request.target, request.demo, request.read_only, request.place)
    try:
        if not any(others):
            terminal.show_last(named)
        return _run(request, terminal, named, in_page=in_page, keeps_screen=not any(others))
    finally:
        terminal.close()


def _run(
    request: Request, terminal: EarlyTerminal, store: str | None, *, in_page: bool,
    keeps_screen: bool,
) -> int:
    """Run the browser on its terminal, and return the exit code.

    Args:
        request: What it shows.
        terminal: It may show the picture of the last screen.
        store: The store that is named outside the config.
        in_page: Whether it is shown in a web page.
        keeps_screen: Whether the picture of the screen is kept at the end.
    """
    from store.errors import BackscrollError
    from tui.start.lock_notes import lock_notes
    from tui.start.startup import open_library
    from tui.state.limits import limits_of

    given = _given_settings()
    store = store or (given.store if given is not None else None)
    limits = limits_of(
        option=request.read_only, setting=given is not None and given.read_only, in_page=in_page)
    try:
        with lock_notes((request.target, store)):
            library = open_library(request.target, store, demo=request.demo, limits=limits)
    except BackscrollError as error:
        terminal.close()
        print(f"backscroll: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        terminal.close()
        from tui.start.problems import of_file

        print(f"backscroll: {of_file(error)}", file=sys.stderr)
        return 1
    from store.activity.judgement import leave_to_watcher
    from tui.state.view_state import remembered_state

    leave_to_watcher(library.database.place)
    state = remembered_state(library.database.place, given.ui if given is not None else None)
    begun = None
    if not in_page:
        from tui.start.begin import begin

        begun = begin(library, given, state, terminal)
    if begun is None:
        terminal.close()
    terminal.watch.start()
    from tui.start.frame_rate import set_frame_rate
    from tui.start.lighter import import_asyncio

    import_asyncio()
    set_frame_rate()
    from store.config import Settings
    from tui.app import BackscrollApp

    settings = given or Settings()
    app = BackscrollApp(library, settings, state=state, begun=begun)
    app.keeps_screen = keeps_screen
    app.first_place = request.place
    terminal.watch.app = app
    app.run(mouse=settings.ui.mouse)
    terminal.close()
    if app.failure:
        print(f"backscroll: {app.failure}", file=sys.stderr)
    # A terminal that has gone away takes nothing; exiting would fail with a code of its own.
    silence_streams()
    return app.return_code or 0


def _given_settings() -> Settings | None:
    """Return the settings of the config; None where there is no file, so all have their default.

    Most people have none, and their first rows do not wait for the declarations.
    """
    from store.system.locations import config_file

    if not os.path.lexists(config_file()):
        return None
    from store.config import quick_config

    return quick_config()
