"""Draws a family as the lines of a tree; only lines that are seen are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from store.queries.lineage import FamilyNode, LineageKind
from store.queries.tree_facts import Label, NodeFacts
from store.text import figures
from tui.kit.blocks import Block, Spot
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Link, Run, cut
from tui.kit.masked import shown
from tui.kit.text import one_line
from tui.words.sessions import age

DEEPEST = 12
"""Levels whose rails are drawn; deeper ones are drawn as deep as these."""
LOOKS: dict[LineageKind, str] = {
    "fork": "fork", "subagent": "assistant", "continuation": "user", "unknown": "muted",
    "root": "text",
}


class Column(NamedTuple):
    """A column at the right of a tree.

    Attributes:
        head: Its name, in the line above.
        cells: Its width.
        text: Returns what a session has there; its facts are None until they are read.
        look: The colour of the text.
        from_width: Width of a tree from which there is room for it.
    """

    head: str
    cells: int
    text: Callable[[FamilyNode, NodeFacts | None, int], str]
    look: str = "faint"
    from_width: int = 0


COLUMNS: tuple[Column, ...] = (
    Column("forked", 10, lambda node, facts, now:
           f"turn {facts.fork_turn}" if facts and facts.fork_turn else ""),
    Column("turns", 8, lambda node, facts, now:
           glyphs().more if facts is None or node.outline else f"{facts.turns:,}", "muted"),
    Column("tokens", 9, lambda node, facts, now:
           glyphs().more if node.outline else figures.tokens(node.total_tokens)),
    Column("age", 6, lambda node, facts, now: age(node.updated_at, now), from_width=64),
)


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A line of the tree: a session, or a label in it.

    Attributes:
        node: Position of the session in the family.
    """

    node: int
    stem: str
    label: Label | None = None


def kind_glyph(kind: LineageKind) -> str:
    """Return the mark of how a session came from its parent."""
    marks = glyphs()
    return {"fork": marks.fork, "subagent": marks.subagent, "continuation": "→",
            "unknown": marks.dot, "root": ""}[kind]


def rows_of_tree(
    nodes: Sequence[FamilyNode], labels: Mapping[str, Sequence[Label]]
) -> list[TreeRow]:
    """Return the lines of a family in its order, each with the rails left of it."""
    rows: list[TreeRow] = []
    rails: list[bool] = []
    marks = glyphs()
    for number, node in enumerate(nodes):
        del rails[max(node.depth - 1, 0):]
        shown = rails[-DEEPEST:]
        stem = "".join(f"{marks.rail}  " if more else "   " for more in shown)
        if node.depth:
            branch = marks.last_branch if node.last_of_parent else marks.branch
            rails.append(not node.last_of_parent)
            below = stem + ("   " if node.last_of_parent else f"{marks.rail}  ")
            stem += f"{branch}{marks.rule} "
        else:
            below = stem
        rows.append(TreeRow(number, stem))
        has_children = number + 1 < len(nodes) and nodes[number + 1].depth > node.depth
        for label in labels.get(node.id, ()):
            rail = f"{marks.rail}  " if has_children else "   "
            rows.append(TreeRow(number, below + rail, label))
    return rows


class TreeBlock(Block):
    """A family as a block of lines."""

    def __init__(
        self, nodes: Sequence[FamilyNode], rows: Sequence[TreeRow], current: str, now: int,
        facts: Mapping[str, NodeFacts], want: Callable[[FamilyNode], None],
    ) -> None:
        """Take the family.

        Args:
            nodes: The sessions.
            rows: Their lines.
            current: The session that is shown in the transcript.
            now: Epoch ms.
            facts: What is known of the sessions, by id; grows while they are drawn.
            want: Called for a session that is drawn before its facts are known.
        """
        self.nodes, self.rows = nodes, rows
        self._current, self._now, self._facts, self._want = current, now, facts, want

    def height(self, width: int) -> int:
        """Return the number of lines."""
        return len(self.rows)

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the lines whose title or label holds the needle."""
        return [n for n, row in enumerate(self.rows) if needle in self._name(row).casefold()]

    def _name(self, row: TreeRow) -> str:
        name = row.label.text if row.label else shown(self.nodes[row.node].title) or "untitled"
        return one_line(name)

    def line(self, number: int, width: int) -> Line:
        """Draw a line."""
        row = self.rows[number]
        return self._label(row, width) if row.label else self._session(row, width)

    def _label(self, row: TreeRow, width: int) -> Line:
        assert row.label is not None
        at = f"turn {row.label.turn}" if row.label.turn else "hidden"
        runs: list[Run] = [
            (row.stem, "rule"), (f"“{self._name(row)}”", "tool"), (f"  {at}", "faint"),
        ]
        node = self.nodes[row.node]
        return Line(cut(runs, width), link=Link("session", node.id, row.label.message_id))

    def _session(self, row: TreeRow, width: int) -> Line:
        node = self.nodes[row.node]
        facts = self._facts.get(node.id)
        if facts is None:
            self._want(node)
        here = node.id == self._current
        glyph = kind_glyph(node.kind)
        runs: list[Run] = [(row.stem, "rule")]
        if glyph:
            runs.append((f"{glyph} ", LOOKS[node.kind]))
        look = "muted" if node.archived_at is not None else "text"
        runs.append((self._name(row), f"{look} bold" if here else look))
        if facts is not None and facts.star:
            runs.append((f" {glyphs().star}", "tool"))
        if facts is not None and facts.tags:
            runs.append(("  " + " ".join(f"#{one_line(tag)}" for tag in facts.tags), "faint"))
        if node.archived_at is not None:
            runs.append(("  archived", "faint"))
        if here:
            runs.append(("  ← shown", "ok"))
        return Line(tuple(runs), self._columns(node, facts, width),
                    link=Link("session", node.id))

    def _columns(self, node: FamilyNode, facts: NodeFacts | None, width: int) -> tuple[Run, ...]:
        return tuple(
            (column.text(node, facts, self._now).rjust(column.cells), column.look)
            for column in shown_columns(width)
        )


def shown_columns(width: int) -> list[Column]:
    """Return the columns that a width has room for."""
    return [column for column in COLUMNS if width >= column.from_width]


def column_heads(width: int) -> Line:
    """Return the line above the columns."""
    right = tuple((column.head.rjust(column.cells), "faint") for column in shown_columns(width))
    return Line((("", "faint"),), right)
