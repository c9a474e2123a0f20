"""Where a tagged block of a text ends, with blocks of the same name within it."""

from __future__ import annotations

import re
from collections.abc import Iterable


def close_of(text: str, name: str, start: int) -> int:
    """Return where the tag stands that closes a block; below zero where none does.

    A block may hold others of its name. Where they do not match up, its end is the first
    closing tag.

    Args:
        text: The text that holds the block.
        name: The block's name.
        start: Where the block's opening tag ends.
    """
    return _match_of(_tags(name).finditer(text, start), "/")


def open_of(text: str, name: str, end: int) -> int:
    """Return where the tag stands that opens a block; below zero where none does.

    Where tags do not match up, it is the last opening tag.

    Args:
        text: The text that holds the block.
        name: The block's name.
        end: Where the block's closing tag begins.
    """
    return _match_of(reversed(list(_tags(name).finditer(text, 0, end))), None)


def _match_of(tags: Iterable[re.Match[str]], slash: str | None) -> int:
    """Return where the tag stands that matches the one just passed.

    Args:
        tags: The tags from there on, in the order in which they are passed.
        slash: What the wanted tag has before its name: "/" where it closes, None where it opens.
    """
    first, depth = -1, 1
    for tag in tags:
        if tag[1] != slash:
            depth += 1
            continue
        first, depth = tag.start() if first < 0 else first, depth - 1
        if not depth:
            return tag.start()
    return first


def _tags(name: str) -> re.Pattern[str]:
    word = re.escape(name)
    return re.compile(rf"<(?:(/){word}|{word}(?:\s[^<>]*)?)>")
