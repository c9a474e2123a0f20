"""Names of keys: as Textual wants them, and as people read them."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import cache

from textual.keys import KEY_NAME_REPLACEMENTS

_SHOWN = {
    "escape": "esc", "up": "↑", "down": "↓", "left": "←", "right": "→",
    "pageup": "pgup", "pagedown": "pgdn", "delete": "del",
}


_NOT_TYPED = (
    r"(?:ctrl\+[^adefkuwxcv]|alt\+.+|ctrl\+\w\w+|f\d+|enter|tab|shift\+tab|escape|page(?:up|down)"
    r"|up|down)"
)  # Compiled when a line is typed into.


def acts_while_typing(key: str) -> bool:
    """Return whether a key is left to commands by a line that is typed into."""
    return re.fullmatch(_NOT_TYPED, key_name(key)) is not None


def _named(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_CHARACTERS = {_named(character): character for character in string.punctuation}


@cache
def key_name(key: str) -> str:
    """Return Textual's name of a key that may be written as its character.

    Args:
        key: ``j``, ``?``, ``ctrl+down``, ``question_mark``...
    """
    return _named(key) if len(key) == 1 else key


def key_label(key: str) -> str:
    """Return a key as people read it: ``?``, ``esc``, ``ctrl+↓``."""
    if len(key) == 1:
        return key
    modifiers, plus, name = key.rpartition("+")
    return f"{modifiers}{plus}{_SHOWN.get(name) or _CHARACTERS.get(name, name)}"
