"""JSON of large values in pieces, so that no other thread waits long for the interpreter.

A call of the JSON library or of SQLite holds the interpreter's lock until it returns: for a
tool's output of 20 MB that is 50 to 150 ms, in which the event loop of a host stands still,
whatever thread makes the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.recorder.json_text import given_dump as dump
from store.system.turns import Turns

LARGE = 262_144
"""Characters, about, from which on a value is written in pieces."""
STEP = 65_536
"""Characters of a piece, about."""
_TURN = 64
"""Members of an array after which other threads may have a turn."""
_ITEM = 4
_DEEPEST = 50


def weight(value: object, most: int) -> int:
    """Return about how many characters a value has as JSON, or something above ``most``.

    Args:
        value: A JSON value.
        most: Counting ends there.
    """
    total = 0
    counted = [value]
    for each in counted:  # It grows by what the values hold.
        if type(each) is str:
            total += len(each)
        elif isinstance(each, dict | list):
            total += _ITEM * len(each)
            if total <= most:
                counted.extend(each.values() if isinstance(each, dict) else each)
        else:
            total += len(each) if isinstance(each, str) else _ITEM
        if total > most:
            break
    return total


def is_large(value: object, most: int = LARGE) -> bool:
    """Return whether a value has more characters as JSON than ``most``, about."""
    return weight(value, most) > most


def pieces(value: Any) -> Iterator[str]:
    """Yield the text of ``json_text.given_dump``, or one of the same value, in pieces.

    Args:
        value: A JSON value, which nothing changes meanwhile.
    """
    turns = Turns()
    for piece in _pieces(value, turns, 0):
        yield piece
        turns.give()


def _pieces(value: Any, turns: Turns, depth: int) -> Iterator[str]:
    if depth > _DEEPEST or not is_large(value, STEP):
        yield dump(value)
    elif isinstance(value, str):
        yield '"'
        for start in range(0, len(value), STEP):
            yield dump(value[start : start + STEP])[1:-1]
        yield '"'
    elif isinstance(value, list):
        yield from _array(value, turns, depth)
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        before = "{"
        for key, held in value.items():
            yield f"{before}{dump(key)}:"
            yield from _pieces(held, turns, depth + 1)
            before = ","
        yield "}"
    else:
        yield dump(value)


def _array(value: list[Any], turns: Turns, depth: int) -> Iterator[str]:
    before, together, size = "[", list[Any](), 0
    for number, item in enumerate(value):
        if not number % _TURN:
            turns.give()
        heavy = weight(item, STEP)
        if together and size + heavy > STEP:
            yield before + dump(together)[1:-1]
            before, together, size = ",", [], 0
        if heavy > STEP:
            yield before
            yield from _pieces(item, turns, depth + 1)
            before = ","
        else:
            together.append(item)
            size += heavy + _ITEM
    if together:
        yield before + dump(together)[1:-1]
    yield "]"
