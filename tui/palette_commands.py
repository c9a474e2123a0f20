"""The command palette: every command, with the reason where one cannot be run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand

from tui.commands.declaration import Command, Scope
from tui.commands.keys import key_label, key_name
from tui.commands.registry import COMMANDS, SCOPE_NAMES, keys_of

if TYPE_CHECKING:
    from tui.app import BackscrollApp


def palette_commands(app: BackscrollApp) -> Iterator[SystemCommand]:
    """Yield what the palette lists: the focused pane's commands first."""
    main = app.main
    focused: Scope = {"sessions": "list", "transcript": "transcript", "inspector": "inspector"}[
        main.focused_pane]  # type: ignore[assignment]
    ranked = sorted(COMMANDS, key=lambda c: (c.scope != focused, c.scope != "app"))
    owners: dict[Scope, Any] = {
        "app": main, "list": main.sessions, "transcript": main.transcript,
        "inspector": main.inspector,
    }
    for command in ranked:
        if command.id == "app.palette" or owners.get(command.scope) is None:
            continue
        yield SystemCommand(
            _title(command), _help(command, owners[command.scope], main.changed_keys),
            partial(main.run_by_id, command.id),
        )
    yield SystemCommand("Choose a theme", "All themes, ours and Textual's", app.action_change_theme)


def _title(command: Command) -> str:
    words = command.label[0].upper() + command.label[1:]
    return words if command.scope == "app" else f"{SCOPE_NAMES[command.scope]}: {words}"


def _help(command: Command, owner: Any, changed: Any) -> str:
    reason = command.available(owner)
    if reason is not None:
        return f"Not now: {reason}"
    keys = "  ".join(key_label(key_name(key)) for key in keys_of(command, changed))
    return f"{command.help}  ({keys})" if keys else command.help
