"""The messages and parts of a session without their content, in arrays.

100,000 parts take a few megabytes. Parts and messages are numbered by their position
(``part``, ``message``: ints); rows are found by ``(message id, index)``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable
from sys import intern

from store.conversation.turns import NO_TURN
from store.engine.values import number
from store.queries.transcript import Outline
from store.rows import is_tool_type

HIDDEN, QUEUED, INHERITED, TURN, CANCELLED = 1, 2, 4, 8, 16
NONE, UNSETTLED, SETTLED, FAILED, DENIED, WAITING = range(6)
_STATES = {
    "input-streaming": UNSETTLED, "input-available": UNSETTLED, "approval-responded": UNSETTLED,
    "approval-requested": WAITING, "output-available": SETTLED, "output-error": FAILED,
    "output-denied": DENIED,
}
EMPTY_INDEX = -1
"""The index of the placeholder part of a message without parts."""
SILENT = frozenset({"step-start", "data-snapshot"})
"""Part types that take no line."""
_PROSE = frozenset({"text", "file", "source-url", "source-document"})
_OF_MESSAGE = ("message_ids", "roles", "origins", "flags", "created", "hidden_at")
"""Columns with a value for each message, which mean the same in every skeleton."""
_OF_PART = ("index", "sizes", "states")
"""The same for each part."""


class Skeleton:
    """Messages and parts of a session in display order; queued messages come last."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.message_ids: list[str] = []
        self.roles: list[str] = []
        self.origins: list[str] = []
        self.flags = bytearray()
        self.created = array("q")
        self.hidden_at = array("q")
        self.first = array("i")
        self.message = array("i")
        self.index = array("l")
        self.type_names: list[str] = []
        self.types = array("H")
        self.sizes = array("i")
        self.states = bytearray()
        self.turns = array("i")
        self.errors = array("i")
        self._type_codes: dict[str, int] = {}
        self._last: str | None = None
        self._known: set[str] | None = None
        """The ids of the messages; None until they are asked for."""

    def __len__(self) -> int:
        """Return how many parts there are."""
        return len(self.message)

    def add(self, outline: Outline, *, anew: bool = False) -> None:
        """Append a part, and its message where that is not the last one.

        Args:
            outline: The part and its message.
            anew: Whether it begins a message, be that the last one, too.
        """
        if anew or outline.message_id != self._last:
            self._begin(outline)
        part = len(self.message)
        self.message.append(len(self.message_ids) - 1)
        self.index.append(EMPTY_INDEX if outline.position is None else outline.position)
        self.types.append(self._type_code(outline.type or ""))
        self.sizes.append(outline.size)
        state = _STATES.get(outline.state or "", NONE)
        self.states.append(state)
        if state in (FAILED, DENIED) or outline.type == "data-error":
            self.errors.append(part)

    def _begin(self, outline: Outline) -> None:
        flags = HIDDEN if outline.hidden_at else 0
        flags |= QUEUED if outline.queued_at is not None else 0
        flags |= INHERITED if outline.inherited else 0
        flags |= CANCELLED if outline.cancelled_at is not None else 0
        if outline.role == "user" and not flags & (HIDDEN | QUEUED | CANCELLED) and (
            outline.origin not in NO_TURN
        ):
            flags |= TURN
            self.turns.append(len(self.message_ids))
        self._last = outline.message_id
        self.message_ids.append(outline.message_id)
        if self._known is not None:
            self._known.add(outline.message_id)
        self.roles.append(intern(outline.role))
        self.origins.append(outline.origin or "")
        self.flags.append(flags)
        self.created.append(number(outline.created_at))
        self.hidden_at.append(outline.hidden_at or 0)
        self.first.append(len(self.message))

    @property
    def ordered(self) -> int:
        """How many messages come before the queued ones, in the store's order."""
        message = len(self.flags)
        while message and self.flags[message - 1] & QUEUED:
            message -= 1
        return message

    def holds(self, start: int, stop: int, other: Skeleton) -> bool:
        """Return whether some messages equal those of another skeleton.

        Args:
            start: The first message.
            stop: The message after the last.
            other: Holds nothing but those messages.
        """
        first = self.first[start] if start < len(self.first) else len(self)
        last = self.first[stop] if stop < len(self.first) else len(self)
        return (
            all(getattr(self, name)[start:stop] == getattr(other, name) for name in _OF_MESSAGE)
            and all(getattr(self, name)[first:last] == getattr(other, name) for name in _OF_PART)
            and [self.type_of(part) for part in range(first, last)]
            == [other.type_of(part) for part in range(len(other))]
            and [part - first for part in self.first[start:stop]] == list(other.first)
        )

    def _type_code(self, name: str) -> int:
        code = self._type_codes.get(name)
        if code is None:
            code = self._type_codes[name] = len(self.type_names)
            self.type_names.append(name)
        return code

    def cut(self, message: int) -> None:
        """Remove a message and all that follow."""
        if message >= len(self.message_ids):
            return
        part = self.first[message]
        if self._known is not None:
            self._known.difference_update(self.message_ids[message:])
        for name in (*_OF_MESSAGE, "first"):
            del getattr(self, name)[message:]
        for name in (*_OF_PART, "message", "types"):
            del getattr(self, name)[part:]
        del self.turns[bisect_left(self.turns, message):]
        del self.errors[bisect_left(self.errors, part):]
        self._last = self.message_ids[-1] if self.message_ids else None

    def first_parts(self, count: int) -> Skeleton:
        """Return a skeleton of the first parts, which may end within a message."""
        found = Skeleton()
        messages = self.message[count - 1] + 1 if count else 0
        for name in (*_OF_MESSAGE, "first"):
            setattr(found, name, getattr(self, name)[:messages])
        for name in (*_OF_PART, "message", "types"):
            setattr(found, name, getattr(self, name)[:count])
        found.turns = self.turns[: bisect_left(self.turns, messages)]
        found.errors = self.errors[: bisect_left(self.errors, count)]
        found.type_names, found._type_codes = list(self.type_names), dict(self._type_codes)
        found._last = found.message_ids[-1] if messages else None
        return found

    def add_from(self, other: Skeleton, part: int) -> None:
        """Append a part of another skeleton, and its message where that is not the last one."""
        message = other.message[part]
        if other.message_ids[message] != self._last:
            self._last = other.message_ids[message]
            if other.flags[message] & TURN:
                self.turns.append(len(self.message_ids))
            for name in _OF_MESSAGE:
                getattr(self, name).append(getattr(other, name)[message])
            if self._known is not None:
                self._known.add(self._last)
            self.first.append(len(self.message))
        here = len(self.message)
        self.message.append(len(self.message_ids) - 1)
        self.types.append(self._type_code(other.type_of(part)))
        for name in _OF_PART:
            getattr(self, name).append(getattr(other, name)[part])
        if self.states[here] in (FAILED, DENIED) or other.type_of(part) == "data-error":
            self.errors.append(here)

    def type_of(self, part: int) -> str:
        """Return the type of a part, "" for a message without parts."""
        return self.type_names[self.types[part]]

    def key(self, part: int) -> tuple[str, int]:
        """Return the message id and index of a part."""
        return self.message_ids[self.message[part]], self.index[part]

    def flags_of(self, part: int) -> int:
        """Return the flags of the message that holds a part."""
        return self.flags[self.message[part]]

    def parts_of(self, message: int) -> range:
        """Return the parts of a message."""
        stop = self.first[message + 1] if message + 1 < len(self.first) else len(self.message)
        return range(self.first[message], stop)

    def first_of(self, message_ids: Collection[str]) -> int:
        """Return the first of some messages; how many messages there are where it has none."""
        if self._known is None:
            self._known = set(self.message_ids)
        first = len(self.message_ids)
        left = len(self._known.intersection(message_ids))
        # What was written lies nearly always near the end.
        while left:
            first -= 1
            left -= self.message_ids[first] in message_ids
        return first

    def locate(self, message_id: str, index: int | None = None) -> int | None:
        """Return the part with a key (the message's first without index), or None."""
        try:
            message = self.message_ids.index(message_id)
        except ValueError:
            return None
        parts = self.parts_of(message)
        if index is None:
            return parts.start
        return next((part for part in parts if self.index[part] == index), parts.start)

    def turn_of(self, message: int) -> int:
        """Return the number of the turn that a message belongs to, 0 before the first."""
        return bisect_right(self.turns, message)

    def is_tool(self, part: int) -> bool:
        """Return whether a part is a tool call."""
        return is_tool_type(self.type_of(part))

    def has_type(self, fits: Callable[[str], bool]) -> bool:
        """Return whether a part has a type that fits; a type is judged once, not each part."""
        return any(code in self.types
                   for name, code in self._type_codes.items() if fits(name))

    def is_prose(self, part: int) -> bool:
        """Return whether a part is text or belongs to it (files, sources)."""
        return self.type_of(part) in _PROSE


def append(skeleton: Skeleton, outlines: Iterable[Outline]) -> None:
    """Add outlines in store order to a skeleton; queued messages go to the end."""
    queued = []
    for outline in outlines:
        if outline.cancelled_at is not None and outline.hidden_at:
            continue
        if outline.queued_at is not None:
            queued.append(outline)
        else:
            skeleton.add(outline)
    for outline in queued:
        skeleton.add(outline)


def build(outlines: Iterable[Outline]) -> Skeleton:
    """Make a skeleton of outlines in store order; queued messages go to the end."""
    skeleton = Skeleton()
    append(skeleton, outlines)
    return skeleton
