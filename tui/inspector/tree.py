"""A JSON value as a tree of nodes that are made when they are first looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Key = str | int
Path = tuple[Key, ...]

OPEN_BUDGET = 400
"""Nodes that are unfolded at first, breadth first; the rest waits folded."""

LONG_STRING = 240
"""Characters from which a string starts folded to one line."""


class Node:
    """One value in the tree.

    Attributes:
        key: Its key or number in its parent; None for a root.
        open: Whether its children (or a long string's rows) are shown.
    """

    __slots__ = ("_children", "depth", "key", "open", "parent", "value")

    def __init__(self, key: Key | None, value: Any, parent: Node | None) -> None:
        """Make a folded node."""
        self.key, self.value, self.parent = key, value, parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.open = False
        self._children: list[Node] | None = None

    @property
    def is_container(self) -> bool:
        """Whether it is an object or array that holds something."""
        return isinstance(self.value, dict | list) and bool(self.value)

    @property
    def is_text(self) -> bool:
        """Whether it is a string that one line cannot be trusted to hold."""
        return isinstance(self.value, str) and (len(self.value) > 24 or "\n" in self.value)

    @property
    def foldable(self) -> bool:
        """Whether folding changes anything."""
        return self.is_container or self.is_text

    @property
    def children(self) -> list[Node]:
        """The nodes below it."""
        if self._children is None:
            value = self.value
            pairs: Any = ()
            if isinstance(value, dict):
                pairs = value.items()
            elif isinstance(value, list):
                pairs = enumerate(value)
            self._children = [Node(key, child, self) for key, child in pairs]
        return self._children

    @property
    def path(self) -> Path:
        """The keys from the root to it."""
        keys: list[Key] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            assert node.key is not None
            keys.append(node.key)
            node = node.parent
        return tuple(reversed(keys))

    def find(self, path: Path) -> Node | None:
        """Return the node at a path below it, or None."""
        node: Node | None = self
        for key in path:
            if node is None:
                return None
            node = next((child for child in node.children if child.key == key), None)
        return node

    def reveal(self) -> None:
        """Unfold all that is above it."""
        node = self.parent
        while node is not None:
            node.open = True
            node = node.parent

    def text(self) -> str:
        """Return what copying it gives: a string itself, anything else as JSON."""
        return self.value if isinstance(self.value, str) else as_json(self.value)


def as_json(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def path_text(path: Path, root: str = "$") -> str:
    """Return a path the way jq and JSONPath tools take it, such as ``$.input["a b"][0]``."""
    out = [root]
    for key in path:
        if isinstance(key, int):
            out.append(f"[{key}]")
        elif key.isidentifier():
            out.append(f".{key}")
        else:
            out.append(f"[{json.dumps(key, ensure_ascii=False)}]")
    return "".join(out)


def open_at_first(root: Node, *, budget: int = OPEN_BUDGET, depth: int = 6) -> None:
    """Unfold a tree from the top until the budget of nodes is spent."""
    waiting = [root]
    for node in waiting:
        if isinstance(node.value, str):
            node.open = len(node.value) <= LONG_STRING and node.value.count("\n") <= 6
            continue
        if not node.is_container or node.depth >= depth:
            continue
        budget -= len(node.value)
        if budget < 0 and node is not root:
            continue
        node.open = True
        waiting.extend(node.children)


def set_open(root: Node, is_open: bool, *, budget: int = 20_000) -> None:
    """Fold or unfold a node and what lies below it, up to ``budget`` nodes."""
    waiting = [root]
    for node in waiting:
        if budget <= 0:
            return
        node.open = is_open
        if node.is_container and (is_open or node._children is not None):
            waiting.extend(node.children)
            budget -= len(node.children)


def visible(root: Node, *, with_root: bool) -> Iterator[Node]:
    """Yield the nodes that folding leaves visible, in order."""
    stack = [root] if with_root else list(reversed(root.children))
    while stack:
        node = stack.pop()
        yield node
        if node.open and node.is_container:
            stack.extend(reversed(node.children))


def matches(value: Any, needle: str) -> Iterator[Path]:
    """Yield the paths whose key or scalar holds the needle, in document order.

    Args:
        value: The JSON value; nodes are not made for it.
        needle: What to look for, case-folded.
    """
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        key = path[-1] if path else None
        scalar = None if isinstance(item, dict | list) else as_scalar(item)
        if (isinstance(key, str) and needle in key.casefold()) or (
            scalar is not None and needle in scalar.casefold()
        ):
            yield path
        if isinstance(item, dict):
            stack.extend(reversed([((*path, name), child) for name, child in item.items()]))
        elif isinstance(item, list):
            stack.extend(reversed([((*path, at), child) for at, child in enumerate(item)]))


def as_scalar(value: Any) -> str:
    """Return a scalar as JSON writes it, a string without its quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
