"""Markdown laid out as lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from store.text.markdown import MOST_BRACKETS, parser
from tui.kit.blocks import Block, Fixed, Text, plain
from tui.kit.glyphs import glyphs
from tui.kit.highlight import code_lines
from tui.kit.lines import Line, Run, Value, cut, width_of
from tui.kit.text import cells, clean, fit
from tui.kit.wrap import plain_lines, wrap_runs

if TYPE_CHECKING:
    from markdown_it.token import Token

_PLAIN = re.compile(r"[^\W\d_](?:[^\W_]|[ .,;:!?'’\"()\-–—/])*")
"""Text of one line in which nothing can be markup: no need to parse."""
MEASURE = 100
"""Most cells of a line of prose in a block."""
LONGEST_RENDERED = 200_000
"""Characters beyond which a block shows a text as it is."""
_OPENS = {
    "strong_open": "bold", "em_open": "italic", "s_open": "strike", "link_open": "underline",
}
_CLOSES = frozenset({"strong_close", "em_close", "s_close", "link_close"})


def layout(text: str, width: int, whole_width: int, ink: str = "text") -> list[Line]:
    """Lay out Markdown.

    Args:
        text: As the session has it.
        width: Columns for prose.
        whole_width: Columns for code and tables.
        ink: What plain text is drawn with.
    """
    text = clean(text).strip("\n")
    if _PLAIN.fullmatch(text):
        return wrap_runs([(text, ink)], width)
    if text.count("[") > MOST_BRACKETS:
        return plain_lines(text, width, ink)
    lines = _Layout(width, whole_width, ink).run(parser().parse(text))
    # The parser drops what is nested too deeply; no words are lost.
    return lines if any(line.text.strip(" │") for line in lines) else plain_lines(text, width, ink)


def prose(text: str, value: Value, ink: str = "text") -> Block:
    """Return a text as rendered Markdown; a very long one as it is.

    Args:
        text: As the session has it.
        value: What copying its lines takes.
        ink: What plain text is drawn with.
    """
    if len(text) > LONGEST_RENDERED:
        return Text(text, value=value, words=True, paint=plain(ink))

    def build(width: int) -> list[Line]:
        lines = layout(text, min(width, MEASURE), width, ink)
        for line in lines:
            line.value = value
        return lines

    return Fixed(build)


class _Layout:
    """Walks the tokens once; ``margin`` has the runs left of the current block."""

    def __init__(self, width: int, whole_width: int, ink: str) -> None:
        self.width, self.whole_width, self.ink = width, whole_width, ink
        self.lines: list[Line] = []
        self.lists: list[int | None] = []
        self.margin: list[Run] = []
        self.margins: list[list[Run]] = []
        self.bullet: list[Run] | None = None
        self.heading = ""
        self.table: list[list[list[Run]]] | None = None
        self.tight = False

    def run(self, tokens: list[Token]) -> list[Line]:
        for token in tokens:
            handler = getattr(self, f"_{token.type}", None)
            if handler is not None:
                handler(token)
        while self.lines and not self.lines[-1].text.strip():
            self.lines.pop()
        return self.lines or [Line([])]

    def _gap(self) -> None:
        if self.lines and self.bullet is None and self.lines[-1].text.strip(" │"):
            self.lines.append(Line(list(self.margin)))

    def _emit(self, runs: list[Run]) -> None:
        first = self.margin + self.bullet if self.bullet is not None else self.margin
        rest = self.margin
        if self.bullet is not None:
            rest = [*self.margin, (" " * width_of(self.bullet), "text")]
            self.margin, self.bullet = rest, None
        for line in _split(runs):
            self.lines.extend(wrap_runs(line, self.width, first, rest))
            first = rest

    def _heading_open(self, token: Token) -> None:
        self._gap()
        self.heading = "assistant bold" if token.tag in ("h1", "h2") else "text bold"

    def _heading_close(self, token: Token) -> None:
        self.heading = ""
        self.tight = True

    def _paragraph_open(self, token: Token) -> None:
        if not token.hidden and not self.tight:
            self._gap()
        self.tight = False

    def _inline(self, token: Token) -> None:
        runs = _inline_runs(token.children or [], self.heading or self.ink)
        if self.table is not None:
            self.table[-1].append(runs)
        else:
            self._emit(runs)

    def _bullet_list_open(self, token: Token) -> None:
        if not self.lists and not self.tight:
            self._gap()
        self.tight = False
        self.lists.append(None)

    def _ordered_list_open(self, token: Token) -> None:
        self._bullet_list_open(token)
        start = token.attrGet("start")
        self.lists[-1] = int(start) if start is not None else 1

    def _bullet_list_close(self, token: Token) -> None:
        self.lists.pop()

    _ordered_list_close = _bullet_list_close

    def _list_item_open(self, token: Token) -> None:
        self.margins.append(self.margin)
        number = self.lists[-1]
        if number is None:
            self.bullet = [("  " if len(self.lists) == 1 else "", "text"),
                           (glyphs().dot + " ", "muted")]
        else:
            self.lists[-1] = number + 1
            self.bullet = [("  " if len(self.lists) == 1 else "", "text"),
                           (f"{number}. ", "muted")]

    def _list_item_close(self, token: Token) -> None:
        if self.bullet is not None:
            self._emit([("", self.ink)])
        self.margin = self.margins.pop()

    def _blockquote_open(self, token: Token) -> None:
        self._gap()
        self.margins.append(self.margin)
        self.margin = [*self.margin, (glyphs().rail + " ", "faint")]
        self.tight = True

    def _blockquote_close(self, token: Token) -> None:
        self.margin = self.margins.pop()
        self.tight = False

    def _hr(self, token: Token) -> None:
        self._gap()
        self.lines.append(Line([*self.margin, (glyphs().rule * min(self.width, 24), "faint")]))

    def _fence(self, token: Token) -> None:
        if self.bullet is not None:
            self._emit([("", self.ink)])
        self._gap()
        language = token.info.split()[0] if token.info.strip() else ""
        margin = [*self.margin, ("  ", "text")]
        for runs in code_lines(token.content.rstrip("\n"), language.split("{")[0]):
            self.lines.extend(wrap_runs(runs, self.whole_width, margin, by_cells=True))
        self.lines.append(Line(list(self.margin)))

    _code_block = _fence

    def _table_open(self, token: Token) -> None:
        self._gap()
        self.table = []

    def _tr_open(self, token: Token) -> None:
        assert self.table is not None
        self.table.append([])

    def _table_close(self, token: Token) -> None:
        rows, self.table = self.table or [], None
        self.lines.extend(_table_lines(rows, self.whole_width, self.margin))
        self.lines.append(Line(list(self.margin)))


def _split(runs: list[Run]) -> list[list[Run]]:
    """Split runs at hard line breaks."""
    lines: list[list[Run]] = [[]]
    for text, ink in runs:
        head, *others = text.split("\n")
        lines[-1].append((head, ink))
        lines.extend([(other, ink)] for other in others)
    return lines


def _inline_runs(tokens: list[Token], ink: str) -> list[Run]:
    runs: list[Run] = []
    role, _, base = ink.partition(" ")
    flags, links = [base], [""]
    for token in tokens:
        if token.type in _OPENS:
            flags.append(f"{flags[-1]} {_OPENS[token.type]}")
            if token.type == "link_open":
                links.append(str(token.attrGet("href") or ""))
        elif token.type in _CLOSES:
            flags.pop()
            if token.type == "link_close":
                _name_target(runs, links.pop())
        elif token.type == "softbreak":
            runs.append((" ", role))
        elif token.type == "hardbreak":
            runs.append(("\n", role))
        elif token.type == "code_inline":
            runs.append((token.content.replace("\n", " "), "tool"))
        elif token.type == "image":
            runs.append((f"[image {clean(token.content)}]", "muted"))
        else:
            colour = "user" if "underline" in flags[-1] else role
            # Entities are decoded by the parser: the characters are cleaned here.
            runs.append((clean(token.content), " ".join([colour, *flags[-1].split()])))
    return runs


def _name_target(runs: list[Run], target: str) -> None:
    """Say where a link leads unless its text does; the terminal gets no live link."""
    shown = runs[-1][0] if runs else ""
    if target and shown not in target and not target.startswith("#"):
        runs.append((f" ({clean(target)})", "faint"))


MOST_COLUMNS = 24


def _table_lines(rows: list[list[list[Run]]], width: int, margin: list[Run]) -> list[Line]:
    columns = min(max((len(row) for row in rows), default=0), MOST_COLUMNS)
    widest = [
        max((width_of(row[column]) for row in rows if column < len(row)), default=0)
        for column in range(columns)
    ]
    widths = _shared(widest, width - width_of(margin) - 3 * max(0, columns - 1))
    lines: list[Line] = []
    for number, row in enumerate(rows):
        lines.extend(_table_row(row, widths, margin, head=number == 0))
        if number == 0:
            rule = glyphs().rule
            cross = rule + ("┼" if rule == "─" else "+") + rule
            text = fit(cross.join(rule * size for size in widths), width - width_of(margin))
            lines.append(Line([*margin, (text, "faint")]))
    return lines


def _shared(widest: list[int], room: int) -> list[int]:
    """Give each column what it wants, the widest less until all fit."""
    widths = list(widest)
    excess = sum(widths) - max(room, 4 * len(widths))
    while excess > 0:
        top = max(widths)
        second = max((size for size in widths if size < top), default=4)
        tops = [column for column, size in enumerate(widths) if size == top]
        cut = min(max(1, (top - max(second, 4)) * len(tops)), excess)
        if top <= 4:
            break
        for position, column in enumerate(tops):
            widths[column] -= cut // len(tops) + (position < cut % len(tops))
        excess -= cut
    return widths


def _table_row(
    row: list[list[Run]], widths: list[int], margin: list[Run], *, head: bool
) -> list[Line]:
    blocks = []
    for column, size in enumerate(widths):
        runs = row[column] if column < len(row) else []
        if head:
            runs = [(text, "text bold") for text, _ink in runs]
        blocks.append([line.runs for line in wrap_runs(runs, size)])
    lines = []
    for number in range(max((len(block) for block in blocks), default=0)):
        runs = list(margin)
        for column, (block, size) in enumerate(zip(blocks, widths, strict=True)):
            cell = cut(block[number], size) if number < len(block) else []
            runs += cell
            if column < len(widths) - 1:
                pad = size - sum(cells(text) for text, _ in cell)
                runs += [(" " * pad, "text"), (" " + glyphs().rail + " ", "faint")]
        lines.append(Line(runs))
    return lines
