"""A JSON value as a tree: nodes that are made when they are looked at, and a block of lines."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from store.text.neutral import with_escapes
from tui.kit.blocks import Block
from tui.kit.key_hints import keyed
from tui.kit.lines import Line, Run, Value
from tui.kit.text import cells, clean, one_line
from tui.kit.wrap import WrappedText

Key = str | int
Path = tuple[Key, ...]

OPEN_BUDGET = 400
"""Nodes that are unfolded at first, breadth first; the rest waits folded."""

LONG_STRING = 240
"""Characters from which a string starts folded to one line."""

LONGEST_HEAD = 2000
"""Characters of a long string that its own line can show."""
STRING_ROWS = 12
"""Rows of an unfolded string that a short block shows before it counts the rest."""


class Node:
    """One value in the tree.

    Attributes:
        key: Its key or number in its parent; None for a root.
        open: Whether its children (or a long string's rows) are shown.
    """

    __slots__ = ("_children", "depth", "key", "open", "parent", "value")

    def __init__(self, key: Key | None, value: Any, parent: Node | None) -> None:
        """Make a folded node.

        Args:
            key: Its key or number in its parent; None for a root.
            value: A decoded JSON value.
            parent: The node above it.
        """
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
        """Whether it is a string that may need more than one line."""
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
    """Unfold a tree from the top until the budget of nodes is spent.

    Args:
        root: The tree.
        budget: How many nodes may show.
        depth: Levels that may unfold.
    """
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
    """Fold or unfold a node and what lies below it, up to ``budget`` nodes.

    Args:
        root: The node.
        is_open: Whether to unfold.
        budget: How many nodes to change at most.
    """
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


class Tree(Block):
    """A JSON tree whose nodes fold.

    The lines of a node carry the node as their ``fold`` and its value.
    """

    def __init__(
        self, root: Node, *, name: str = "", with_root: bool = False, rows: int | None = None,
        indent: int = 0, escapes: bool = False,
    ) -> None:
        """Take a tree.

        Args:
            root: The tree; folded or unfolded as it is.
            name: What paths start with in place of ``$``, such as ``$.input``.
            with_root: Show the root's own line (a scalar root always is).
            rows: Rows that an unfolded string shows at most; None shows all.
            indent: Cells before each line.
            escapes: Show controls and invisible characters as escapes, not as stand-ins.
        """
        self._shown = with_escapes if escapes else str
        self.root, self._name, self._rows, self._indent = root, name or "$", rows, indent
        self._with_root = with_root or not root.is_container
        self._texts: dict[int, WrappedText] = {}
        self._width = -1
        self._nodes: list[Node] = []
        self._ends: list[int] = []

    @classmethod
    def of(cls, value: object, *, name: str = "", rows: int | None = None, indent: int = 0) -> Tree:
        """Return a tree of a value, unfolded until the budget of nodes is spent.

        Args:
            value: A decoded JSON value.
            name: What paths start with in place of ``$``.
            rows: Rows that an unfolded string shows at most; None shows all.
            indent: Cells before each line.
        """
        root = Node(None, value, None)
        open_at_first(root)
        return cls(root, name=name, rows=rows, indent=indent)

    def changed(self) -> None:
        """Work out the lines anew: a node folded or unfolded."""
        self._width = -1

    def _shift(self, node: Node) -> int:
        return self._indent + 2 * (node.depth - (0 if self._with_root else 1))

    def _fits(self, node: Node, width: int) -> bool:
        label = 0 if node.key is None else cells(str(node.key)) + 2
        text = self._shown(node.value)
        space = width - self._shift(node) - 2 - label - 2
        return len(text) <= space and "\n" not in text and cells(clean(text)) <= space

    def _wrapped(self, node: Node) -> WrappedText:
        wrapped = self._texts.get(id(node))
        if wrapped is None:
            wrapped = self._texts[id(node)] = WrappedText(self._shown(node.value))
        return wrapped

    def _text_width(self, node: Node, width: int) -> int:
        return max(4, width - self._shift(node) - 4)

    def _height_of(self, node: Node, width: int) -> int:
        if not (node.open and node.is_text) or self._fits(node, width):
            return 1
        rows = self._wrapped(node).height(self._text_width(node, width))
        if self._rows is not None and rows > self._rows + 1:
            rows = self._rows + 1
        return 1 + rows

    def height(self, width: int) -> int:
        """Return the number of lines."""
        if width != self._width:
            self._width = width
            self._nodes = list(visible(self.root, with_root=self._with_root))
            heights = (self._height_of(node, width) for node in self._nodes)
            self._ends = list(accumulate(heights))
        return self._ends[-1] if self._ends else 0

    def find(self, needle: str, width: int) -> list[Path]:
        """Return the paths of keys and values that hold the needle, folded ones too."""
        return list(matches(self.root.value, needle))

    def locate(self, spot: Path, width: int) -> int:
        """Return the line of a node, after unfolding what is above it."""
        node = self.root.find(spot)
        if node is None or (node is self.root and not self._with_root):
            return 0
        node.reveal()
        self.changed()
        return self.line_of(node, width)

    def line_of(self, node: Node, width: int) -> int:
        """Return the number of a visible node's first line."""
        self.height(width)
        at = next(at for at, shown in enumerate(self._nodes) if shown is node)
        return self._ends[at - 1] if at else 0

    def line(self, number: int, width: int) -> Line:
        """Return a node's line, or a row of its unfolded string."""
        self.height(width)
        at = bisect_right(self._ends, number)
        node = self._nodes[at]
        row = number - (self._ends[at - 1] if at else 0)
        path = path_text(node.path, self._name)
        suffix = ".txt" if isinstance(node.value, str) else ".json"
        value = Value(path.removeprefix("$."), node.text, suffix, path)
        if row:
            return self._text_row(node, row - 1, width, value)
        return Line(self._head(node, width), self._facts(node, width), value, fold=node)

    def _text_row(self, node: Node, row: int, width: int, value: Value) -> Line:
        inner = self._text_width(node, width)
        pad = " " * (self._shift(node) + 4)
        text = self._wrapped(node)
        shown = text.row(row, inner)
        if self._rows is not None and row == self._rows and text.height(inner) > self._rows + 1:
            left = len(text.lines) - shown.source
            rest = f"… {left:,} more line{'' if left == 1 else 's'}"
            hint = f"  {keyed('inspector.open', 'opens all')}"
            runs: tuple[Run, ...] = ((pad + rest, "muted"), (hint, "faint"))
            return Line(runs, value=value, fold=node)
        return Line(((pad, "text"), (shown.text, "ok")), value=value, fold=node,
                    soft=shown.soft, lead=len(pad), tail=shown.tail)

    def _head(self, node: Node, width: int) -> tuple[Run, ...]:
        long = node.is_text and not self._fits(node, width)
        mark = ("▾ " if node.open else "▸ ") if node.is_container or long else "  "
        runs: list[Run] = [(" " * self._shift(node) + mark, "faint")]
        if node.key is not None:
            ink = "user" if isinstance(node.key, str) else "faint"
            runs += [(one_line(self._shown(str(node.key))), ink), (": ", "faint")]
        runs += self._value_runs(node, long)
        return tuple(runs)

    def _value_runs(self, node: Node, long: bool) -> list[Run]:
        value = node.value
        if isinstance(value, dict | list):
            marks = "{}" if isinstance(value, dict) else "[]"
            if not value:
                return [(marks, "muted")]
            if node.open:
                return []
            keys = self._shown(", ".join(map(str, list(value)[:6])))
            inside = one_line(keys) if marks == "{}" else "…"
            return [(f"{marks[0]}{inside}{marks[1]}", "muted")]
        if isinstance(value, str):
            if long and node.open:
                return []
            text = self._shown(value[:LONGEST_HEAD] if long else value)
            return [(f'"{one_line(text)}"' if long else f'"{clean(text)}"', "ok")]
        ink = "tool" if isinstance(value, int | float) and not isinstance(value, bool) else "fork"
        return [(as_scalar(value), ink)]

    def _facts(self, node: Node, width: int) -> tuple[Run, ...]:
        value = node.value
        if isinstance(value, dict | list) and value and not node.open:
            noun = "key" if isinstance(value, dict) else "item"
            return ((f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}", "faint"),)
        if node.is_text and not self._fits(node, width):
            lines = value.count("\n") + 1
            if lines > 1:
                return ((f"{lines:,} lines", "faint"),)
            return () if node.open else ((f"{len(value):,} characters", "faint"),)
        return ()
