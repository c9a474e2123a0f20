"""All commands of all rooms, and the table of their keys for the documentation."""

from __future__ import annotations

from tui.compare.commands import COMPARE_COMMANDS
from tui.details.commands import DETAILS_COMMANDS
from tui.dialogs.commands import DIALOG_COMMANDS
from tui.exchange.commands import EXCHANGE_COMMANDS
from tui.files.commands import FILE_COMMANDS
from tui.inspector.commands import INSPECTOR_COMMANDS
from tui.keys.declaration import SCOPE_NAMES, AnyCommand, Scope
from tui.keys.first_commands import FIRST_COMMANDS
from tui.keys.names import key_label, key_name
from tui.keys.prompt import PROMPT_COMMANDS
from tui.replay.commands import REPLAY_COMMANDS
from tui.search.commands import SEARCH_COMMANDS
from tui.share.commands import SHARE_COMMANDS
from tui.stats.commands import STATS_COMMANDS
from tui.transcript.commands import TRANSCRIPT_COMMANDS
from tui.tree.commands import TREE_COMMANDS

OTHER_COMMANDS: tuple[AnyCommand, ...] = (
    *TRANSCRIPT_COMMANDS,
    *INSPECTOR_COMMANDS,
    *TREE_COMMANDS,
    *COMPARE_COMMANDS,
    *DETAILS_COMMANDS,
    *FILE_COMMANDS,
    *EXCHANGE_COMMANDS,
    *SEARCH_COMMANDS,
    *STATS_COMMANDS,
    *SHARE_COMMANDS,
    *REPLAY_COMMANDS,
    *DIALOG_COMMANDS,
    *PROMPT_COMMANDS,
)
"""Those that the first screen does not need."""

COMMANDS: tuple[AnyCommand, ...] = (*FIRST_COMMANDS, *OTHER_COMMANDS)

BY_ID: dict[str, AnyCommand] = {command.id: command for command in COMMANDS}


def commands(scope: Scope) -> tuple[AnyCommand, ...]:
    """Return the commands of one scope, in the order of their declaration."""
    return tuple(command for command in COMMANDS if command.scope == scope)


def key_table() -> str:
    """Return the Markdown tables of all keys, for the README."""
    blocks = []
    for scope, name in SCOPE_NAMES.items():
        rows = [
            f"| {' '.join(f'`{key_label(key_name(key))}`' for key in command.keys)} "
            f"| {command.help} | `{command.id}` |"
            for command in commands(scope)
        ]
        if rows:
            blocks.append("\n".join([f"### {name}", "", "| keys | what | id |",
                                     "|---|---|---|", *rows]))
    return "\n\n".join(blocks) + "\n"
