"""The entries of a pi session as the tree they are: which are on the active path, which left.

Source: the pi section of the format page: the leaf is the last entry, branches live in one
file, and a fork may name parents that it does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.branches import active_path, left_branches
from store.sources.base.json_lines import Record
from store.sources.base.values import epoch_ms, mapping, string


@dataclass(slots=True)
class Entry:
    """One line after the header.

    Attributes:
        id: The line's own, or one by its place before version 2; unique here.
        parent: The id of the entry before it, None for a first one.
        at: Epoch ms.
        number: Of its record.
    """

    id: str
    parent: str | None
    type: str
    at: int
    number: int
    data: dict[str, Any]


@dataclass(slots=True)
class Tree:
    """A session's entries.

    Attributes:
        header: The first line that is one.
        header_number: Its record, None where there is no header.
        entries: In file order.
        path: The ids of the entries on the active path.
        left: By id of those that are not, when their branch was left, epoch ms.
        broken: The parent that the path's first entry names and that is not there.
        lines: How many lines were taken.
    """

    header: dict[str, Any] = field(default_factory=dict)
    header_number: int | None = None
    entries: list[Entry] = field(default_factory=list)
    path: set[str] = field(default_factory=set)
    left: dict[str, int] = field(default_factory=dict)
    broken: str | None = None
    lines: int = 0
    _known: dict[str, Entry] = field(default_factory=dict)
    _at: int = 0
    _next: int = 0
    _damaged: bool = False

    def grow(self, lines: list[Record]) -> None:
        """Take what a file's lines are more than before; find the active path anew."""
        for line in lines[self.lines :]:
            self._take(line)
        self.lines = len(lines)
        self.path, self.broken = set(), None
        _walk(self, self._known)
        self.left = left_branches(self.entries, self.path, self._known)

    def _take(self, line: Record) -> None:
        data = line.data
        self._damaged = self._damaged or line.number != self._next
        self._next = line.number + 1
        if data.get("type") == "session" and not self.header:
            self.header, self.header_number = data, line.number
            self._at = epoch_ms(data.get("timestamp")) or self._at
            return
        if data == self.header:
            return
        self._at = _time(data) or self._at
        before = self.entries[-1].id if self.entries else None
        name = string(data.get("id"))
        if name in self._known and self._known[name or ""].data == data:
            # A copy was appended to the file: the line says nothing new.
            return
        parent = string(data.get("parentId")) if "parentId" in data or name else before
        is_lost = parent is not None and parent not in self._known
        whole_fork = "parentSession" in self.header and not self._damaged
        if is_lost and before is not None and not whole_fork:
            # The parent's line is damaged or has no id; a fork may leave lines out.
            parent = before
        if name is None or name in self._known:
            name = line.name
        kind = string(data.get("type")) or "unknown"
        entry = Entry(name, parent, kind, self._at, line.number, data)
        self.entries.append(entry)
        self._known[name] = entry


def _time(data: dict[str, Any]) -> int | None:
    return epoch_ms(data.get("timestamp")) or epoch_ms(
        mapping(data.get("message")).get("timestamp")
    )


def _walk(tree: Tree, known: dict[str, Entry]) -> None:
    """Find the active path, from the leaf up to a root or to a parent that is not there."""
    if not tree.entries:
        return
    leaf = tree.entries[-1]
    current: Entry | None = leaf
    if leaf.type == "leaf":
        # A pointer that a newer version moves without adding an entry to the branch.
        target = string(leaf.data.get("targetId"))
        last = next((each for each in reversed(tree.entries) if each.type != "leaf"), None)
        # Where the line that it points to is lost, all lines count.
        current = known.get(target, last) if target else None
    tree.path, tree.broken = active_path(current, known)
    tree.path.add(leaf.id)
