"""What a command is: one declaration from which everything that names it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

Scope = Literal[
    "app", "main", "list", "transcript", "inspector", "tree", "compare", "details", "file",
    "exchange", "search", "stats", "share", "replay", "dialog", "prompt",
]

SCOPE_NAMES: dict[Scope, str] = {
    "app": "Everywhere",
    "main": "Main screen",
    "list": "Sessions",
    "transcript": "Transcript",
    "inspector": "Inspector",
    "tree": "Tree",
    "compare": "Compare",
    "details": "Details",
    "file": "File at its points",
    "exchange": "Exchange",
    "search": "Search",
    "stats": "Statistics",
    "share": "Share",
    "replay": "Replay",
    "dialog": "Dialogs",
    "prompt": "Lines to type into",
}

SCOPE_PLACES: dict[Scope, str] = {
    "main": "on the main screen",
    "list": "in the session list",
    "transcript": "in the transcript",
    "inspector": "in the inspector",
    "tree": "in the tree",
    "compare": "in the comparison",
    "details": "in the details",
    "file": "in the file's points",
    "exchange": "in the exchange",
    "search": "in the search",
    "stats": "in the statistics",
    "share": "while sharing",
    "replay": "in the replay",
}
"""Where the keys of a scope act, to end a sentence with."""

PANES: tuple[Scope, ...] = ("list", "transcript", "inspector")
"""The scopes in which the keys of the main screen work too; a pane's own keys come first."""

TYPED: tuple[Scope, ...] = ("prompt", "dialog")
"""Scopes whose keys work while a line is typed into, where the line does not use them."""

Group = Literal["Move", "Read", "Find", "Copy", "Change", "Screen"]
"""What one wants to do; the headings in the help, in this order."""

GROUPS: tuple[Group, ...] = get_args(Group)

Owner = TypeVar("Owner")
"""The pane or screen that the commands of a scope act on."""


def always(owner: object) -> str | None:
    """Return None: the command can always be run."""
    return None


class Command(NamedTuple, Generic[Owner]):
    """One thing that a user can do.

    Attributes:
        id: Unique, ``scope.verb`` (``app.verb`` on the main screen); the config changes keys by
            it.
        keys: Textual key names, the first is shown.
        label: One or two words for the footer and the palette.
        help: One sentence for help, palette and README.
        scope: Where its keys act.
        run: Takes the owner and runs the command; the next key waits for what it returns.
        available: Takes the owner; returns why it cannot be run now, or None.
        footer: Rank in the footer, lower first; None keeps it out.
        group: What one wants to do with it.
        meaning: What its keys mean. A key has one meaning in all scopes; commands of several
            scopes that do the same share it.
        also: Other words that the palette finds it by.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    scope: Scope
    run: Callable[[Owner], Awaitable[object] | None]
    available: Callable[[Owner], str | None] = always
    footer: int | None = None
    group: Group = "Screen"
    meaning: str = ""
    also: str = ""


AnyCommand = Command[Any]
"""A command of whichever scope."""


class CommandFactory(Generic[Owner]):
    """Makes the commands of one scope; called once for each command."""

    def __init__(
        self, scope: Scope, available: Callable[[Owner], str | None] = always
    ) -> None:
        """Take the scope, and when its commands can be run unless they say otherwise."""
        self._scope: Scope = scope
        self._prefix = "app" if scope == "main" else scope
        self._available = available

    def __call__(
        self, verb: str, keys: tuple[str, ...], label: str, help: str, group: Group,
        run: Callable[[Owner], Awaitable[object] | None], *,
        footer: int | None = None, available: Callable[[Owner], str | None] | None = None,
        meaning: str = "", also: str = "",
    ) -> Command[Owner]:
        """Return a command.

        Args:
            verb: The end of its id, after the scope.
            keys: As in ``Command``, like the rest.
            label: One or two words.
            help: One sentence.
            group: What one wants to do with it.
            run: Runs it.
            footer: Rank in the footer.
            available: Why it cannot be run now; None for what the scope has.
            meaning: What its keys mean in all scopes; the verb where empty.
            also: Other words that the palette finds it by.
        """
        return Command(
            f"{self._prefix}.{verb}", keys, label, help, self._scope, run,
            available or self._available, footer, group,
            meaning or verb, also,
        )
