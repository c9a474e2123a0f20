"""Records that name the one before them: which are on the active path, and which were left.

A program that goes on from an earlier record leaves what followed it; nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol


class Node(Protocol):
    """One record of such a tree."""

    @property
    def id(self) -> str:
        """Its name, unique in the tree."""
        ...

    @property
    def parent(self) -> str | None:
        """The name of the record before it; None for a first one."""
        ...

    @property
    def at(self) -> int:
        """Epoch ms."""
        ...


def active_path(leaf: Node | None, known: Mapping[str, Node]) -> tuple[set[str], str | None]:
    """Return the names of the records from a leaf up to where its path begins.

    Args:
        leaf: The last record of the path; None where there is none.
        known: All records by name.

    Returns:
        The names, and the parent that the first of them names and that is not there, if any.
    """
    path: set[str] = set()
    current = leaf
    while current is not None and current.id not in path:
        path.add(current.id)
        if current.parent is None:
            break
        if current.parent not in known:
            return path, current.parent
        current = known[current.parent]
    return path, None


def left_branches(
    entries: Iterable[Node], path: set[str], known: Mapping[str, Node]
) -> dict[str, int]:
    """Return when each record that is not on the path was left, epoch ms.

    All that branched off at one record get one time, and no two such records the same.

    Args:
        entries: In file order.
        path: As ``active_path`` returns it.
        known: All records by name.
    """
    points: dict[str, str | None] = {}
    times: dict[str | None, int] = {}
    went_on: dict[str | None, int] = {}
    for entry in entries:
        parent = entry.parent
        if entry.id in path:
            went_on.setdefault(parent if parent in path else None, entry.at)
            continue
        is_first = parent is None or parent not in known or parent in path
        above = parent if is_first else points.get(str(parent))
        point = points[entry.id] = above if above in path else None
        times[point] = max(times.get(point, 0), entry.at)
    used: set[int] = set()
    for point, last in times.items():
        at = went_on.get(point) or last + 1
        while at in used:
            at += 1
        used.add(at)
        times[point] = at
    return {name: times[point] for name, point in points.items()}
