"""Names of keys: as Textual wants them, and as people read them."""

from __future__ import annotations

import string

from textual.keys import _character_to_key

_SHOWN = {
    "escape": "esc", "up": "↑", "down": "↓", "left": "←", "right": "→",
    "pageup": "pgup", "pagedown": "pgdn", "delete": "del",
}

_CHARACTERS = {_character_to_key(character): character for character in string.punctuation}


def key_name(key: str) -> str:
    """Return Textual's name of a key that may be written as its character.

    Args:
        key: ``j``, ``?``, ``ctrl+down``, ``question_mark``...
    """
    return _character_to_key(key) if len(key) == 1 else key


def key_label(key: str) -> str:
    """Return a key as people read it: ``?``, ``esc``, ``ctrl+↓``."""
    if len(key) == 1:
        return key
    modifiers, plus, name = key.rpartition("+")
    return f"{modifiers}{plus}{_SHOWN.get(name) or _CHARACTERS.get(name, name)}"
