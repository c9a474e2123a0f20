"""Names of keys: as Textual wants them, and as people read them."""

from __future__ import annotations

from textual.keys import _character_to_key, key_to_character

_SHOWN = {
    "escape": "esc", "up": "↑", "down": "↓", "left": "←", "right": "→",
    "pageup": "pgup", "pagedown": "pgdn", "delete": "del",
}


def key_name(key: str) -> str:
    """Return Textual's name of a key that may be written as its character.

    Args:
        key: ``j``, ``?``, ``ctrl+down``, ``question_mark``...
    """
    return _character_to_key(key) if len(key) == 1 else key


def key_label(key: str) -> str:
    """Return a key as people read it: ``?``, ``esc``, ``ctrl+↓``."""
    modifiers, plus, name = key.rpartition("+")
    if len(key) == 1:
        modifiers, plus, name = "", "", key
    character = key_to_character(name)
    if name in _SHOWN:
        shown = _SHOWN[name]
    elif character is not None and character.isprintable() and character != " ":
        shown = character
    else:
        shown = name
    return f"{modifiers}{plus}{shown}"
