"""The terminal before Textual has it: it shows the first frame, and keeps what is typed.

Keys that come meanwhile stay in the terminal's own buffer, not echoed, and are read in their
order by Textual.
"""

from __future__ import annotations

import os
import sys

from store.system.streams import picture
from tui.start.hangup import Watch
from tui.state.last_screen import LastScreen, last_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Mapping
else:
    import _signal as signal  # See tui.start.hangup.

KNOWN_TERMINALS = (
    "xterm", "screen", "tmux", "rxvt", "alacritty", "kitty", "foot", "wezterm", "ghostty", "vte",
    "konsole", "iterm", "contour", "st",
)
"""What ``TERM`` begins with for terminals that have an alternate screen."""
_CHANGES_THE_PICTURE = ("NO_COLOR", "COLUMNS", "LINES")
"""Variables with which Textual draws in other colours, or for another size."""


class EarlyTerminal:
    """Shows a picture in the alternate screen, and gives the terminal back where need be.

    Attributes:
        watch: Ends the program in order; it knows the modes that the terminal had.
        drawn: What was written.
        last: The picture of the last screen, where there is one for this.
        held: The picture stays until Textual draws the same in these rows.
        held_from: The first column in which they are compared.
        is_shown: Whether the picture is there and Textual has not taken over.
        size: Columns and lines that the picture is drawn for.
        is_resized: Whether the terminal has had another size since.
        is_to_stop: Whether the program was told to stop meanwhile, as by ctrl+z elsewhere; it
            does once it can leave the terminal in order.
    """

    def __init__(self, watch: Watch) -> None:
        """Take the terminal of a watch."""
        self.watch, self.drawn = watch, ""
        self.last: LastScreen | None = None
        self.held, self.held_from = range(0), 0
        self.size = (0, 0)
        self.is_shown = self.is_to_stop = self.is_resized = False

    def show_last(self, store: str | None) -> None:
        """Show the picture of the last screen, if there is one that is right.

        Args:
            store: Path of the store's file; None for the library.
        """
        size = size_of_terminal(os.environ)
        if size is None:
            return
        self.last = last_screen(store, size, os.environ)
        if self.last is not None and self.last.is_current:
            self.show(self.last.whole(), size)

    def show(self, rows: Iterable[Iterable[str]], size: tuple[int, int]) -> None:
        """Show a picture; from now on keys are kept, and not echoed.

        Args:
            rows: See ``store.system.streams.picture``.
            size: Columns and lines that they are drawn for.
        """
        self.drawn, self.size = picture(rows), size
        self.is_shown = self.watch.restores = True
        signal.signal(signal.SIGTSTP, self._stop_later)  # Textual's driver takes it over.
        signal.signal(signal.SIGWINCH, self._resized)  # Likewise.
        _keep_keys(self.watch.descriptor)
        sys.stderr.write(self.drawn)
        sys.stderr.flush()

    def _stop_later(self, number: int, frame: object) -> None:
        self.is_to_stop = True

    def _resized(self, number: int, frame: object) -> None:
        self.is_resized = True

    def taken_over(self) -> None:
        """Leave the terminal to Textual, which gives it back from now on."""
        self.is_shown = self.watch.restores = False

    def close(self) -> None:
        """Give the terminal back, unless Textual has taken it over."""
        if self.is_shown:
            self.taken_over()
            self.watch.restore()


def size_of_terminal(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return columns and lines; None where the first frame would not be what Textual draws.

    Args:
        environment: The process's variables.
    """
    if any(name in _CHANGES_THE_PICTURE or name.startswith("TEXTUAL") for name in environment):
        return None
    if not environment.get("TERM", "").startswith(KNOWN_TERMINALS):
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return None


def _keep_keys(descriptor: int) -> None:
    """Set the modes that Textual's driver sets: no echo, no lines, no signals of keys."""
    import termios

    modes = termios.tcgetattr(descriptor)
    modes[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
    modes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    modes[6][termios.VMIN] = 1
    termios.tcsetattr(descriptor, termios.TCSANOW, modes)
