"""All commands, and what is made of them: bindings, footer, tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType

from tui.compare.commands import COMPARE_COMMANDS
from tui.inspector.commands import INSPECTOR_COMMANDS
from tui.keys.declaration import AnyCommand, Scope
from tui.keys.layouts import with_twins
from tui.keys.names import key_label, key_name
from tui.main.commands import APP_COMMANDS
from tui.sessions.commands import SESSION_COMMANDS
from tui.transcript.commands import TRANSCRIPT_COMMANDS
from tui.tree.commands import TREE_COMMANDS

COMMANDS: tuple[AnyCommand, ...] = (
    *APP_COMMANDS,
    *SESSION_COMMANDS,
    *TRANSCRIPT_COMMANDS,
    *INSPECTOR_COMMANDS,
    *TREE_COMMANDS,
    *COMPARE_COMMANDS,
)

BY_ID: dict[str, AnyCommand] = {command.id: command for command in COMMANDS}

SCOPE_NAMES: dict[Scope, str] = {
    "app": "Everywhere",
    "list": "Sessions",
    "transcript": "Transcript",
    "inspector": "Inspector",
    "tree": "Tree",
    "compare": "Compare",
}


def commands(scope: Scope) -> tuple[AnyCommand, ...]:
    """Return the commands of one scope, in the order of their declaration."""
    return tuple(command for command in COMMANDS if command.scope == scope)


def _bound(keys: Iterable[str]) -> str:
    return ",".join(key_name(key) for key in with_twins(tuple(keys)))


def bindings(scope: Scope) -> list[BindingType]:
    """Return the Textual bindings of a scope, with their default keys.

    The binding's id is the command's, so ``App.set_keymap(keymap(config))`` changes keys.
    """
    return [
        Binding(
            _bound(command.keys), f"command('{command.id}')", command.label,
            show=command.footer is not None, id=command.id, tooltip=command.help,
        )
        for command in commands(scope)
    ]


def keymap(changed: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the keymap for Textual from the config's ``[keys]``.

    Args:
        changed: Keys by command id, none of them takes the command's keys away; ids that
            no command has are left out.
    """
    return {
        name: _bound(keys) or f"no-key-{name}"
        for name, keys in changed.items() if name in BY_ID
    }


def command_keys(changed: Mapping[str, Iterable[str]]) -> dict[Scope, dict[str, AnyCommand]]:
    """Return the commands of each scope by the key that runs them.

    A key from the config goes before another command's own key; of two commands that the
    config gives the same key, the one that is declared first has it.

    Args:
        changed: Keys by command id, from the config.
    """
    found: dict[Scope, dict[str, AnyCommand]] = {scope: {} for scope in SCOPE_NAMES}
    for command in sorted(COMMANDS, key=lambda command: command.id not in changed):
        for key in with_twins(tuple(keys_of(command, changed))):
            found[command.scope].setdefault(key_name(key), command)
    return found


def keys_of(command: AnyCommand, changed: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the keys that a command has now."""
    return tuple(changed[command.id]) if command.id in changed else command.keys


def footer_commands(scope: Scope) -> list[AnyCommand]:
    """Return what the footer may show in a pane, the most wanted first."""
    shown = [c for c in COMMANDS if c.scope in (scope, "app") and c.footer is not None]
    return sorted(shown, key=lambda command: command.footer or 0)


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
