"""How session files begin: whose they are, since when, and with which turn.

Copies of a session begin with its first turn, which has an id of its own; the context
before it has the same one in every session (the Gemini CLI format page, section 4.2).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store.sources.base.growing import LINES, entries_of
from store.sources.base.json_lines import LineError, parse_line
from store.sources.base.values import mapping, string
from store.sources.gemini.content import kind_of
from store.system.paths import open_regular

TURNS = ("user", "gemini")
_HEAD = 1 << 18
_OBJECT_LIMIT = 64 << 20


class Head(NamedTuple):
    """How a file begins.

    Attributes:
        started: As the header has it: in one form, so it sorts as text.
        turn: The id of its first turn.
    """

    started: str
    path: str
    session_id: str
    turn: str


@dataclass(slots=True)
class _Folder:
    """A folder's files, as of a time.

    Attributes:
        by_turn: How those begin that have a turn.
        without: Those that have none yet.
    """

    moved: int
    by_turn: dict[str, list[Head]] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)


class Heads:
    """Reads each beginning once; a folder anew when files came or went."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._folders: dict[str, _Folder] = {}
        self._heads: dict[str, Head] = {}

    def beginning_with(self, project: str, turn: str) -> list[Head]:
        """Return how the sessions of a project begin that have a first turn."""
        folder = self._folder(os.path.join(project, "chats"))
        return list(folder.by_turn.get(turn, ())) if folder is not None else []

    def _folder(self, path: str) -> _Folder | None:
        try:
            moved = os.stat(path).st_mtime_ns
        except OSError:
            return None
        known = self._folders.get(path)
        if known is None or known.moved != moved:
            known = self._folders[path] = _Folder(moved)
            known.without = [
                entry.path
                for entry in entries_of(path)
                if entry.name.startswith("session-") and entry.name.endswith((LINES, ".json"))
            ]
        waiting, known.without = known.without, []
        for file in waiting:
            head = self._heads.get(file) or _head_of(file)
            if head is None:
                known.without.append(file)
            else:
                self._heads[file] = head
                known.by_turn.setdefault(head.turn, []).append(head)
        return known


def _head_of(path: str) -> Head | None:
    """Return how a file begins; None while it has no turn."""
    session_id = started = None
    for data in _rows(path):
        if session_id is None and string(data.get("sessionId")):
            session_id, started = data["sessionId"], string(data.get("startTime")) or ""
        bag = data if "messages" in data else mapping(data.get("$set"))
        inner = bag.get("messages")
        for row in inner if isinstance(inner, list) else (data,):
            found = mapping(row)
            is_turn = "type" in found and kind_of(found) in TURNS
            if session_id and is_turn and string(found.get("id")):
                return Head(started or "", path, session_id, found["id"])
    return None


def _rows(path: str) -> Iterator[dict[str, Any]]:
    whole = not path.endswith(LINES)
    try:
        with open_regular(path) as file:
            body = file.read(_OBJECT_LIMIT if whole else _HEAD)
    except OSError:
        return
    for line in [body] if whole else body.split(b"\n")[:-1]:
        try:
            yield parse_line(line)[0]
        except LineError:
            continue
