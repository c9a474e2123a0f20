"""Calls something once after a pause, however short the pause and however busy the machine is.

A timer of Textual whose time is over before its task looks at the clock for the first time never
fires: it skips calls that it missed, here the only one. Whoever waits for the call waits forever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.dom import DOMNode


class Later:
    """A call that is due."""

    def __init__(self, node: DOMNode, seconds: float, callback: Callable[[], object]) -> None:
        """Call something after a pause.

        Args:
            node: Nothing is called once it is gone; it takes an error of the call.
            seconds: The pause.
            callback: Is called; it awaits nothing.
        """
        self._node, self._callback = node, callback
        self._due = asyncio.get_running_loop().call_later(seconds, self._call)

    def stop(self) -> None:
        """Do not call it any more."""
        self._due.cancel()

    def _call(self) -> None:
        if not (self._node.is_running and self._node.is_attached):
            return
        try:
            self._callback()
        except Exception as error:
            self._node.call_later(_raise, error)


def _raise(error: Exception) -> None:
    raise error
