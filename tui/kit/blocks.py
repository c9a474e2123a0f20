"""Blocks of lines: each knows its height at a width and gives any one of its lines.

A view asks a block for the lines that are on the screen and for no others, so a block may
hold a value of megabytes. Write a new one by ``height`` and ``line``; give ``find`` and
``locate`` as well where a search can be answered without building all lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from store.system.records import replaced
from tui.kit.hits import Finds, Hits, hits_in
from tui.kit.key_hints import keyed
from tui.kit.lines import BLANK, Line, Run, Value, arrange, heading
from tui.kit.wrap import WrappedText

Spot = Any
"""A place that was found, in the terms of the block that found it."""


class Block(ABC):
    """A run of lines whose number depends on the width."""

    __slots__ = ()

    @abstractmethod
    def height(self, width: int) -> int:
        """Return the number of lines at ``width`` cells."""

    @abstractmethod
    def line(self, number: int, width: int) -> Line:
        """Return line ``number``, from 0."""

    def changed(self) -> None:  # noqa: B027  most blocks keep nothing
        """Work out the lines anew: something folded or unfolded."""

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the places that hold a case-folded needle, in order; folded ones too."""
        lines = (self.line(number, width) for number in range(self.height(width)))
        return [n for n, line in enumerate(lines) if needle in line.whole_text.casefold()]

    def locate(self, spot: Spot, width: int) -> int:
        """Return the line that shows a place, after unfolding what hides it."""
        return int(spot)


@dataclass(slots=True)
class Laid(Block):
    """Lines that were laid out already, for one width.

    Attributes:
        lines: The lines.
        width: The width that they were laid out for.
    """

    lines: list[Line]
    width: int = 0
    _found: tuple[Finds, Hits] | None = field(default=None, init=False, repr=False)

    def height(self, width: int) -> int:
        """Return the number of lines."""
        return len(self.lines)

    def line(self, number: int, width: int) -> Line:
        """Return one of them."""
        return self.lines[number]

    def hits(self, pattern: Finds) -> Hits:
        """Return where a pattern matches, across soft wraps as well."""
        if self._found is None or self._found[0] is not pattern:
            self._found = (pattern, hits_in(self.lines, pattern))
        return self._found[1]


class Fixed(Block):
    """Lines that are built for a width, in one go: headings, facts, bars."""

    def __init__(self, build: Callable[[int], Sequence[Line]]) -> None:
        """Take the function that builds the lines for a width."""
        self._build = build
        self._width = -1
        self._lines: Sequence[Line] = ()

    def _at(self, width: int) -> Sequence[Line]:
        if width != self._width:
            self._width, self._lines = width, self._build(width)
        return self._lines

    def height(self, width: int) -> int:
        """Return the number of lines."""
        return len(self._at(width))

    def line(self, number: int, width: int) -> Line:
        """Return one of them."""
        return self._at(width)[number]

    def changed(self) -> None:
        """Build them anew."""
        self._width = -1


def section(
    title: str, facts: Sequence[str], *body: Block, value: Value | None = None,
    fold: Hashable | None = None,
) -> list[Block]:
    """Return the blocks of a section: its heading, its body, an empty line.

    Args:
        title: What the section holds.
        facts: Faint, after the title.
        body: What is below the heading.
        value: What copying the heading takes.
        fold: What folds on the heading.
    """
    top = Fixed(lambda width: [heading(title, facts, width, value=value, fold=fold)])
    return [top, *body, Fixed(lambda _: [BLANK])]


Painter = Callable[[str], str]
"""Gives a source line its ink."""

HEAD_CHARACTERS = 200_000
"""How much of a text is wrapped while only its first rows are shown."""

PAINTED_CHARACTERS = 300
"""How much of a source line a painter sees."""


def plain(ink: str = "text") -> Painter:
    """Return a painter that gives every line one ink."""
    return lambda line: ink


