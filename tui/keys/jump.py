"""Jump mode: each row on the screen gets a code of letters; typing it goes there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Protocol, cast

from textual.app import App

from tui.keys.dispatch import CommandApp
from tui.kit.jumping import codes


class HasApp(Protocol):
    """A pane or screen."""

    @property
    def app(self) -> App[Any]:
        """The running app."""
        ...


class HasStops(Protocol):
    """A view with rows that can be jumped to."""

    def jump_stops(self) -> Sequence[Hashable]:
        """Return what can be jumped to on the screen, from the top; each by a lasting key."""
        ...

    def show_codes(self, codes: Mapping[Any, str]) -> None:
        """Draw letters over rows.

        Args:
            codes: By what ``jump_stops`` returned; none for no letters.
        """
        ...


class JumpMode:
    """Takes letters until they name a row, or escape."""

    def __init__(self, view: HasStops, go: Callable[[Any], Awaitable[object] | None]) -> None:
        """Show the codes.

        Args:
            view: What they are drawn on.
            go: Goes to a row; given one of the view's stops.
        """
        stops = view.jump_stops()
        self._codes = dict(zip(stops, codes(len(stops)), strict=False))
        self._view, self._go, self._typed = view, go, ""
        self._show()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to jump to."""
        return not self._codes

    @property
    def asks(self) -> str:
        """What is asked for."""
        return "Jump to a letter"

    def _show(self) -> None:
        typed = len(self._typed)
        self._view.show_codes({
            stop: code[typed:] for stop, code in self._codes.items()
            if code.startswith(self._typed)
        })

    async def take(self, key: str) -> bool:
        """Take a letter; return whether the code goes on."""
        typed = self._typed[:-1] if key == "backspace" else self._typed + key.lower()
        stop = next((stop for stop, code in self._codes.items() if code == typed), None)
        if stop is not None:
            self.leave()
            result = self._go(stop)
            if isawaitable(result):
                await result
            return False
        if not any(code.startswith(typed) for code in self._codes.values()):
            return False
        self._typed = typed
        self._show()
        return True

    def leave(self) -> None:
        """Take the codes away."""
        self._view.show_codes({})


def jump_in(
    owner: HasApp, view: HasStops, go: Callable[[Any], Awaitable[object] | None]
) -> None:
    """Let a row of a view be chosen by its letters.

    Args:
        owner: The pane or screen of the view.
        view: The view.
        go: Goes to one of the view's stops.
    """
    mode = JumpMode(view, go)
    if mode.is_empty:
        owner.app.notify("Nothing to jump to", markup=False)
    else:
        cast(CommandApp, owner.app).take_keys(mode)
