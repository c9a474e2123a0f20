"""An app that runs each key as the command that it stands for where the focus is."""

from __future__ import annotations

from functools import partial
from inspect import isawaitable
from typing import Any, Protocol

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen
from textual.widgets import Input

from tui.keys.declaration import TYPED
from tui.keys.footer import BottomLine, show_keys
from tui.keys.layouts import latin
from tui.keys.pane import owners_of
from tui.keys.queue import InputQueue, Work, release_key
from tui.keys.table import CommandTable


class KeyTaker(Protocol):
    """Takes the next letters in place of commands: the letter of a mark, the code of a row."""

    @property
    def asks(self) -> str:
        """What the letters are taken for; shown in the last line."""
        ...

    async def take(self, key: str) -> bool:
        """Take a letter or backspace; return whether the next one is wanted too."""
        ...

    def leave(self) -> None:
        """Letters are commands again: one was taken, escape was pressed, or another key."""
        ...


class CommandApp(App[None]):
    """Takes keys, pastes and the mouse one after the other.

    A key becomes a command in the scope that has the focus when the key's turn comes. Text
    for an input line, keys of Textual's own widgets and the mouse go to their widget.
    """

    def __init__(self) -> None:
        """Make the app with an empty queue."""
        super().__init__()
        self.inputs = InputQueue(self, self._resolve, super().on_event, self._handled)
        self._taker: KeyTaker | None = None

    @property
    def commands(self) -> CommandTable:
        """The commands with their keys; an app overrides it."""
        return CommandTable((), {})

    async def on_event(self, event: events.Event) -> None:
        """Put input into the queue; everything else is handled at once."""
        typed = isinstance(event, (events.Key, events.Paste, events.MouseEvent))
        if typed and not event.is_forwarded:
            self.inputs.put(event)
        elif isinstance(event, events.Key) and (work := self._unused(event.key)) is not None:
            self.inputs.enqueue(work)
        else:
            await super().on_event(event)

    def _unused(self, key: str) -> Work | None:
        """Return the command of a key that an input line did not use, or None."""
        return None if self._uses(key) else self._command(key)

    def _uses(self, key: str) -> bool:
        """Return whether the focused widget has a binding of its own for a key."""
        binding = self.active_bindings.get(key)
        return binding is not None and binding.node is self.focused

    def _types(self, key: str) -> bool:
        """Return whether a key moves in the text of an input line, or changes it.

        Enter does not: commands say what it means. Nor do the keys that scroll any widget.
        """
        binding = self.active_bindings.get(key)
        moves = binding is not None and not binding.binding.action.startswith(("scroll", "page"))
        return self._uses(key) and moves and key != "enter"

    def _handled(self) -> None:
        """Show the keys that matter after an input."""
        if self.is_running:
            show_keys(self)

    # Letters that are no commands

    def take_keys(self, taker: KeyTaker) -> None:
        """Give the letters that follow to something; any other key leaves it and is run."""
        self.release_keys()
        self._taker = taker
        self._ask(taker.asks)

    def release_keys(self) -> None:
        """Have letters run commands again."""
        taker, self._taker = self._taker, None
        if taker is not None:
            self._ask("")
            taker.leave()

    def _ask(self, words: str) -> None:
        for line in self.screen.query(BottomLine):
            line.asks = words

    async def _give(self, key: str) -> None:
        taker = self._taker
        if taker is not None and not (key != "escape" and await taker.take(key)) and (
            taker is self._taker
        ):
            self.release_keys()

    def _taken(self, event: events.Event) -> Work | None:
        """Return what gives a key to the taker; without one, None."""
        if self._taker is None or isinstance(event, events.MouseMove):
            return None
        key = latin(event.key) if isinstance(event, events.Key) else ""
        if key in ("escape", "backspace") or (len(key) == 1 and key.isascii() and key.isalpha()):
            return partial(self._give, key)
        self.release_keys()
        return None

    def close_toasts(self) -> bool:
        """Close the toasts; return whether there were any. An app with toasts overrides it."""
        return False

    def before_key(self) -> None:
        """Put the focus where it belongs before a key is dispatched; an app overrides it."""

    def push_screen(self, *args: Any, **kwargs: Any) -> Any:
        """Show a screen above the others; keys typed from here on are for it."""
        self.release_keys()
        pushed = super().push_screen(*args, **kwargs)
        release_key()
        return pushed

    def pop_screen(self) -> AwaitComplete:
        """Close the screen on top, and end its workers: what they read has no widgets to go to."""
        if len(self.screen_stack) > 1:
            self.workers.cancel_node(self.screen)
        return super().pop_screen()

    def _resolve(self, event: events.Event) -> Work | None:
        """Return the command that a key stands for where the focus is.

        None for the mouse, for text of an input line, and where the focus has no such command.
        """
        work = self._taken(event)
        if work is not None or isinstance(event, events.MouseEvent):
            return work
        self.before_key()
        focus = self.focused or self.screen
        if not isinstance(event, events.Key):
            return None
        if isinstance(focus, Input):
            used = event.is_printable or self._types(event.key)
            return None if used else self._command(event.key, typing=True)
        return self._command(event.key)

    def _command(self, key: str, *, typing: bool = False) -> Work | None:
        """Return the command that a key runs where the focus is, or None.

        Args:
            key: As Textual names it.
            typing: Look only at what a line is typed for.
        """
        for owner in owners_of(self.focused or self.screen):
            if typing and owner.SCOPE not in TYPED:
                return None
            work = owner.work_for(key)
            if work is not None:
                self.app_focus = True
                return partial(self._escape, work) if key == "escape" else work
        return None if typing else self._elsewhere(key)

    def _elsewhere(self, key: str) -> Work | None:
        """Return what says where a key acts that does nothing here, None where none is known.

        Dialogs are left out: what they ask is answered first.
        """
        if isinstance(self.screen, ModalScreen) or self._uses(key):
            return None
        reason = self.commands.why_not_here(key)
        if reason is None:
            return None

        async def say() -> None:
            self.notify(reason, severity="warning", timeout=3)

        return say

    async def _escape(self, work: Work) -> None:
        """Close the toasts; leave the pane or screen only where there were none.

        A line that is typed into, or a filter, is left with the same press.
        """
        focus = self.focused or self.screen
        at_once = isinstance(focus, Input) or any(
            owner.escape_clears for owner in owners_of(focus))
        if self.close_toasts() and not at_once:
            return
        if isawaitable(result := work()):
            await result
