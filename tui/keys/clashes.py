"""Keys that the config gives to two commands, and which of the two gets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tui.keys.declaration import PANES, SCOPE_NAMES, AnyCommand, Scope
from tui.keys.names import key_label, key_name
from tui.keys.registry import BY_ID, commands
from tui.keys.table import keys_of

Keys = Mapping[str, Sequence[str]]


class Clash(NamedTuple):
    """One key that two commands want.

    Attributes:
        named: The id of the command in the config that the mistake is shown at.
    """

    named: str
    reason: str


def clashes(keys: Keys) -> Iterator[Clash]:
    """Yield the clashes between keys from the config and all others.

    Args:
        keys: The config's ``[keys]``: keys by command id.
    """
    changed = {name: wanted for name, wanted in keys.items() if name in BY_ID}
    for scope in SCOPE_NAMES:
        yield from _within(scope, changed)
    for command in (*commands("app"), *commands("main")):
        if command.id in changed:
            yield from _in_panes(command, changed)


def _within(scope: Scope, changed: Keys) -> Iterator[Clash]:
    """Yield the clashes of commands in one scope.

    Of two commands that the config gives the same key, the one that is declared first has it.
    A key from the config also replaces another command's own key: a clash where that command
    has no other key.
    """
    owners: dict[str, AnyCommand] = {}
    for command in commands(scope):
        for key in map(key_name, changed.get(command.id, ())):
            first = owners.setdefault(key, command)
            if first is not command:
                both = f"{first.id} and {command.id}"
                yield Clash(command.id, f"{key_label(key)} is given to {both}; {first.id} has it")
    for command in commands(scope):
        own = [key_name(key) for key in command.keys]
        if command.id not in changed and own and all(key in owners for key in own):
            taker = owners[own[0]]
            yield Clash(taker.id, f"{key_label(own[0])} is {taker.id} now; {command.id}, which"
                        " had it, has no key left")


def _in_panes(command: AnyCommand, changed: Keys) -> Iterator[Clash]:
    """Yield where a pane has a key that the config gives to the whole screen."""
    for key in dict.fromkeys(map(key_name, changed[command.id])):
        for scope in PANES:
            for other in commands(scope):
                if key in map(key_name, keys_of(other, changed)):
                    yield Clash(
                        command.id, f"{key_label(key)} is given to {command.id} and {other.id};"
                        f" {other.id} has it in the {SCOPE_NAMES[scope].lower()} pane",
                    )
