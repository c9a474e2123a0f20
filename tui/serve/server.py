"""Serves the browser until it is stopped: the port, the links, the signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from html import escape
from pathlib import Path
from threading import Thread

from aiohttp import web
from aiohttp.http import HttpProcessingError

from store.errors import Refused
from store.system.locations import private_folder, scratch_dir
from store.system.programs import CommandLine, open_page
from tui.serve.gate import Gate, is_any, is_loopback
from tui.serve.web import Web
from tui.start.problems import keep, reason

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
SHUTDOWN_S = 8.0
"""Seconds that open pages have to end when the server is stopped."""
IDLE_S = 20.0
"""Seconds that a connection may go without a whole request; a page's terminal is none of these."""
MOST_CONNECTIONS = 128
"""Connections at a time; they come before anybody is let in, and each takes a descriptor."""


class Served:
    """A server that runs; prints its links on standard output.

    Attributes:
        web: What it answers.
    """

    def __init__(self, line: CommandLine, address: str, port: int, *, opens: bool = False) -> None:
        """Name what is served and where.

        Args:
            line: Starts the process of a page.
            address: What is listened on.
            port: The port; 0 takes a free one.
            opens: Open the link in the desktop's web browser.
        """
        self._address, self._port, self._opens = address, port, opens
        self.web = Web(Gate(), line, address, told=_tell)
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal comes.

        Raises:
            Refused: The address or port cannot be listened on.
        """
        async with answering(self.web, self._port):
            await self._until_stopped()

    async def _until_stopped(self) -> None:
        loop = asyncio.get_running_loop()
        for name in SIGNALS:
            with contextlib.suppress(AttributeError, NotImplementedError):
                loop.add_signal_handler(getattr(signal, name), self._stopped.set)
        if not is_loopback(self._address):
            _tell(
                f"warning: {self._address} can be reached from other machines, and the connection"
                " is not encrypted: whoever can read it can use this browser too. An SSH tunnel"
                " to the default address is safer.")
        url = self._print_link()
        asks = sys.stdin.isatty()
        hint = "Press Enter for another link, Ctrl+C to stop." if asks else "Ctrl+C stops it."
        print(f"The link works once, for one web browser. {hint}", flush=True)
        if asks:
            with contextlib.suppress(NotImplementedError):
                loop.add_reader(sys.stdin.fileno(), self._asked)
        with self._opened(url) if self._opens else contextlib.nullcontext():
            await self._stopped.wait()

    def _print_link(self) -> str:
        url = self.web.new_link()
        print(url, flush=True)
        return url

    def _asked(self) -> None:
        """Print another link for each Enter; without further input, ask no more."""
        if sys.stdin.readline():
            self._print_link()
        else:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    @contextlib.contextmanager
    def _opened(self, url: str) -> Iterator[None]:
        """Open a link in the desktop's web browser.

        It is handed over in a private file: the arguments of a program can be read by every user of
        the machine. Without a desktop nothing is opened: a text browser would take the terminal.
        """
        if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
            _tell("there is no desktop here; open the link yourself")
            yield
            return
        path = private_folder(scratch_dir() / "serve") / f"link-{os.getpid()}.html"
        path.unlink(missing_ok=True)
        self.web.used = partial(path.unlink, missing_ok=True)
        try:
            write_link(path, url)
            # Some ways to open it last as long as the web browser does.
            Thread(target=open_page, args=(path,), daemon=True).start()
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def answering(pages: Web, port: int = 0) -> AsyncIterator[None]:
    """Answer requests while the context lasts; then every page is closed.

    Args:
        pages: What is answered; its port is set.
        port: The port; 0 takes a free one.

    Raises:
        Refused: The address or port cannot be listened on.
    """
    logger = logging.Logger("serve", logging.ERROR)
    logger.addHandler(_Failures(pages.told))
    runner = web.AppRunner(
        pages.application(), access_log=None, logger=logger, handle_signals=False,
        shutdown_timeout=SHUTDOWN_S, keepalive_timeout=IDLE_S)
    await runner.setup()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        listening = _listening(pages.listened, port)
        bound, pages.port = listening.getsockname()[:2]
        pages.listened = bound if is_any(bound) else pages.listened  # 0 and the like.
        server = await asyncio.get_running_loop().create_server(
            partial(_connection, runner), sock=listening)
        stack.callback(server.close)
        yield


def _connection(runner: web.AppRunner) -> asyncio.BaseProtocol:
    """Return what answers a new connection."""
    assert runner.server is not None
    full = len(runner.server.connections) >= MOST_CONNECTIONS
    return _Full() if full else runner.server()


class _Full(asyncio.Protocol):
    """Closes a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it at once."""
        transport.close()


class _Failures(logging.Handler):
    """Tells of failures of the server itself; a malformed request, which anybody can send, is none.

    aiohttp would print each with its traceback.
    """

    def __init__(self, told: Callable[[str], None]) -> None:
        """Make the handler.

        Args:
            told: Takes one line for each; its traceback goes to the log.
        """
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        """Tell of one."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None or isinstance(error, HttpProcessingError):
            return
        log = keep("A request to backscroll serve failed", error)
        self._told(f"this should not happen: {reason(error)}"
                   + (f". Details are in {log}" if log else ""))


def _tell(words: str) -> None:
    print(f"backscroll: {words}", file=sys.stderr, flush=True)


def _listening(address: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Args:
        address: An address of this machine, or a name that has one.
        port: The port; 0 takes a free one.

    Raises:
        Refused: There is no such address, or the port is taken.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except UnicodeError as error:
        raise Refused(f"cannot listen on {address}: it is no name of a machine") from error
    except OSError as error:
        raise Refused(f"cannot listen on {address}: {error.strerror or error}") from error
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(64)
    except OSError as error:
        made.close()
        raise Refused(
            f"cannot listen on {address} port {port}: {error.strerror or error}") from error
    return made


def write_link(path: Path, url: str) -> None:
    """Write a private page that leads to a link."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"
                   f'<meta http-equiv=refresh content="0;url={escape(url)}">')
