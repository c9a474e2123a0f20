"""The one way to the clipboard: tmux, a clipboard program, OSC 52, or a private file.

The way depends on where the app runs, and a toast names it. A terminal never answers an
OSC 52 write, so the toast says "sent" then, not "copied". A file is written only where none of
the others can work. From a web page it is the page that gets the text: the clipboards of the
machine that serves it belong to somebody else.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import Refused
from store.system.programs import CommandLine, find, run
from store.text.neutral import neutral

if TYPE_CHECKING:
    from tui.host import Terminal

MOST_OSC52 = 74_000
"""Bytes beyond which terminals drop an OSC 52 write (100 kB of base64 in the strictest)."""

MOST_IN_PAGE = 7_000_000
"""Bytes beyond which the terminal of a web page drops an OSC 52 write (10 MB of base64)."""
TMUX_SECONDS = 5.0
FILE_SHOWN_S = 10.0
"""The toast that names a file stays this long."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of a text.

    Attributes:
        way: ``tmux``, ``terminal``, ``system``, ``file``, or ``none`` where it was not copied.
        message: What was done, for a toast.
        path: The file that holds the text, if one was written.
    """

    way: str
    message: str
    path: Path | None = None


def amount(text: str, name: str = "") -> str:
    """Return how much a text is, in words, after its name where it has one."""
    count = len(text)
    size = f"{count:,} character" if count == 1 else f"{count:,} characters"
    return f"{name} ({size})" if name else size


def takes_osc52(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal may know OSC 52: some are known to ignore it.

    Those are the Linux console, GNU screen, macOS's own Terminal, and GNOME's, which have their
    variables set where the app runs beside them.
    """
    kind = environment.get("TERM", "")
    if kind in ("dumb", "linux") or environment.get("STY"):
        return False
    return environment.get("TERM_PROGRAM") != "Apple_Terminal" and not environment.get(
        "VTE_VERSION")


@dataclass(slots=True)
class Clipboard:
    """Copies text by the first way that works here.

    Attributes:
        write_terminal: Writes an OSC 52 sequence for a text to the terminal.
        environment: The variables that show where the app runs.
        system: Gives a text to the desktop's clipboard; raises when it cannot.
        folder: Where private files go; the temporary folder by default.
        in_page: Whether the terminal is a web page.
    """

    write_terminal: Callable[[str], None]
    environment: Mapping[str, str]
    system: Callable[[str], None]
    folder: Path | None = None
    in_page: bool = False

    def copy(self, text: str, name: str = "") -> Copied:
        """Copy a text, made harmless; blocking, so run it in a thread.

        Args:
            text: Any text.
            name: What it is, for the message.
        """
        text = neutral(text)
        words = amount(text, name)
        if self.in_page:
            return self._to_page(text, words)
        remote = any(self.environment.get(each) for each in ("SSH_CONNECTION", "SSH_TTY"))
        desktop = any(self.environment.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))
        ways = [self._to_tmux, self._to_terminal]
        if not remote or desktop:
            # On a Mac the desktop's clipboard is the one that pastes everywhere, tmux or not.
            at = 0 if sys.platform == "darwin" and not remote else 1
            ways.insert(at, self._to_system)
        for way in ways:
            copied = way(text, words)
            if copied is not None:
                return copied
        return self._to_file(text, words)

    def _to_page(self, text: str, words: str) -> Copied:
        if len(text.encode()) > MOST_IN_PAGE:
            return Copied("none", f"{words}: too much for the clipboard of a web page")
        self.write_terminal(text)
        return Copied("terminal", f"sent {words} to the clipboard of the web page")

    def _to_tmux(self, text: str, words: str) -> Copied | None:
        if not self.environment.get("TMUX") or find("tmux", self.environment) is None:
            return None
        # -w hands it on to the outer terminal whatever set-clipboard is (tmux 3.2).
        for extra, target in ((["-w"], "tmux clipboard"), ([], "tmux buffer (prefix ] pastes it)")):
            try:
                done = run(
                    CommandLine.of("tmux", "load-buffer", *extra, "-"), given=text.encode(),
                    environment=self.environment, timeout_s=TMUX_SECONDS,
                )
            except (Refused, TimeoutError):
                return None
            if done.code == 0:
                return Copied("tmux", f"copied {words} to the {target}")
        return None

    def _to_terminal(self, text: str, words: str) -> Copied | None:
        if len(text.encode()) > MOST_OSC52 or not takes_osc52(self.environment):
            return None
        self.write_terminal(text)
        return Copied("terminal", f"sent {words} to the terminal's clipboard (OSC 52)")

    def _to_system(self, text: str, words: str) -> Copied | None:
        try:
            self.system(text)
        except Exception:  # any failure of a clipboard program means: take the next way
            return None
        return Copied("system", f"copied {words} to the clipboard")

    def _to_file(self, text: str, words: str) -> Copied:
        handle, name = tempfile.mkstemp(prefix="backscroll-copy-", suffix=".txt", dir=self.folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        known = takes_osc52(self.environment)
        why = "too much for the terminal" if known else "no clipboard here"
        return Copied("file", f"{why}: wrote {words} to {name}", Path(name))


def _to_desktop(text: str) -> None:
    # Imported late: it takes 20 ms, and looks for clipboard programs.
    import pyperclip  # type: ignore[import-untyped]

    pyperclip.copy(text)


async def copy(terminal: Terminal, text: str, name: str = "") -> Copied:
    """Copy a text from the app and toast where it went.

    Args:
        terminal: The running app.
        text: Any text; it is made harmless.
        name: What it is, for the toast, such as ``the command``.
    """
    loop = asyncio.get_running_loop()

    def write_terminal(shown: str) -> None:
        loop.call_soon_threadsafe(terminal.copy_to_clipboard, shown)

    clipboard = Clipboard(
        write_terminal, dict(os.environ), _to_desktop, in_page=terminal.is_web)
    copied = await asyncio.to_thread(clipboard.copy, text, name)
    message = copied.message[0].upper() + copied.message[1:]
    failed = copied.way in ("file", "none")
    terminal.notify(
        message, severity="warning" if failed else "information",
        timeout=FILE_SHOWN_S if failed else None, markup=False,
    )
    return copied
