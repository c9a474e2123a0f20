"""Where a tagged block of a text ends, with blocks of the same name within it."""

from __future__ import annotations

import re


def close_of(text: str, name: str, start: int) -> int:
    """Return where the tag stands that closes a block; below zero where none does.

    A block may hold others of its name. Where they do not match up, its end is the first
    closing tag.

    Args:
        text: The text that holds the block.
        name: The block's name.
        start: Where the block's opening tag ends.
    """
    first, depth = -1, 1
    for tag in _tags(name).finditer(text, start):
        if not tag[1]:
            depth += 1
            continue
        first, depth = tag.start() if first < 0 else first, depth - 1
        if not depth:
            return tag.start()
    return first


def open_of(text: str, name: str, end: int) -> int:
    """Return where the tag stands that opens a block; below zero where none does.

    Where tags do not match up, it is the last opening tag.

    Args:
        text: The text that holds the block.
        name: The block's name.
        end: Where the block's closing tag begins.
    """
    last, depth = -1, 1
    for tag in reversed(list(_tags(name).finditer(text, 0, end))):
        if tag[1]:
            depth += 1
            continue
        last, depth = tag.start() if last < 0 else last, depth - 1
        if not depth:
            return tag.start()
    return last


def _tags(name: str) -> re.Pattern[str]:
    return re.compile(rf"<(/)?{re.escape(name)}(?:\s[^<>]*)?>")
