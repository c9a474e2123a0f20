"""Find the next part of a kind: part, message, turn, tool call, error."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tui.transcript.document import Document
from tui.transcript.skeleton import TURN

Find: TypeAlias = Callable[[Document, int, int], int | None]
"""Takes a document, a part and a step of 1 or -1; returns the part found, None or the start."""


def part(document: Document, start: int, step: int) -> int:
    """Return the next part that takes lines, ``start`` where there is none.

    Args:
        document: The session.
        start: The part to start from.
        step: 1 for the next one, -1 for the previous one.
    """
    found = start + step
    while 0 <= found < len(document):
        if document.shows(found):
            return found
        found += step
    return start


def message(document: Document, start: int, step: int) -> int:
    """Return the first shown part of the next message; going back, first of this one.

    Args:
        document: The session.
        start: The part to start from.
        step: 1 for the next one, -1 for the previous one.
    """
    skeleton = document.skeleton
    if not len(skeleton):
        return start
    number = skeleton.message[start]
    first = _first_shown(document, number)
    if step < 0 and first is not None and start > first:
        return first
    number += step
    while 0 <= number < len(skeleton.message_ids):
        first = _first_shown(document, number)
        if first is not None:
            return first
        number += step
    return start


def _first_shown(document: Document, number: int) -> int | None:
    return next((p for p in document.skeleton.parts_of(number) if document.shows(p)), None)


def turn(document: Document, start: int, step: int) -> int:
    """Return the next user turn; going back, the start of this one first.

    Args:
        document: The session.
        start: The part to start from.
        step: 1 for the next one, -1 for the previous one.
    """
    skeleton = document.skeleton
    if not skeleton.turns:
        return start
    number = skeleton.message[start]
    if step > 0:
        place = bisect_right(skeleton.turns, number)
    else:
        inside = start > skeleton.first[number] or not skeleton.flags[number] & TURN
        place = bisect_right(skeleton.turns, number) - (1 if inside else 2)
    if not 0 <= place < len(skeleton.turns):
        return start
    return skeleton.first[skeleton.turns[place]]


def tool(document: Document, start: int, step: int) -> int:
    """Return the next tool call.

    Args:
        document: The session.
        start: The part to start from.
        step: 1 for the next one, -1 for the previous one.
    """
    found = start + step
    while 0 <= found < len(document):
        if document.skeleton.is_tool(found) and document.shows(found):
            return found
        found += step
    return start


def listed(parts: Sequence[int], start: int, step: int) -> int | None:
    """Return the next of a sorted list of parts, None where there is none.

    Args:
        parts: In order.
        start: The part to start from.
        step: 1 for the next one, -1 for the previous one.
    """
    place = bisect_right(parts, start) if step > 0 else bisect_left(parts, start) - 1
    return parts[place] if 0 <= place < len(parts) else None


def error(document: Document, start: int, step: int) -> int | None:
    """Return the next failed or denied call or error that is shown.

    Args:
        document: The session.
        start: The part to start from.
        step: 1 for the next one, -1 for the previous one.
    """
    found: int | None = start
    while found is not None:
        found = listed(document.skeleton.errors, found, step)
        if found is not None and document.shows(found):
            return found
    return None
