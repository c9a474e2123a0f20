"""A chat as a log of changes: what it holds now, and the turns that were cut out of it.

Source: the page on Copilot Chat in VS Code, section 2. A line sets a value at a path, appends to
a list after cutting it, deletes a value, or is the whole state, which may come again in the
middle. Restoring a checkpoint cuts the list of requests; the cut ones stand earlier in the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.json_lines import Record
from store.sources.base.values import string

REQUESTS = "requests"
_WHOLE, _SET, _PUSH, _DELETE = range(4)
_KINDS = (_WHOLE, _SET, _PUSH, _DELETE)


@dataclass(slots=True)
class Turn:
    """A request, and what the file says of it.

    Attributes:
        request: As it is now, or was when it was cut out.
        records: Numbers of the records that say something of it.
        cut: Number of the record that took it out; None while it is part of the chat.
    """

    request: dict[str, Any]
    records: list[int] = field(default_factory=list)
    cut: int | None = None

    def note(self, record: int) -> None:
        """Add the number of a record."""
        if record not in self.records[-1:]:
            self.records.append(record)


class ChatLog:
    """What the lines of a log say, as far as they were taken.

    Attributes:
        state: The chat as it is now; None before the first whole state.
        turns: All requests in the order in which they came, those that were cut out too.
        odd: Each line that is no change of this chat, with the reason.
    """

    def __init__(self) -> None:
        """Start without lines."""
        self.state: dict[str, Any] | None = None
        self.turns: list[Turn] = []
        self.odd: list[tuple[int, str]] = []
        self._live: list[Turn | None] = []
        self._known: dict[str, Turn] = {}
        self._lines: list[Record] | None = None
        self._taken = 0

    def bring_up(self, lines: list[Record]) -> bool:
        """Take what a list of lines is more than before.

        Returns:
            False where it is another list: only a new log can take that.
        """
        if self._lines is not None and self._lines is not lines:
            return False
        self._lines = lines
        for record in lines[self._taken :]:
            self.take(record)
        self._taken = len(lines)
        return True

    def take(self, record: Record) -> None:
        """Take the next line."""
        reason = self._apply(record.data, record.number)
        if reason is not None:
            self.odd.append((record.line, reason))

    def _apply(self, change: dict[str, Any], number: int) -> str | None:
        """Apply a change; return why it cannot be."""
        kind, path, value = change.get("kind"), change.get("k"), change.get("v")
        if type(kind) is not int or kind not in _KINDS:
            return "a change of an unknown kind"
        if kind == _WHOLE or (kind == _SET and path == []):
            if not isinstance(value, dict):
                return "no state of a chat"
            self.state = value
            self._compare(number)
            return None
        if self.state is None:
            return "a change before the state of the chat"
        if not isinstance(path, list) or not path:
            return "a change without a path"
        holder = self._at(path[:-1])
        if not _may_hold(holder, path[-1]):
            return "a change at a path that is not there"
        if kind == _PUSH:
            reason = _push(holder, path[-1], value, change.get("i"), is_new=len(path) == 1)
            if reason is not None:
                return reason
        elif kind == _DELETE or "v" not in change:
            _delete(holder, path[-1])
        else:
            _set(holder, path[-1], value)
        if path[0] == REQUESTS:
            self._note(path, number)
        return None

    def _at(self, path: list[Any]) -> Any:
        found: Any = self.state
        for key in path:
            if isinstance(found, dict) and isinstance(key, str):
                found = found.get(key)
            elif isinstance(found, list) and type(key) is int and 0 <= key < len(found):
                found = found[key]
            else:
                return None
        return found

    def _note(self, path: list[Any], number: int) -> None:
        if len(path) <= 2:
            self._compare(number)
        elif type(path[1]) is int and path[1] < len(self._live):
            turn = self._live[path[1]]
            if turn is not None:
                turn.note(number)

    def _compare(self, number: int) -> None:
        """Find out which requests came and which were cut out, by a record."""
        listed = self.state.get(REQUESTS) if self.state is not None else None
        requests = listed if isinstance(listed, list) else []
        keys: dict[str, None] = {}
        self._live = []
        for place, request in enumerate(requests):
            if not isinstance(request, dict):
                self._live.append(None)
                continue
            name = string(request.get("requestId")) or f"#{place}"
            key = name if name not in keys else f"{name}#{place}"
            keys[key] = None
            turn = self._known.get(key)
            if turn is None:
                turn = self._known[key] = Turn(request, [number])
                self.turns.append(turn)
            elif turn.request is not request or turn.cut is not None:
                turn.request, turn.cut = request, None
                turn.note(number)
            self._live.append(turn)
        for key, turn in self._known.items():
            if turn.cut is None and key not in keys:
                turn.cut = number
                turn.note(number)


def _may_hold(holder: Any, key: Any) -> bool:
    if isinstance(holder, dict):
        return isinstance(key, str)
    return isinstance(holder, list) and type(key) is int and 0 <= key <= len(holder)


def _set(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, list) and key == len(holder):
        holder.append(value)
    else:
        holder[key] = value


def _delete(holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder.pop(key, None)
    elif key < len(holder):
        # As in JavaScript, the others keep their places.
        holder[key] = None


def _push(
    holder: Any, key: Any, items: Any, length: Any, *, is_new: bool = False
) -> str | None:
    """Cut a list and append to it; return why that cannot be.

    Args:
        holder: What has the list.
        key: Where.
        items: What is appended.
        length: What the list is cut to; None leaves it.
        is_new: Whether requests that are there already are left out: their line came twice.
    """
    if length is not None and (type(length) is not int or length < 0):
        return "a list is cut to no length"
    there = isinstance(holder, dict) or key < len(holder)
    found = (holder.get(key) if isinstance(holder, dict) else holder[key]) if there else None
    if not isinstance(found, list):
        found = []
        _set(holder, key, found)
    if length is not None:
        del found[length:]
    pushed = items if isinstance(items, list) else []
    there_now = {name for one in found if is_new and (name := _request_id(one))}
    found += [one for one in pushed if _request_id(one) not in there_now]
    return None


def _request_id(request: Any) -> str | None:
    """Return the id of a request, also of one that waits."""
    if not isinstance(request, dict):
        return None
    return string(request.get("requestId")) or string(request.get("id"))
