"""What a command is: one declaration from which everything that names it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Scope = Literal[
    "app", "list", "transcript", "inspector", "tree", "compare", "details", "search",
]

SCOPE_NAMES: dict[Scope, str] = {
    "app": "Everywhere",
    "list": "Sessions",
    "transcript": "Transcript",
    "inspector": "Inspector",
    "tree": "Tree",
    "compare": "Compare",
    "details": "Details",
    "search": "Search",
}

SCREENS: tuple[Scope, ...] = ("tree", "compare", "details", "search")
"""Scopes of screens above the main one; the keys of the whole app do not work there."""

Owner = TypeVar("Owner")
"""The pane or screen that the commands of a scope act on."""


def always(owner: object) -> str | None:
    """Return None: the command can always be run."""
    return None


class Command(NamedTuple, Generic[Owner]):
    """One thing that a user can do.

    Attributes:
        id: Unique, ``scope.verb``; the config changes keys by it.
        keys: Textual key names, the first is shown.
        label: One or two words for the footer and the palette.
        help: One sentence for help, palette and README.
        scope: Where its keys act.
        run: Takes the owner and runs the command; the next key waits for what it returns.
        available: Takes the owner; returns why it cannot be run now, or None.
        footer: Rank in the footer, lower first; None keeps it out.
        group: Heading in the help.
        meaning: What its keys mean. A key has one meaning in all scopes; commands of several
            scopes that do the same share it.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    scope: Scope
    run: Callable[[Owner], Awaitable[object] | None]
    available: Callable[[Owner], str | None] = always
    footer: int | None = None
    group: str = "General"
    meaning: str = ""


AnyCommand = Command[Any]
"""A command of whichever scope."""


class CommandFactory(Generic[Owner]):
    """Makes the commands of one scope; called once for each command."""

    def __init__(
        self, scope: Scope, available: Callable[[Owner], str | None] = always
    ) -> None:
        """Take the scope, and when its commands can be run unless they say otherwise."""
        self._scope: Scope = scope
        self._available = available

    def __call__(
        self, verb: str, keys: tuple[str, ...], label: str, help: str, group: str,
        run: Callable[[Owner], Awaitable[object] | None], *,
        footer: int | None = None, available: Callable[[Owner], str | None] | None = None,
        meaning: str = "",
    ) -> Command[Owner]:
        """Return a command.

        Args:
            verb: The end of its id, after the scope.
            keys: As in ``Command``, like the rest.
            label: One or two words.
            help: One sentence.
            group: Heading in the help.
            run: Runs it.
            footer: Rank in the footer.
            available: Why it cannot be run now; None for what the scope has.
            meaning: What its keys mean in all scopes; the verb where empty.
        """
        return Command(
            f"{self._scope}.{verb}", keys, label, help, self._scope, run,
            available or self._available, footer, group, meaning or verb,
        )