class Text(Block):
    """A text, all of it or its first rows with a line that says how many more there are."""

    def __init__(
        self,
        text: str,
        *,
        value: Value | None = None,
        paint: Painter | None = None,
        words: bool = False,
        indent: int = 0,
        limit: int | None = None,
        fold: Hashable | None = None,
    ) -> None:
        """Take a text.

        Args:
            text: Any text; it is made drawable here.
            value: What copying its lines takes.
            paint: Gives a source line its ink.
            words: Break between words.
            indent: Cells before each row.
            limit: Rows to show at most; None shows all.
            fold: Names what unfolds the rest.
        """
        self._text, self._words = text, words
        self._wrapped: dict[bool, WrappedText] = {}
        self._value, self._paint = value, paint or plain()
        self._indent, self.limit, self._fold = indent, limit, fold

    @property
    def wrapped(self) -> WrappedText:
        """The rows: all of them, or those of the start where no more is shown."""
        short = self.limit is not None and self.limit < 400 and len(self._text) > HEAD_CHARACTERS
        if short not in self._wrapped:
            text = self._text[:HEAD_CHARACTERS] if short else self._text
            self._wrapped[short] = WrappedText(text, words=self._words)
        return self._wrapped[short]

    def _inner(self, width: int) -> int:
        return max(4, width - self._indent)

    def height(self, width: int) -> int:
        """Return the number of lines, with the one that counts the rest."""
        rows = self.wrapped.height(self._inner(width))
        return rows if self.limit is None or rows <= self.limit + 1 else self.limit + 1

    def line(self, number: int, width: int) -> Line:
        """Return a row of the text, or the line that counts the rest."""
        inner, pad = self._inner(width), " " * self._indent
        rows = self.wrapped.height(inner)
        if self.limit is not None and rows > self.limit + 1 and number == self.limit:
            return self._rest(self.wrapped.row(number, inner).source, pad)
        row = self.wrapped.row(number, inner)
        ink = self._paint(self.wrapped.lines[row.source][:PAINTED_CHARACTERS])
        runs: tuple[Run, ...] = ((row.text, ink),)
        if self._indent:
            runs = ((pad, "text"), *runs)
        return Line(runs, value=self._value, fold=self._fold, soft=row.soft,
                    lead=self._indent, tail=row.tail)

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return source line and character of each place."""
        if False not in self._wrapped:
            self._wrapped[False] = WrappedText(self._text, words=self._words)
        return list(self._wrapped[False].find(needle))

    def locate(self, spot: Spot, width: int) -> int:
        """Return the row of a place; a row beyond the limit lifts it."""
        source, at = spot
        row = self._wrapped[False].row_of(source, at, self._inner(width))
        if self.limit is not None and row >= self.limit:
            self.limit = None
        return row

    def _rest(self, source: int, pad: str) -> Line:
        left = self._text.count("\n") + (not self._text.endswith("\n")) - source
        noun = "line" if left == 1 else "lines"
        left_over = f"… {left:,} more {noun}"
        runs: tuple[Run, ...] = ((pad + left_over, "muted"),)
        if self._value is not None or self._fold is not None:
            runs += ((
                f"  {keyed('inspector.open', 'opens all')},"
                f" {keyed('inspector.toggle', 'shows them here')}", "faint"),)
        return Line(runs, value=self._value, fold=self._fold)


def _grounded(line: Line, width: int) -> tuple[Run, ...]:
    """Return a line's runs in its width, each on the line's ground."""
    runs = arrange(line, width)
    if not line.ground:
        return runs
    return tuple((text, f"{ink} on:{line.ground}") for text, ink in runs)


class Columns(Block):
    """Two stacks of blocks side by side."""

    GAP = 3

    def __init__(self, left: Sequence[Block], right: Sequence[Block], share: float = 0.4) -> None:
        """Take both stacks and the share of the width that the left one gets.

        Args:
            left: Blocks of the left stack, from the top.
            right: Those of the right one.
            share: The share of the width that the left one gets.
        """
        self._left, self._right, self._share = Stack(left), Stack(right), share

    def _widths(self, width: int) -> tuple[int, int]:
        left = int((width - self.GAP) * self._share)
        return left, width - self.GAP - left

    def height(self, width: int) -> int:
        """Return the height of the taller stack."""
        left, right = self._widths(width)
        return max(self._left.height(left), self._right.height(right))

    def line(self, number: int, width: int) -> Line:
        """Return both stacks' lines in one; its value is the left one's, if any."""
        left_width, right_width = self._widths(width)
        left = self._line_of(self._left, number, left_width)
        right = self._line_of(self._right, number, right_width)
        runs = (
            *_grounded(left, left_width), (" " * self.GAP, "text"),
            *_grounded(right, right_width),
        )
        shown = right if left is BLANK or not left.value else left
        return replaced(shown, runs=runs, right=(), ground="", soft=False, lead=0, tail="")

    def changed(self) -> None:
        """Pass it on to both stacks."""
        self._left.changed()
        self._right.changed()

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the places of the left stack, then those of the right one."""
        widths = self._widths(width)
        stacks = enumerate((self._left, self._right))
        return [(at, spot) for at, stack in stacks for spot in stack.find(needle, widths[at])]

    def locate(self, spot: Spot, width: int) -> int:
        """Return the line of a place in either stack."""
        at, inner = spot
        stack = self._right if at else self._left
        return stack.locate(inner, self._widths(width)[at])

    @staticmethod
    def _line_of(stack: Stack, number: int, width: int) -> Line:
        return stack.line(number, width) if number < stack.height(width) else BLANK


class Stack(Block):
    """Blocks one below the other."""

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        """Take the blocks, from the top."""
        self.blocks = list(blocks)
        self._width = -1
        self._ends: list[int] = []

    def changed(self) -> None:
        """Work out all blocks anew: something folded or unfolded."""
        self._width = -1
        for block in self.blocks:
            block.changed()

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the block and place of each hit."""
        return [
            (at, spot) for at, block in enumerate(self.blocks) for spot in block.find(needle, width)
        ]

    def locate(self, spot: Spot, width: int) -> int:
        """Return the line of a place, after unfolding what hides it."""
        at, inner = spot
        line: int = self.blocks[at].locate(inner, width)
        self._width = -1
        return line + sum(block.height(width) for block in self.blocks[:at])

    def height(self, width: int) -> int:
        """Return the height of all blocks together."""
        if width != self._width:
            self._width = width
            self._ends = list(accumulate(block.height(width) for block in self.blocks))
        return self._ends[-1] if self._ends else 0

    def line(self, number: int, width: int) -> Line:
        """Return one line of one of the blocks."""
        at, inner = self.place_of(number, width)
        return self.blocks[at].line(inner, width)

    def place_of(self, number: int, width: int) -> tuple[int, int]:
        """Return the block that holds a line, and which of its lines it is."""
        self.height(width)
        at = bisect_right(self._ends, number)
        return at, number - (self._ends[at - 1] if at else 0)
