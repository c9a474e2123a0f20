"""The command ``backscroll``: the browser, or one of the commands of ``tui.cli``.

Whatever a command line does not need is not imported: the browser shows its first rows
before the slow half of its libraries is loaded.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui.browser import Request

USAGE = 2
NO_TERMINALS = ("", "dumb", "unknown")
"""Values of ``TERM`` of terminals that cannot move the cursor."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the browser or a command.

    Args:
        arguments: What follows the program's name; the process's by default.

    Returns:
        The exit code: 0, 1 (refused or not found), 2 (usage).
    """
    gc.disable()  # Until the browser is on the screen: what modules make is kept anyway.
    from store.system.streams import guard_streams
    from tui.browser import Request, browser_request

    guard_streams(_ascii_only)
    given = list(sys.argv[1:] if arguments is None else arguments)
    request = browser_request(given)
    if request is None:
        gc.enable()
        from tui.cli import main as run_command
        from tui.start.wanted import BrowserWanted

        try:
            return int(run_command(given))
        except BrowserWanted as wanted:
            return _on_terminal(Request(store=wanted.store, place=wanted.place))
    if request.problem is not None:
        more = "" if request.problem.endswith(("?", ".")) else "; see backscroll --help"
        print(f"backscroll: {request.problem}{more}", file=sys.stderr)
        return USAGE
    return _on_terminal(request)


def _ascii_only(text: str) -> str:
    """Return text for a terminal without Unicode; others need none of it at the start."""
    from tui.kit.glyphs import ascii_only

    return ascii_only(text)


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
    from tui.browser import browse

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


if __name__ == "__main__":
    sys.exit(main())
