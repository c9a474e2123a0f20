"""Edits as unified diffs: read from a tool call, or computed from the old and the new text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tui.kit.blocks import Block, Fixed
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, Value, cut
from tui.kit.text import clean
from tui.kit.wrap import wrap_runs

COMPARED_LINES = 800
"""Longer texts are shown as removed and added whole: comparing takes quadratic time."""
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)")


@dataclass(slots=True)
class DiffLine:
    """One line of a diff.

    Attributes:
        sign: ``+``, ``-``, blank for context, ``@`` for a gap between hunks.
        number: The line's number in the file, None where unknown.
    """

    sign: str
    number: int | None
    text: str


def from_patch(patch: Any) -> list[DiffLine]:
    """Return the lines of hunks ``{oldStart, newStart, lines: [" a", "-b", "+c"]}``.

    Hunks of several files name their file in ``file``; each file's first hunk shows it.
    """
    made: list[DiffLine] = []
    hunks = [hunk for hunk in patch if isinstance(hunk, dict)] if isinstance(patch, list) else []
    several, before = len({str(hunk.get("file")) for hunk in hunks}) > 1, None
    for hunk in hunks:
        old, new = _integer(hunk.get("oldStart")), _integer(hunk.get("newStart"))
        file = str(hunk.get("file") or "") if several else ""
        if made or file:
            made.append(DiffLine("@", None, file if file != before else ""))
        before = file
        lines = hunk.get("lines")
        made.extend(_numbered(lines if isinstance(lines, list) else [], old, new))
    return made


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else 1


def _numbered(lines: list[Any], old: int, new: int) -> list[DiffLine]:
    made = []
    for line in lines:
        sign, text = str(line)[:1] or " ", str(line)[1:]
        if sign == "-":
            made.append(DiffLine("-", old, text))
            old += 1
        elif sign == "+":
            made.append(DiffLine("+", new, text))
            new += 1
        elif sign != "\\":
            made.append(DiffLine(" ", new, text))
            old, new = old + 1, new + 1
    return made


def from_unified(text: str) -> list[DiffLine]:
    """Return the lines of a unified diff or of an ``*** Begin Patch`` text."""
    made: list[DiffLine] = []
    old = new = 0
    for line in text.split("\n"):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            made.append(DiffLine("@", None, ""))
        elif line.startswith(("*** ", "--- ", "+++ ", "diff ", "index ")):
            name = line[4:].strip() if line.startswith("*** ") else ""
            if name and not name.startswith(("Begin Patch", "End Patch", "End of File")):
                made.append(DiffLine("@", None, name))
        elif line.startswith("@@"):
            made.append(DiffLine("@", None, line[2:].strip(" @")))
        elif line[:1] in ("+", "-", " "):
            known = old or new
            made.append(DiffLine(line[0], (old if line[0] == "-" else new) if known else None,
                                 line[1:]))
            old += bool(known and line[0] != "+")
            new += bool(known and line[0] != "-")
    return made[1:] if made and made[0].sign == "@" and not made[0].text else made


def between(old: str, new: str) -> list[DiffLine]:
    """Return the difference of two texts; lines are numbered from 1 of the texts."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > COMPARED_LINES:
        return [DiffLine("-", None, line) for line in before] + [
            DiffLine("+", None, line) for line in after
        ]
    from difflib import SequenceMatcher

    made: list[DiffLine] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        if made:
            made.append(DiffLine("@", None, ""))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                made.extend(DiffLine(" ", None, line) for line in before[i1:i2])
                continue
            made.extend(DiffLine("-", None, line) for line in before[i1:i2])
            made.extend(DiffLine("+", None, line) for line in after[j1:j2])
    return made


def added(text: str) -> list[DiffLine]:
    """Return a new file's text as added lines."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [DiffLine("+", number, line) for number, line in enumerate(lines, 1)]


def tally(lines: list[DiffLine]) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    signs = [line.sign for line in lines]
    return signs.count("+"), signs.count("-")


_INKS = {
    "+": ("ok", "text", "added"), "-": ("error", "text", "removed"), " ": ("faint", "muted", ""),
}
"""By sign: the inks of the edge and the text, and the ground."""


def layout(lines: Sequence[DiffLine], width: int, *, full: bool = False) -> list[Line]:
    """Lay out a diff: number, sign, text on its ground.

    Args:
        lines: The diff.
        width: Cells.
        full: Whether the ground is beneath number and sign as well.
    """
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
    made: list[Line] = []
    for line in lines:
        if line.sign == "@":
            head = " " * digits + glyphs().more + " "
            made.append(Line(cut([(head, "faint"), (clean(line.text), "faint italic")], width)))
            continue
        edge, ink, ground = _INKS[line.sign]
        edge = f"{edge} on:{ground}" if full and ground else edge
        number = "" if line.number is None else str(line.number)
        first = [(f"{number:>{digits}} " if digits else "", edge), (f"{line.sign} ", edge)]
        rest = [(" " * (digits + 1) if digits else "", edge), ("  ", edge)]
        made += wrap_runs([(clean(line.text), ink)], width, first, rest, ground, by_cells=True)
    return made


def changes(
    lines: Sequence[DiffLine], value: Value, fold: Hashable, limit: int | None
) -> Block:
    """Return a diff as a block.

    Args:
        lines: The diff.
        value: What copying its lines takes.
        fold: Names what unfolds the rest.
        limit: Lines to show at most; None shows all.
    """

    def build(width: int) -> list[Line]:
        made = layout(lines, width, full=True)
        for line in made:
            line.value, line.fold = value, fold
        if limit is None or len(made) <= limit + 1:
            return made
        rest: Run = (f"… {len(made) - limit:,} more lines", "muted")
        keys: Run = ("  v opens all, o shows them here", "faint")
        return [*made[:limit], Line((rest, keys), value=value, fold=fold)]

    return Fixed(build)


def as_text(lines: Sequence[DiffLine]) -> str:
    """Return a diff as text, for copying."""
    return "\n".join(f"{line.sign}{line.text}" for line in lines)
