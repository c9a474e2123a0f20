"""The process behind a web page: one browser, which ends with the page.

textual-serve's ``AppService`` starts a shell command and has no way to end one that hangs. Of it
only the packets and the messages are used here; the process is started without a shell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from store.system.children import child_environment
from store.system.programs import CommandLine, start_piped, stop_piped
from store.text.neutral import neutral

END_PATIENCE_S = 6.0
"""Seconds that a browser has to save its place and end; then it is killed."""
MOST_ERRORS = 8_192
"""Bytes of a process's errors that are kept, the last ones."""
COLUMNS, ROWS = (20, 500), (5, 200)
"""Smallest and largest size of a page's terminal."""
_PREFIX = b"__GANGLION__\n"
_OF_A_TERMINAL = frozenset({
    "COLORFGBG", "COLUMNS", "LINES", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "STY",
    "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "VTE_VERSION",
})  # fmt: skip
"""Variables that say something of the terminal that the server runs in, not of the page."""


def page_environment(width: int, height: int) -> dict[str, str]:
    """Return the variables of a process for a page.

    Args:
        width: Of the page's terminal, in cells.
        height: Of the page's terminal.
    """
    kept = {name: value for name, value in child_environment().items()
            if name not in _OF_A_TERMINAL}
    return kept | {
        "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
        "TEXTUAL_COLOR_SYSTEM": "truecolor", "TERM": "xterm-256color", "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8", "COLUMNS": str(width), "ROWS": str(height),
    }  # fmt: skip


def bounded_size(width: int, height: int) -> tuple[int, int]:
    """Return a size of a terminal that a page may have."""
    return (min(max(width, COLUMNS[0]), COLUMNS[1]), min(max(height, ROWS[0]), ROWS[1]))


class Browsing(AppService):
    """Runs the process of a page.

    Attributes:
        errors: The last bytes of what the process printed on standard error.
    """

    def __init__(
        self, line: CommandLine, *, write: Callable[[bytes], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """Name the process; ``start`` starts it.

        Args:
            line: Runs ``tui.serve.page``.
            write: Sends what the terminal is to draw to the page.
            close: Closes the page's connection.
        """
        async def nothing(text: str) -> None:
            """A page is sent no messages but what its terminal draws."""

        super().__init__(
            line.program, write_bytes=write, write_str=nothing, close=close,
            download_manager=DownloadManager())
        self._line = line
        self._child: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._page_gone = False
        self.errors = b""

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """The process's standard input."""
        assert self._child is not None and self._child.stdin is not None
        return self._child.stdin

    @property
    def pid(self) -> int | None:
        """The process's id; None before it is started."""
        return None if self._child is None else self._child.pid

    async def start(self, width: int, height: int) -> None:
        """Start the process.

        Args:
            width: Of the page's terminal, in cells.
            height: Of the page's terminal.
        """
        self._child = await start_piped(
            self._line, environment=page_environment(width, height), limit=1 << 16)
        self._readers = [
            asyncio.create_task(self.run()), asyncio.create_task(self._read_errors())]

    async def run(self) -> None:
        """Pass on what the process draws, and close the page when it has ended."""
        assert self._child is not None and self._child.stdout is not None
        output = self._child.stdout
        try:
            await output.readuntil(_PREFIX)
            while True:
                kind, size = await output.readexactly(1), await output.readexactly(4)
                content = await output.readexactly(int.from_bytes(size, "big"))
                if kind == b"D" and not self._page_gone:
                    await self._draw(content)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._child.wait()
            await self._tell_errors()
            await self.remote_close()

    async def _draw(self, content: bytes) -> None:
        try:
            await self.remote_write_bytes(content)
        except ConnectionError:
            # The process is read on, so that it can end.
            self._page_gone = True

    async def _read_errors(self) -> None:
        assert self._child is not None and self._child.stderr is not None
        while chunk := await self._child.stderr.read(4096):
            self.errors = (self.errors + chunk)[-MOST_ERRORS:]

    async def _tell_errors(self) -> None:
        """Show in the page why a process ended that could not start or failed."""
        assert self._child is not None
        if self._child.returncode and not self._page_gone:
            await asyncio.wait(self._readers[1:], timeout=END_PATIENCE_S)
            words = neutral(self.errors.decode("utf-8", "replace").strip())
            await self._draw(b"\x1b[?1049l\x1b[2J\x1b[H" + words.replace("\n", "\r\n").encode())

    async def stop(self) -> None:
        """End the process, in order where it does so in time, and wait for it."""
        child = self._child
        if child is None:
            return
        self._page_gone = True
        if child.returncode is None:
            await stop_piped(child, END_PATIENCE_S)
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
