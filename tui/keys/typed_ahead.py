"""Keys that come before what they are for is there: none is lost, none does something else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

if TYPE_CHECKING:
    from tui.main.screen import MainScreen


class TypedAheadApp(App[None]):
    """Gives what is typed to whom it is meant for, one key after the other.

    A key goes to the widget that has the focus and up from there through the queue of each
    parent, and may move the focus anywhere on its way. So the next one is given only when
    the one before has come up to here, or would have.
    """

    def __init__(self) -> None:
        """Make the app; nothing is typed yet."""
        super().__init__()
        self._main: MainScreen | None = None
        self._waiting: deque[events.Event] = deque()
        self._kept = False
        self._way: _Way | None = None
        self._typed_into: WeakKeyDictionary[
            events.Key, tuple[Screen[object], Widget | None]
        ] = WeakKeyDictionary()

    async def on_event(self, event: events.Event) -> None:
        """Let keys and clicks wait for the key before them."""
        typed = isinstance(event, (events.Key, events.Paste, events.MouseEvent))
        if typed and not event.is_forwarded:
            self._waiting.append(event)
            await self._give_next()
        elif isinstance(event, events.Key) and self._came_too_late(event):
            await self._give(events.Key(event.key, event.character))
            await self._give_next()
        else:
            await super().on_event(event)
            if self._way is not None and self._way.event is event:
                await self._arrived(self._way)

    def keep_what_is_typed(self) -> None:
        """Keep keys and clicks from now on, until ``give_what_was_typed``."""
        self._kept = True

    def give_what_was_typed(self) -> None:
        """Do what was typed and clicked since, in order, before what comes from now on."""
        if self._kept:
            self._kept = False
            self.call_later(self._give_next)

    async def _give_next(self) -> None:
        while self._waiting and not self._kept:
            if self._way is not None and self._way.follow():
                return
            await self._give(self._waiting.popleft())

    async def _give(self, event: events.Event) -> None:
        """Give a key to what has the focus, and follow it from there."""
        self._way = None
        key = isinstance(event, (events.Key, events.Paste))
        if key:
            self._hold_filter()
        target = self.focused or self.screen
        if isinstance(event, events.Key):
            self._typed_into[event] = self.screen, self.focused
        await super().on_event(event)
        if key and event.is_forwarded:
            self._way = _Way(self, event, target, self._arrived)

    async def _arrived(self, way: _Way) -> None:
        if way is self._way:
            self._way = None
            await self._give_next()

    def _came_too_late(self, event: events.Key) -> bool:
        """Say whether what a key is for changed while it was on its way.

        What the one before began opened or left a screen, or a line to type into, which this
        one is text of.
        """
        here = self.screen, self.focused
        screen, widget = self._typed_into.get(event, here)
        typing = isinstance(self.focused, Input)
        return screen is not self.screen or (typing and widget is not self.focused)

    def _hold_filter(self) -> None:
        """Give keys to the filter while it is open, whatever the focus is doing.

        A terminal that takes the focus away and gives it back must not turn typed text
        into commands.
        """
        main = self._main
        if main is None or self.screen is not main or not main.is_mounted:
            return
        pane = main.sessions
        if pane.filter_open and not pane.filter_has_focus:
            pane.open_filter()


class _Way:
    """The way of a key from the focus up; it ends early where a widget stops the key.

    What follows the key is dealt with by each parent right after it. It is sent only once
    another key waits, as most keys come up to the app themselves.
    """

    def __init__(
        self, app: App[None], event: events.Event, start: MessagePump,
        arrived: Callable[[_Way], object],
    ) -> None:
        """Take a key and the widget that it was given to."""
        self.event = event
        self._app, self._at, self._arrived, self._followed = app, start, arrived, False

    def follow(self) -> bool:
        """Tell when the key is done with; False where nothing is dealt with any more."""
        if not self._followed:
            self._followed = True
            self._climb(self._at)
        task = self._at._task
        return self._at is self._app or (task is not None and not task.done())

    def _climb(self, pump: MessagePump) -> None:
        self._at = pump
        if pump is self._app or not pump.call_later(self._leave, pump):
            self._at = self._app
            self._app.call_later(self._arrived, self)

    def _leave(self, pump: MessagePump) -> None:
        self._climb(pump._parent or self._app)
