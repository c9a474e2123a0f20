"""Finds when a page is on the screen, by drawing what the terminal gets."""

from __future__ import annotations

import time

import pyte

from tests.bench.terminal import COLUMNS, LINES, PATIENCE_S, Terminal

TRANSCRIPT = slice(40, COLUMNS - 2)
BODY = slice(3, LINES - 2)
CHANGED_ROWS = 4
"""So many rows of the transcript differ once it shows another page."""


class PageWatch:
    """Draws the frames of a terminal, each after its time of arrival was taken."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._drawn = 0
        self._draw()

    def _draw(self) -> None:
        for _, data in self._terminal.log[self._drawn :]:
            self._stream.feed(data)
        self._drawn = len(self._terminal.log)

    def _body(self) -> list[str]:
        return [row[TRANSCRIPT] for row in self._screen.display[BODY]]

    def turn(self, key: bytes) -> float:
        """Press a key that turns a page; return the seconds to its whole frame.

        Raises:
            RuntimeError: The page did not change.
        """
        terminal = self._terminal
        self._draw()
        before = self._body()
        pressed = terminal.send(key)
        deadline, frames = pressed + PATIENCE_S, terminal.frames
        while time.perf_counter() < deadline:
            if not terminal.pump(0.05) or terminal.frames == frames:
                continue
            frames = terminal.frames
            self._draw()
            if _differs(before, self._body()):
                return terminal.log[-1][0] - pressed
        raise RuntimeError(f"{key!r} did not change the page")


def _differs(before: list[str], after: list[str]) -> bool:
    return sum(a != b for a, b in zip(before, after, strict=True)) >= CHANGED_ROWS
