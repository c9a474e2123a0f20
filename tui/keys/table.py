"""The commands with the keys that they have now: what a key runs, and which keys are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """Finds commands by id, by scope and by key.

    Attributes:
        commands: All commands, in the order of their declaration.
        by_id: The same by id.
    """

    def __init__(
        self, commands: Iterable[AnyCommand], changed: Mapping[str, Iterable[str]]
    ) -> None:
        """Take the commands.

        Args:
            commands: All that there are.
            changed: Keys from the config, by command id; an empty list takes a command's keys
                away, and ids that no command has are ignored.
        """
        self.commands = tuple(commands)
        self.by_id = {command.id: command for command in self.commands}
        self._by_scope = {
            scope: tuple(command for command in self.commands if command.scope == scope)
            for scope in SCOPE_NAMES
        }
        self._changed = changed
        self._by_key = self._bound()

    def _bound(self) -> dict[Scope, dict[str, AnyCommand]]:
        """Return the commands by key.

        A key from the config goes before another command's own key; of two commands that the
        config gives the same key, the one that is declared first has it.
        """
        found: dict[Scope, dict[str, AnyCommand]] = {scope: {} for scope in SCOPE_NAMES}
        for command in sorted(self.commands, key=lambda each: each.id not in self._changed):
            for key in with_twins(self.keys_of(command)):
                found[command.scope].setdefault(key_name(key), command)
        return found

    def of(self, scope: Scope) -> tuple[AnyCommand, ...]:
        """Return the commands of a scope, in the order of their declaration."""
        return self._by_scope[scope]

    def for_key(self, scope: Scope, key: str) -> AnyCommand | None:
        """Return the command that a key runs in a scope; the key as Textual names it."""
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


class HasCommands(Protocol):
    """An app that runs commands."""

    @property
    def commands(self) -> CommandTable:
        """The commands with their keys."""
        ...


def commands_of(widget: DOMNode) -> CommandTable:
    """Return the commands of a widget's app."""
    return cast("HasCommands", widget.app).commands
