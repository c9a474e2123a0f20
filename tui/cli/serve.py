"""Show the browser in a web page.

Prints a link that works once. Only this machine can open it, unless --listen names another
address. A page can do what you can do at the terminal, except start other programs; with
--read-only it changes nothing and writes no file. It needs the extra: pip install
'backscroll[serve]'.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os

from store.errors import Refused
from store.system.programs import CommandLine

EXAMPLES = (
    ("backscroll serve --open", "your library, in your web browser"),
    ("backscroll serve --read-only ~/backup/.claude", "an agent's folder, to look at"),
    ("backscroll serve --port 8765", "on a port that an SSH tunnel can name"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "target", nargs="?", metavar="TARGET",
        help="a store, source or folder, as for backscroll itself (default: your library)")
    parser.add_argument("--demo", action="store_true", help="serve the demo")
    parser.add_argument("--read-only", action="store_true", help="change nothing, write no file")
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="the port (default: a free one)")
    parser.add_argument(
        "--listen", default="127.0.0.1", metavar="ADDRESS",
        help="the address to listen on (default: 127.0.0.1, which only this machine reaches)")
    parser.add_argument(
        "--open", action="store_true", help="open the link in your web browser")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; name one from 0 to 65535")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes.

    Raises:
        Refused: The extra is not installed, or what is named cannot be opened or listened on.
    """
    missing = [name for name in ("aiohttp", "textual_serve")
               if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(f"The package `{missing[0].replace('_', '-')}` is missing. Install it:"
                      " pip install 'backscroll[serve]'")
    from store.config import quick_config
    from tui.serve.server import Served
    from tui.start.startup import refusal

    settings = quick_config()
    reason = None if options.demo else refusal(
        options.target, options.store or settings.store,
        makes=not (options.read_only or settings.read_only))
    if reason is not None:
        raise Refused(reason)

    async def serve() -> None:
        await Served(
            page_line(options), options.listen, options.port, opens=options.open).run()

    asyncio.run(serve())
    return 0


def page_line(options: argparse.Namespace) -> CommandLine:
    """Return the command line of the process behind a page."""
    line = CommandLine.python("tui.serve.page")
    for name, wanted in (("--demo", options.demo), ("--read-only", options.read_only)):
        line = line.flag(name) if wanted else line
    # The page inherits the environment: a URL from there, with its password, is no argument.
    if options.store is not None and options.store != os.environ.get("BACKSCROLL_STORE"):
        line = line.option("--store", options.store)
    return line if options.target is None else line.operand(options.target)
