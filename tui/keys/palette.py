"""The command palette: every command, with the reason where one cannot be run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits
from textual.system_commands import SystemCommandsProvider

from tui.keys.declaration import AnyCommand, Scope
from tui.keys.names import key_label, key_name
from tui.keys.registry import COMMANDS, SCOPE_NAMES, keys_of

if TYPE_CHECKING:
    from tui.app import BackscrollApp


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


def palette_commands(app: BackscrollApp) -> Iterator[SystemCommand]:
    """Yield what the palette lists: the focused pane's commands first, ways to move last."""
    main = app.main
    focused = main.panes.scope
    ranked = sorted(
        COMMANDS, key=lambda c: (c.scope != focused, c.scope != "app", c.group == "Move")
    )
    owners: dict[Scope, Any] = {
        "app": main, "list": main.sessions, "transcript": main.transcript,
        "inspector": main.inspector,
    }
    for command in ranked:
        if command.id == "app.palette" or owners.get(command.scope) is None:
            continue
        yield SystemCommand(
            _title(command), _help(command, owners[command.scope], app.settings.keys),
            partial(main.run_by_id, command.id),
        )
    yield SystemCommand("Choose a theme", "All themes, ours and Textual's", app.action_change_theme)


def _title(command: AnyCommand) -> str:
    words = command.label[0].upper() + command.label[1:]
    return words if command.scope == "app" else f"{SCOPE_NAMES[command.scope]}: {words}"


def _help(command: AnyCommand, owner: Any, changed: Any) -> str:
    reason = command.available(owner)
    if reason is not None:
        return f"Not now: {reason}"
    keys = "  ".join(key_label(key_name(key)) for key in keys_of(command, changed))
    return f"{command.help}  ({keys})" if keys else command.help
