"""The commands that move a cursor through lines: every view of lines has the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from tui.keys.declaration import Command
from tui.keys.jump import HasApp, HasStops, jump_in

_BEYOND_THE_END = 1_000_000_000


class Lines(HasStops, Protocol):
    """A view of lines with a cursor."""

    @property
    def page(self) -> int:
        """The lines that page keys move by."""
        ...

    def move_by(self, lines: int) -> None:
        """Move the cursor by some lines."""
        ...

    def move_to(self, number: int) -> None:
        """Move the cursor to a line."""
        ...


class HasLines(HasApp, Protocol):
    """A pane or screen with such a view."""

    @property
    def view(self) -> Lines:
        """The view."""
        ...


Owner = TypeVar("Owner", bound=HasLines)


def line_commands(command: Callable[..., Command[Owner]]) -> tuple[Command[Owner], ...]:
    """Return the commands that move through the lines of an owner.

    Args:
        command: Makes a command of verb, keys, label, help, group and ``run``.
    """
    return (
        command("down", ("j", "down"), "down", "Next line", "Move",
                lambda owner: owner.view.move_by(1)),
        command("up", ("k", "up"), "up", "Previous line", "Move",
                lambda owner: owner.view.move_by(-1)),
        command("page-down", ("pagedown", "space"), "page down",
                "One page down", "Move", lambda owner: owner.view.move_by(owner.view.page)),
        command("page-up", ("pageup", "shift+space"), "page up", "One page up", "Move",
                lambda owner: owner.view.move_by(-owner.view.page)),
        command("half-page-down", ("ctrl+d",), "half page down", "Half a page down", "Move",
                lambda owner: owner.view.move_by(max(1, owner.view.page // 2))),
        command("half-page-up", ("ctrl+u",), "half page up", "Half a page up", "Move",
                lambda owner: owner.view.move_by(-max(1, owner.view.page // 2))),
        command("top", ("g", "home"), "top", "First line", "Move",
                lambda owner: owner.view.move_to(0)),
        command("end", ("G", "end"), "end", "Last line", "Move",
                lambda owner: owner.view.move_by(_BEYOND_THE_END)),
        command("jump", (";",), "jump", "Jump to a line on the screen by its letters", "Move",
                lambda owner: jump_in(owner, owner.view, owner.view.move_to)),
    )


class StackedOwner(Protocol):
    """A screen above the main one."""

    def show_help(self) -> None:
        """Show the keys of the screen."""
        ...

    def close(self) -> None:
        """Go back to the screen below."""
        ...


Stacked = TypeVar("Stacked", bound=StackedOwner)


def screen_commands(
    command: Callable[..., Command[Stacked]], what: str, opened_by: str = "", *,
    back: Callable[[Stacked], None] | None = None,
) -> tuple[Command[Stacked], ...]:
    """Return the commands that every screen above the main one has.

    ``q`` closes the screen; so does escape, unless it has a step to go back first.

    Args:
        command: As in ``line_commands``.
        what: The screen, in a sentence: ``the tree``.
        opened_by: The key that opened it, which closes it too.
        back: Goes back one step, or closes the screen where there is none; None without steps.
    """
    keys = ("q", opened_by) if opened_by else ("q",)
    help = command("help", ("?", "f1"), "keys", f"Show the keys of {what}", "Screen",
                   lambda owner: owner.show_help(), footer=99)
    if back is None:
        return help, command("close", ("escape", *keys), "close", f"Close {what}", "Screen",
                             lambda owner: owner.close(), footer=15)
    return (
        help,
        command("back", ("escape",), "back", f"Go back one step, or close {what}", "Screen",
                back, footer=15, meaning="close"),
        command("close", keys, "close", f"Close {what}", "Screen", lambda owner: owner.close()),
    )
