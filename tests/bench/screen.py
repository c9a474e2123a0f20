"""Finds when a page was on the screen, by drawing afterwards what the terminal got."""

from __future__ import annotations

import pyte

from tests.bench.terminal import COLUMNS, FRAME_END, LINES, Terminal

TRANSCRIPT = slice(40, COLUMNS - 2)
BODY = slice(3, LINES - 2)
CHANGED_ROWS = 4
"""So many rows of the transcript differ once it shows another page."""
ANSWER_S = 0.3


def times_of_pages(terminal: Terminal, key: bytes, presses: int, pause_s: float) -> list[float]:
    """Press a key that turns a page, and return how long each took to the whole frame.

    Raises:
        RuntimeError: A key changed nothing.
    """
    marks = []
    for _ in range(presses):
        marks.append(terminal.send(key))
        terminal.until_frame()
        terminal.rest(pause_s)
    terminal.rest(ANSWER_S)
    return _times(terminal.log, marks)


def _times(log: list[tuple[float, bytes]], marks: list[float]) -> list[float]:
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    waiting = list(marks)
    pressed: float | None = None
    before: list[str] = []
    times: list[float] = []
    for arrived, data in log:
        while waiting and arrived >= waiting[0]:
            if pressed is not None:
                raise RuntimeError(f"page {len(times) + 1} was not on the screen before the next")
            pressed, before = waiting.pop(0), _body(screen)
        # A chunk may hold the end of a frame and the start of the next one.
        for piece in data.split(FRAME_END)[:-1]:
            stream.feed(piece + FRAME_END)
            if pressed is not None and _differs(before, _body(screen)):
                times.append(arrived - pressed)
                pressed = None
        stream.feed(data.split(FRAME_END)[-1])
    if pressed is not None:
        raise RuntimeError("the last page was not on the screen")
    return times


def _body(screen: pyte.Screen) -> list[str]:
    return [row[TRANSCRIPT] for row in screen.display[BODY]]


def _differs(before: list[str], after: list[str]) -> bool:
    return sum(a != b for a, b in zip(before, after, strict=True)) >= CHANGED_ROWS

