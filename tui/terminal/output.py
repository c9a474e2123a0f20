"""What is sent to the terminal next: what is to be said at once, then rows that changed.

A frame never waits in a queue. It changes the cells, and what is sent is taken from them when
the terminal has taken what was sent before. So a terminal behind a slow line shows fewer
frames, and the newest of them.

How far a terminal has come is asked with the question whether it draws frames at once, which
Textual asks at the start: those that answer it answer it behind all that came before. Systems do
not say it: behind a pseudoterminal are buffers, and a line, that take everything.
"""

from __future__ import annotations

import re
from collections import deque

from store.system.records import NamedTuple
from tui.terminal.cells import Cells

FRAME_START, FRAME_END = "\x1b[?2026h", "\x1b[?2026l"
QUESTION = "\x1b[?2026$p"
_SCREEN_ON, _SCREEN_OFF = "\x1b[?1049h", "\x1b[?1049l"
_IS_FRAME = re.compile(r"\x1b\[\d+;\d+H").match
LEAST_AHEAD, FIRST_AHEAD, MOST_AHEAD = 1_000, 8_000, 8_000
"""Bytes that are sent ahead of what the terminal has taken. A pseudoterminal holds 12,000 and
more: so there is room for what gives the terminal back, though nobody reads."""
SLOW_S, QUICK_S = 0.3, 0.1
"""An answer after so long halves what is sent ahead, one before doubles it."""
PATIENCE_S = 1.0
"""An answer that has not come by then is given up, the next one after twice as long."""


class Held(NamedTuple):
    """Until when no frame is sent.

    Attributes:
        until: On the clock of ``Output.answered``, at the latest.
        rows: When these are drawn as they are shown; empty waits for ``until``.
        start: The first column in which they are compared.
    """

    until: float
    rows: range = range(0)
    start: int = 0


class Output:
    """Takes what Textual writes, and gives pieces to send.

    Attributes:
        is_on: Whether frames are sent: while the terminal shows its second screen.
        ahead: Bytes that may be sent ahead of what the terminal has taken.
        stale: Whether the terminal may have lost what it showed, as at a new size. Set from
            anywhere, a handler of a signal too.
    """

    def __init__(self, *, erases: bool = True) -> None:
        """Start with nothing to send.

        Args:
            erases: Whether the terminal erases with the colour that is selected.
        """
        self._erases = erases
        self._cells = Cells(0, 0)
        self._first: deque[str] = deque()
        self.is_on = self.stale = False
        self._in_frames = self._answers = False
        self.ahead = FIRST_AHEAD
        self._sent = self._taken = 0
        self._asked: tuple[int, float] | None = None
        self._patience = PATIENCE_S
        self._held: Held | None = None

    def write(self, data: str, size: tuple[int, int]) -> None:
        """Take what Textual writes.

        Args:
            data: A frame, or something else that is said once.
            size: Columns and rows of the screen.
        """
        if data in (FRAME_START, FRAME_END):
            self._in_frames = True
        elif _IS_FRAME(data):
            if not self.is_on:
                return
            if (self._cells.width, self._cells.height) != size:
                self._cells = Cells(*size, erases=self._erases)
            self._cells.draw(data)
            if self._held and self._held.rows and self._cells.are_shown(
                    self._held.rows, self._held.start):
                self.let_go()
        else:
            self._say(data)

    def shows(self, picture: str, size: tuple[int, int]) -> None:
        """Take what the terminal shows already.

        Args:
            picture: As it was written.
            size: Columns and rows of the screen.
        """
        self.is_on = True
        self._cells = Cells(*size, erases=self._erases)
        self._cells.draw(picture)
        self._cells.know()

    def hold(self, held: Held) -> None:
        """Send no frame for now, as what is shown is drawn again bit by bit."""
        self._held = held

    def let_go(self) -> None:
        """Send frames again."""
        self._held = None

    @property
    def cells(self) -> Cells:
        """What the terminal should show."""
        return self._cells

    def _say(self, data: str) -> None:
        if _SCREEN_OFF in data:
            self.is_on = False
            data = self._cells.reset() + data
        elif _SCREEN_ON in data:
            self.is_on = True
            self._cells.forget()
        self._first.append(data)

    def answered(self, now: float) -> bool:
        """Take an answer of the terminal.

        Returns:
            Whether it is one to a question from here.
        """
        self._answers = True
        if self._asked is None:
            return False
        (sent, at), self._asked = self._asked, None
        self._taken, self._patience = sent, PATIENCE_S
        if now - at > SLOW_S:
            self.ahead = max(LEAST_AHEAD, self.ahead // 2)
        elif now - at < QUICK_S:
            self.ahead = min(MOST_AHEAD, self.ahead * 2)
        return True

    def next(self, now: float) -> str:
        """Return what to send now; "" for nothing.

        Args:
            now: On the clock of ``answered``.
        """
        if self._first:
            said = "".join(self._first)
            self._first.clear()
            return said
        if self.stale:
            self.stale = False
            self._cells.forget()
            self.let_go()
        if self._held and now >= self._held.until:
            self.let_go()
        if not self.is_on or self._held or not self._cells.is_changed or not (
                room := self._room(now)):
            return ""
        sent = self._cells.take(room)
        if not sent:
            return ""
        if self._in_frames:
            sent = f"{FRAME_START}{sent}{FRAME_END}"
        self._sent += len(sent.encode())
        if self._answers and self._asked is None and self._sent - self._taken > self.ahead // 2:
            self._asked = self._sent, now
            sent += QUESTION
        return sent

    def waits_until(self) -> float | None:
        """Return when an answer is given up, or frames are sent again; None for neither."""
        if not self._cells.is_changed:
            return None
        waits = [self._held.until] if self._held else []
        if self._asked is not None:
            waits.append(self._asked[1] + self._patience)
        return min(waits, default=None)

    def _room(self, now: float) -> int:
        """Return how many bytes may be sent, 0 while the terminal has to come first."""
        if self._asked is not None and now >= self._asked[1] + self._patience:
            # Not every terminal answers each time.
            self._taken, self._asked = self._asked[0], None
            self._patience *= 2
            self.ahead = LEAST_AHEAD
        if not self._answers or self._asked is None:
            return self.ahead
        return max(0, self.ahead - (self._sent - self._taken))
