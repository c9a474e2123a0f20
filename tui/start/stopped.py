"""Stops the program on ctrl+z, and restores the terminal when it continues.

Textual leaves the terminal from within the handler of ``SIGTSTP``. A signal comes between any
two steps of the main thread, also while that holds the lock of the queue to the terminal,
which leaving needs: it would wait for itself for ever. So the event loop stops the program,
between two of its steps. A loop that does not come to it in time, as while a pager has the
terminal, has the program stopped as it is.

Textual also starts the terminal anew after such a stop alone. A process that is stopped by
``SIGSTOP``, which no program hears, goes on with the same signal; Textual would then start
its threads a second time beside the first, and never end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from functools import partial
from types import FrameType
from typing import Any

from textual.app import App

PATIENCE_S = 0.5
"""Seconds that the event loop has to leave the terminal before the program is stopped."""


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
    asked, waits = os.pipe(), os.pipe()
    os.set_blocking(asked[0], False)
    heard = False

    def in_order() -> None:
        nonlocal heard
        if _taken(asked[0]):
            heard = True
            stop(signal.SIGTSTP, None)

    def stopped(number: int, frame: FrameType | None) -> None:
        # Nothing here may wait for a lock that the interrupted step holds.
        os.write(asked[1], b".")
        os.write(waits[1], b".")
        with contextlib.suppress(RuntimeError):
            # A loop that is closed is about to end.
            loop.call_soon_threadsafe(in_order)

    def continued(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        if heard:
            heard = False
            go_on(number, frame)
            # Textual draws what has changed; another program has drawn over the rest.
            loop.call_soon_threadsafe(partial(app.refresh, layout=True))
        else:
            loop.call_soon_threadsafe(_start_anew, app)

    def impatient() -> None:
        while os.read(waits[0], 1):
            time.sleep(PATIENCE_S)
            if _taken(asked[0]):
                os.kill(os.getpid(), signal.SIGSTOP)

    threading.Thread(target=impatient, name="stopped", daemon=True).start()
    signal.signal(signal.SIGTSTP, stopped)
    signal.signal(signal.SIGCONT, continued)


def _taken(pipe: int) -> bool:
    """Take what was asked, unless another thread has taken it."""
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return False


def _start_anew(app: App[Any]) -> None:
    with app.suspend():
        pass
