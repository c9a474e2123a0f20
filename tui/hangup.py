"""Ends the program when its terminal goes away.

A terminal that closes says so to the session of processes that it controls. A program in a
session of its own (``setsid``, ``runuser``, some containers), or one that ignores the signal,
hears nothing: it would read an ended input for ever.
"""

from __future__ import annotations

import os
import select
import threading

EXIT_CODE = 128 + 1
"""What a shell reports of a program that a hangup ended."""


def end_with_terminal(descriptor: int) -> None:
    """End this process once a terminal is hung up; costs nothing until then.

    Args:
        descriptor: Of the terminal.
    """
    if hasattr(select, "poll"):
        arguments = (descriptor,)
        threading.Thread(target=_wait, args=arguments, name="hangup", daemon=True).start()


def _wait(descriptor: int) -> None:
    watched = select.poll()
    # A hangup is told of whatever was asked for.
    watched.register(descriptor, 0)
    if any(events & select.POLLHUP for _, events in watched.poll()):
        os._exit(EXIT_CODE)
