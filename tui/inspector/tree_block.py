"""Draws a JSON tree as a block of lines: keys, values, fold marks, long strings in rows."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from rich.cells import cell_len

from store.text.neutral import with_escapes
from tui.inspector.lines import Line, Run, Value
from tui.inspector.tree import (
    Node,
    Path,
    as_scalar,
    matches,
    open_at_first,
    path_text,
    visible,
)
from tui.inspector.wrap import WrappedText
from tui.kit.text import clean, one_line

LONGEST_HEAD = 2000
"""Characters of a long string that its own line can show."""
STRING_ROWS = 12
"""Rows of an unfolded string that a short block shows before it tells of the rest."""


class Tree:
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
            escapes: Show controls and what nobody sees as escapes, not as stand-ins.
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
        """Return a tree of a value, unfolded as far as suits the eye."""
        root = Node(None, value, None)
        open_at_first(root)
        return cls(root, name=name, rows=rows, indent=indent)

    def changed(self) -> None:
        """Work out the lines anew: a node folded or unfolded."""
        self._width = -1

    def _shift(self, node: Node) -> int:
        return self._indent + 2 * (node.depth - (0 if self._with_root else 1))

    def _fits(self, node: Node, width: int) -> bool:
        label = 0 if node.key is None else cell_len(str(node.key)) + 2
        text = self._shown(node.value)
        space = width - self._shift(node) - 2 - label - 2
        return len(text) <= space and "\n" not in text and cell_len(clean(text)) <= space

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
        shown, source, soft = text.row(row, inner)
        if self._rows is not None and row == self._rows and text.height(inner) > self._rows + 1:
            left = len(text.lines) - source
            told = f"… {left:,} more line{'' if left == 1 else 's'}"
            runs: tuple[Run, ...] = ((pad + told, "muted"), ("  v opens all", "faint"))
            return Line(runs, value=value, fold=node)
        return Line(((pad, "text"), (shown, "ok")), value=value, fold=node, soft=soft)

    def _head(self, node: Node, width: int) -> tuple[Run, ...]:
        long = node.is_text and not self._fits(node, width)
        mark = ("▾ " if node.open else "▸ ") if node.is_container or long else "  "
        runs: list[Run] = [(" " * self._shift(node) + mark, "faint")]
        if node.key is not None:
            look = "user" if isinstance(node.key, str) else "faint"
            runs += [(one_line(self._shown(str(node.key))), look), (": ", "faint")]
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
        look = "tool" if isinstance(value, int | float) and not isinstance(value, bool) else "fork"
        return [(as_scalar(value), look)]

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
