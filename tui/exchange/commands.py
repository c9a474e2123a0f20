"""Commands of the screen with what agents sent to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands

if TYPE_CHECKING:
    from tui.exchange.screen import ExchangeScreen


def _has_message(screen: ExchangeScreen) -> str | None:
    return None if screen.view.line.link is not None else "No message is on this line"


_command = CommandFactory["ExchangeScreen"]("exchange")

EXCHANGE_COMMANDS: tuple[Command[ExchangeScreen], ...] = (
    *line_commands(_command),
    _command("open", ("enter",), "open", "Go to the message in its session", "Read",
             lambda screen: screen.follow(), footer=10, available=_has_message),
    _command("box", ("V",), "inbox, outbox", "Show all messages, the inbox or the outbox", "Read",
             lambda screen: screen.next_box(), footer=20, meaning="view"),
    *screen_commands(_command, "the exchange"),
)
