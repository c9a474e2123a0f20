"""How well a command fits what was typed into the palette or the help."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def rank(
    query: str, title: str, *, also: str = "", help: str = "", keys: Sequence[str] = (),
    loose: bool = True,
) -> int:
    """Return how well a command fits a query; 0 where it does not, higher is better.

    What is written literally and begins a word comes before what is inside of one, the name
    and its synonyms before the sentence of help, and letters in order come last.

    Args:
        query: What was typed.
        title: The command's name.
        also: Its synonyms.
        help: Its sentence.
        keys: Its keys, as they are shown.
        loose: Whether letters of the title in order are enough.
    """
    typed = query.casefold().strip()
    words = typed.split()
    if not words:
        return 1
    name, other, sentence = title.casefold(), also.casefold(), help.casefold()
    if query.strip() in keys or name == typed:
        return 9
    if name.startswith(typed):
        return 8
    if _begins(name, typed):
        return 7
    if _begins(other, typed):
        return 6
    if _all_begin(f"{name} {other}", words):
        return 5
    if typed in name:
        return 4
    if _all_begin(f"{name} {other} {sentence}", words):
        return 3
    if typed in f"{other}\n{sentence}":
        return 2
    return 1 if loose and _in_order(name, typed.replace(" ", "")) else 0


def _begins(text: str, typed: str) -> bool:
    """Return whether a text has the typed text at the begin of a word."""
    return any(text.startswith(typed, word.start()) for word in _WORD.finditer(text))


def _all_begin(text: str, words: Sequence[str]) -> bool:
    return all(_begins(text, word) for word in words)


def _in_order(name: str, letters: str) -> bool:
    """Return whether letters are in a name in this order, the first one at the begin of a word."""
    for word in _WORD.finditer(name):
        rest = iter(name[word.start():])
        if word[0].startswith(letters[:1]) and all(letter in rest for letter in letters):
            return True
    return False
