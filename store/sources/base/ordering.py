"""The order of rows whose ids carry a stamp that wraps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")
_ID = re.compile(r"[a-z]+_([0-9a-f]{12})")
_HALF = 1 << 47
_WHOLE = 1 << 48


def in_order(
    items: Iterable[_Item], name: Callable[[_Item], str], at: Callable[[_Item], int]
) -> list[_Item]:
    """Return items by time, those of one time by id, also where the ids wrapped between.

    An id's stamp is ``ms * 4096 + counter`` cut to 48 bits, so ids after a wrap sort before
    those of a moment ago (the common model page, finding 1): within a group of one time
    they are put by their distance from one another.

    Args:
        items: The items.
        name: Returns an item's id.
        at: Returns an item's time, epoch ms.
    """
    found = sorted(items, key=lambda item: (at(item), name(item)))
    result: list[_Item] = []
    start = 0
    for end in range(1, len(found) + 1):
        if end == len(found) or at(found[end]) != at(found[start]):
            result += _unwrapped(found[start:end], name)
            start = end
    return result


def _unwrapped(group: list[_Item], name: Callable[[_Item], str]) -> list[_Item]:
    if len(group) < 2:
        return group
    stamps = [found[1] if (found := _ID.match(name(item))) else None for item in group]
    if None in stamps:
        return group
    first = int(stamps[0] or "0", 16)

    def place(position: int) -> tuple[int, str]:
        distance = (int(stamps[position] or "0", 16) - first + _HALF) % _WHOLE
        return distance, name(group[position])

    return [group[position] for position in sorted(range(len(group)), key=place)]
