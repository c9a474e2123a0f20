"""Keys that come before what they are for is there: none is lost, none does something else."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from textual import events
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

if TYPE_CHECKING:
    from tui.screens.main import MainScreen


class TypedAheadApp(App[None]):
    """Gives what is typed to whom it is meant for."""

    def __init__(self) -> None:
        """Make the app; nothing is typed yet."""
        super().__init__()
        self._main: MainScreen | None = None
        self._typed_early: list[events.Event] | None = None
        self._typed_into: WeakKeyDictionary[
            events.Key, tuple[Screen[object], Widget | None]
        ] = WeakKeyDictionary()

    async def on_event(self, event: events.Event) -> None:
        """Give keys to the filter while it is open, whatever the focus is doing.

        A terminal that takes the focus away and gives it back must not turn typed text
        into commands.
        """
        typed = isinstance(event, (events.Key, events.Paste, events.MouseEvent))
        if typed and self._typed_early is not None:
            self._typed_early.append(event)
            return
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self._hold_filter()
        if isinstance(event, events.Key):
            if not event.is_forwarded:
                self._typed_into[event] = self.screen, self.focused
            elif self._came_too_late(event):
                event = events.Key(event.key, event.character)
        await super().on_event(event)

    def keep_what_is_typed(self) -> None:
        """Keep keys and clicks from now on, until ``give_what_was_typed``."""
        self._typed_early = []

    def give_what_was_typed(self) -> None:
        """Do what was typed and clicked since, in order, before what comes from now on."""
        if self._typed_early is not None:
            self.call_later(self._give)

    async def _give(self) -> None:
        early, self._typed_early = self._typed_early or [], None
        for event in early:
            await self.on_event(event)

    def _came_too_late(self, event: events.Key) -> bool:
        """Say whether the key before this one changed what it is for while it was on its way.

        That one opened or left a screen, or a line to type into, which this one is text of.
        """
        here = self.screen, self.focused
        screen, widget = self._typed_into.get(event, here)
        typing = isinstance(self.focused, Input)
        return screen is not self.screen or (typing and widget is not self.focused)

    def _hold_filter(self) -> None:
        main = self._main
        if main is None or self.screen is not main or not main.is_mounted:
            return
        pane = main.sessions
        if pane.filter_open and not pane.filter_has_focus:
            pane.open_filter()
