"""Words that name a key, in the texts that screens show: ``o shows more``.

The keys are those of the config; the app gives them once it knows them.
"""

from __future__ import annotations

from collections.abc import Callable

DEFAULTS = {
    "transcript.fold": "o", "transcript.context": "c", "transcript.hidden": "H",
    "transcript.fork": "f", "transcript.label": "B", "transcript.labels": "'",
    "transcript.find": "/", "inspector.find": "/", "inspector.open": "v",
    "inspector.toggle": "o", "tree.label": "B", "compare.fold": "O", "app.redo": "ctrl+r",
    "list.view": "V", "list.folder": "W", "list.clear-filter": "backspace",
}
"""The keys before the app gives others; those of the declarations, which a test compares."""

_label_of: Callable[[str], str] = DEFAULTS.__getitem__


def take_keys(label_of: Callable[[str], str]) -> None:
    """Take the keys that commands have now.

    Args:
        label_of: Returns the key of a command's id, as it is shown; empty where it has none.
    """
    global _label_of
    _label_of = label_of


def keyed(command_id: str, words: str) -> str:
    """Return what a key does, with the key; without it where the command has no key."""
    key = _label_of(command_id)
    return f"{key} {words}" if key else words
