"""The one way to the clipboard: tmux, OSC 52, a clipboard program, or a private file.

The way depends on where the app runs, and a toast names it. A terminal never answers an
OSC 52 write, so the toast says "sent" then, not "copied".
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

TMUX_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of a text.

    Attributes:
        way: ``tmux``, ``terminal``, ``system`` or ``file``.
        message: What was done, for a toast.
        path: The file that holds the text, if one was written.
    """

    way: str
    message: str
    path: Path | None = None


def amount(text: str) -> str:
    """Return how much a text is, in words."""
    count = len(text)
    return f"{count:,} character" if count == 1 else f"{count:,} characters"


@dataclass(slots=True)
class Clipboard:
    """Copies text by the first way that works here.

    Attributes:
        write_terminal: Writes an OSC 52 sequence for a text to the terminal.
        environment: The variables that show where the app runs.
        system: Gives a text to the desktop's clipboard; raises when it cannot.
        folder: Where private files go; the temporary folder by default.
    """

    write_terminal: Callable[[str], None]
    environment: Mapping[str, str]
    system: Callable[[str], None]
    folder: Path | None = None

    def copy(self, text: str) -> Copied:
        """Copy a text, made harmless; blocking, so run it in a thread.

        Args:
            text: Any text.
        """
        text = neutral(text)
        remote = any(self.environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY"))
        desktop = any(self.environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
        on_mac = sys.platform == "darwin" and not remote
        ways = [self._to_tmux, self._to_terminal if remote and not desktop else self._to_system]
        if on_mac:
            ways.reverse()
        for way in ways:
            copied = way(text)
            if copied is not None:
                return copied
        return self._to_file(text, told_terminal=not remote)

    def _to_tmux(self, text: str) -> Copied | None:
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
                return Copied("tmux", f"copied {amount(text)} to the {target}")
        return None

    def _to_terminal(self, text: str) -> Copied | None:
        if len(text.encode()) > MOST_OSC52:
            return None
        self.write_terminal(text)
        return Copied("terminal", f"sent {amount(text)} to the terminal's clipboard (OSC 52)")

    def _to_system(self, text: str) -> Copied | None:
        try:
            self.system(text)
        except Exception:  # any failure of a clipboard program means: take the next way
            return None
        return Copied("system", f"copied {amount(text)} to the clipboard")

    def _to_file(self, text: str, *, told_terminal: bool) -> Copied:
        sent = told_terminal and self._to_terminal(text) is not None
        handle, name = tempfile.mkstemp(prefix="backscroll-copy-", suffix=".txt", dir=self.folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        why = "too much for the terminal" if not sent else "no clipboard program"
        also = "sent to the terminal (OSC 52) and " if sent else ""
        message = f"{why}: {also}wrote {amount(text)} to {name}"
        return Copied("file", message, Path(name))


def _to_desktop(text: str) -> None:
    # Imported late: it takes 20 ms, and looks for clipboard programs.
    import pyperclip  # type: ignore[import-untyped]

    pyperclip.copy(text)


async def copy(terminal: Terminal, text: str) -> Copied:
    """Copy a text from the app and toast what was done.

    Args:
        terminal: The running app.
        text: Any text; it is made harmless.
    """
    loop = asyncio.get_running_loop()

    def write_terminal(shown: str) -> None:
        loop.call_soon_threadsafe(terminal.copy_to_clipboard, shown)

    clipboard = Clipboard(write_terminal, dict(os.environ), _to_desktop)
    copied = await asyncio.to_thread(clipboard.copy, text)
    title = "" if copied.way != "file" else "Wrote a private file"
    message = copied.message[0].upper() + copied.message[1:]
    severity = "information" if copied.way != "file" else "warning"
    terminal.notify(message, title=title, severity=severity, markup=False)  # type: ignore[arg-type]
    return copied
