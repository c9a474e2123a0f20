"""What a command is: one declaration from which everything that names it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Scope = Literal["app", "list", "transcript", "inspector", "tree", "compare"]
Availability = Callable[[Any], str | None]


def always(owner: Any) -> str | None:
    """Say that nothing stands in the way."""
    return None


class Command(NamedTuple):
    """One thing that a user can do.

    Attributes:
        id: Unique, ``scope.verb``; the config changes keys by it. The owner of the scope
            (app or pane) has a method ``do_<verb>`` (dots and dashes become underscores).
        keys: Textual key names, the first is shown.
        label: One or two words for the footer.
        help: One sentence for help, palette and README.
        scope: Where its keys act.
        available: Takes the owner; returns why it cannot be done now, or None.
        footer: Rank in the footer, lower first; None keeps it out.
        group: Heading in the help.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    scope: Scope
    available: Availability = always
    footer: int | None = None
    group: str = "General"

    @property
    def method(self) -> str:
        """The name of the owner's method that does it."""
        return "do_" + self.id.split(".", 1)[1].replace("-", "_").replace(".", "_")
