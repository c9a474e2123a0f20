"""The command palette: every command, with the reason where one cannot be run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits
from textual.system_commands import SystemCommandsProvider

from tui.keys.declaration import SCOPE_NAMES, AnyCommand, Scope
from tui.keys.names import key_label, key_name
from tui.keys.pane import CommandPane
from tui.keys.table import CommandTable

HELP_WORTH = 0.6
"""How much a match in a command's help counts beside one in its name."""


class CommandProvider(SystemCommandsProvider):
    """Lists commands in their own order, and finds them by what they do as well."""

    async def discover(self) -> Hits:
        """Yield every command, the focused pane's first."""
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(name, callback, help=help_text)

    async def search(self, query: str) -> Hits:
        """Yield the commands whose name or help matches.

        Args:
            query: What was typed.
        """
        matcher = self.matcher(query)
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            score = max(matcher.match(name), HELP_WORTH * matcher.match(help_text))
            if score > 0:
                yield Hit(score, matcher.highlight(name), callback, help=help_text)


def palette_commands(
    table: CommandTable, focused: Scope, owners: Mapping[Scope, CommandPane | None]
) -> Iterator[SystemCommand]:
    """Yield what the palette lists: the focused pane's commands first, ways to move last.

    Args:
        table: The commands with their keys.
        focused: The focused pane's scope.
        owners: What runs the commands of each scope; None where that is not loaded.
    """
    ranked = sorted(
        table.commands, key=lambda c: (c.scope != focused, c.scope != "app", c.group == "Move")
    )
    for command in ranked:
        owner = owners.get(command.scope)
        if command.id != "app.palette" and owner is not None:
            yield SystemCommand(
                _title(command), _help(command, owner, table.keys_of(command)),
                partial(owner.request_command, command.id),
            )


def _title(command: AnyCommand) -> str:
    words = command.label[0].upper() + command.label[1:]
    return words if command.scope == "app" else f"{SCOPE_NAMES[command.scope]}: {words}"


def _help(command: AnyCommand, owner: CommandPane, keys: Sequence[str]) -> str:
    reason = command.available(owner)
    if reason is not None:
        return f"Not now: {reason}"
    named = "  ".join(key_label(key_name(key)) for key in keys)
    return f"{command.help}  ({named})" if named else command.help
