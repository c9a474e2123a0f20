"""Starts the terminal anew when the program goes on after others have stopped it.

Textual does so for a stop that it began itself (Ctrl+Z). A process that is stopped by
``SIGSTOP``, which no program hears, goes on with the same signal; Textual would then start
its threads a second time beside the first, and never end.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType
from typing import Any

from textual.app import App


def start_anew_when_continued(app: App[Any]) -> None:
    """Leave the terminal and take it again at each such signal.

    Args:
        app: Running, in the main thread; nothing is done for one without a terminal.
    """
    if not hasattr(signal, "SIGCONT") or threading.current_thread() != threading.main_thread():
        return
    stop, go_on = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
    if not callable(stop) or not callable(go_on):
        return
    loop = asyncio.get_running_loop()
    heard = False

    def stopped(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = True
        stop(number, frame)

    def continued(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        if heard:
            heard = False
            go_on(number, frame)
        else:
            loop.call_soon_threadsafe(_start_anew, app)

    signal.signal(signal.SIGTSTP, stopped)
    signal.signal(signal.SIGCONT, continued)


def _start_anew(app: App[Any]) -> None:
    with app.suspend():
        pass
