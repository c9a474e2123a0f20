"""The commands with the keys that they have now: what a key runs, and which keys are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

from tui.keys.declaration import SCOPE_NAMES, SCOPE_PLACES, AnyCommand, Scope
from tui.keys.layouts import with_twins
from tui.keys.names import key_label, key_name

if TYPE_CHECKING:
    from textual.dom import DOMNode


def keys_of(command: AnyCommand, changed: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the keys that a command has now."""
    return tuple(changed[command.id]) if command.id in changed else command.keys


class CommandTable:
    """Finds commands by id, by scope and by key."""

    def __init__(
        self, first: Iterable[AnyCommand], changed: Mapping[str, Iterable[str]],
        rest: Callable[[], Iterable[AnyCommand]] = tuple,
    ) -> None:
        """Take the commands.

        Args:
            first: All commands of some scopes, or of all.
            changed: Keys from the config, by command id; an empty list takes a command's keys
                away, and ids that no command has are ignored.
            rest: Returns those of the other scopes; called when one of them is wanted.
        """
        self._first, self._rest, self._changed = tuple(first), rest, changed
        self._by_scope = _by_scope(self._first)
        self._by_key: dict[Scope, dict[str, AnyCommand]] = {}

    @cached_property
    def commands(self) -> tuple[AnyCommand, ...]:
        """All commands, in the order of their declaration."""
        return (*self._first, *self._rest())

    @cached_property
    def by_id(self) -> dict[str, AnyCommand]:
        """All commands by id."""
        return {command.id: command for command in self.commands}

    def _bound(self, scope: Scope) -> dict[str, AnyCommand]:
        """Return the commands of a scope by key.

        A key from the config goes before another command's own key; of two commands that the
        config gives the same key, the one that is declared first has it.
        """
        found: dict[str, AnyCommand] = {}
        for command in sorted(self.of(scope), key=lambda each: each.id not in self._changed):
            for key in with_twins(self.keys_of(command)):
                found.setdefault(key_name(key), command)
        return found

    def of(self, scope: Scope) -> tuple[AnyCommand, ...]:
        """Return the commands of a scope, in the order of their declaration."""
        if scope not in self._by_scope:
            self._by_scope = {one: () for one in SCOPE_NAMES} | _by_scope(self.commands)
        return self._by_scope[scope]

    def for_key(self, scope: Scope, key: str) -> AnyCommand | None:
        """Return the command that a key runs in a scope; the key as Textual names it."""
        if scope not in self._by_key:
            self._by_key[scope] = self._bound(scope)
        return self._by_key[scope].get(key)

    def why_not_here(self, key: str) -> str | None:
        """Return where a key acts that does nothing here, None where it acts nowhere."""
        for scope, place in SCOPE_PLACES.items():
            command = self.for_key(scope, key)
            if command is not None:
                return f"{key_label(key)} does nothing here; {place} it is “{command.label}”"
        return None

    def keys_of(self, command: AnyCommand) -> tuple[str, ...]:
        """Return the keys that a command has now."""
        return keys_of(command, self._changed)

    def label_of(self, command_id: str) -> str:
        """Return the first key of a command as it is shown; empty where it has none."""
        keys = self.keys_of(self.by_id[command_id])
        return key_label(key_name(keys[0])) if keys else ""

    def hint(self, command_id: str, words: str) -> str:
        """Return what a command's key does, to end a message with: `` · U undoes``.

        Args:
            command_id: The command; the hint is empty where the config took its keys away.
            words: What it does.
        """
        key = self.label_of(command_id)
        return f" · {key} {words}" if key else ""


def _by_scope(commands: Iterable[AnyCommand]) -> dict[Scope, tuple[AnyCommand, ...]]:
    found: dict[Scope, list[AnyCommand]] = {}
    for command in commands:
        found.setdefault(command.scope, []).append(command)
    return {scope: tuple(some) for scope, some in found.items()}


class HasCommands(Protocol):
    """An app that runs commands."""

    @property
    def commands(self) -> CommandTable:
        """The commands with their keys."""
        ...


def commands_of(widget: DOMNode) -> CommandTable:
    """Return the commands of a widget's app."""
    return cast("HasCommands", widget.app).commands
