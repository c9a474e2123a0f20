"""Lays out messages that are a tree by their parents: one path is shown, the rest is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class TreeNode(NamedTuple):
    """A message of a tree.

    Attributes:
        parent: The id of the one before; None, or an id that is not there, for a first one.
        at: Epoch ms; None where it has no time of its own.
    """

    id: str
    parent: str | None
    at: int | None


class LaidOut(NamedTuple):
    """A message in its place.

    Attributes:
        at: Its own time, else that of the one before it in its branch.
        hidden_at: When its branch was left, epoch ms; None on the path that is shown.
    """

    id: str
    at: int
    hidden_at: int | None


def path_to(nodes: Sequence[TreeNode], leaf: str | None) -> list[str]:
    """Return the ids from a first message to one; a loop ends it."""
    parents = {node.id: node.parent for node in nodes}
    found: dict[str, None] = {}
    while leaf in parents and leaf not in found and leaf is not None:
        found[leaf] = None
        leaf = parents[leaf]
    return list(reversed(found))


def newest_leaf(nodes: Sequence[TreeNode]) -> str | None:
    """Return the message with no other behind it that is the latest; None where there is none."""
    inner = {node.parent for node in nodes}
    leaves = [node for node in nodes if node.id not in inner] or list(nodes)
    return max(reversed(leaves), key=lambda node: node.at or 0).id if leaves else None


def laid_out(nodes: Sequence[TreeNode], path: Sequence[str], start: int) -> list[LaidOut]:
    """Return all messages by time, each behind the one that it follows.

    Args:
        nodes: The messages, each id once.
        path: The ids that are shown, from the first one on.
        start: The time of messages before which none has one, epoch ms.
    """
    known = {node.id: node for node in nodes}
    children: dict[str | None, list[TreeNode]] = {}
    for node in nodes:
        parent = node.parent if node.parent in known and node.parent != node.id else None
        children.setdefault(parent, []).append(node)
    shown, following = set(path), dict(zip([None, *path], path, strict=False))
    times: dict[str, int] = {}
    left: dict[str, str | None] = {}

    def take(first: TreeNode) -> None:
        waiting = [first]
        while waiting:
            node = waiting.pop()
            if node.id in times:
                continue
            times[node.id] = max(node.at or 0, times.get(node.parent or "", 0)) or start
            if node.id not in shown:
                before = node.parent if node.parent in known else None
                left[node.id] = left[before] if before in left else following.get(before)
            behind = sorted(children.get(node.id, ()), key=lambda each: each.at or 0, reverse=True)
            waiting += behind

    for node in [*sorted(children.get(None, ()), key=lambda each: each.at or 0), *nodes]:
        take(node)  # The second round finds those that are in a loop.
    last = max(times.values(), default=start)
    found = [
        LaidOut(name, at, None if name in shown else times.get(left[name] or "", last))
        for name, at in times.items()
    ]
    return sorted(found, key=lambda each: each.at)
