"""Edits as unified diffs: found in what a tool said, or computed from old and new text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tui.kit.glyphs import glyphs
from tui.kit.text import clean
from tui.transcript.lines import Line, fitted, wrapped
from tui.transcript.plain import as_dict, as_list

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

    Hunks of several files name theirs in ``file``, and each file's first says it.
    """
    made: list[DiffLine] = []
    hunks = [as_dict(hunk) for hunk in as_list(patch)]
    several, before = len({str(hunk.get("file")) for hunk in hunks}) > 1, None
    for hunk in hunks:
        old, new = _integer(hunk.get("oldStart")), _integer(hunk.get("newStart"))
        file = str(hunk.get("file") or "") if several else ""
        if made or file:
            made.append(DiffLine("@", None, file if file != before else ""))
        before = file
        made.extend(_numbered(as_list(hunk.get("lines")), old, new))
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


_LOOK = {
    "+": ("ok", "text", "added"), "-": ("error", "text", "removed"), " ": ("faint", "muted", ""),
}


def layout(lines: list[DiffLine], width: int) -> list[Line]:
    """Lay out a diff: number, sign, text on its ground."""
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
    made: list[Line] = []
    for line in lines:
        if line.sign == "@":
            head = " " * digits + glyphs().more + " "
            made.append(Line(fitted([(head, "faint"), (clean(line.text), "faint i")], width)))
            continue
        edge, ink, ground = _LOOK[line.sign]
        number = "" if line.number is None else str(line.number)
        first = [(f"{number:>{digits}} " if digits else "", edge), (f"{line.sign} ", edge)]
        rest = [(" " * (digits + 1) if digits else "", edge), ("  ", edge)]
        made.extend(wrapped([(clean(line.text), ink)], width, first, rest, ground, by_cells=True))
    return made
