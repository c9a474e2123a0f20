"""Edits as lines of a diff: read from hunks and patches, or computed from two texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

COMPARED_LINES = 800
"""Longer texts are shown as removed and added whole: comparing takes quadratic time."""
CONTEXT = 3
"""Unchanged lines that are shown around a change."""

Change = Literal["write", "edit", "delete", "move"]
"""What a patch does to a file; ``write`` makes it."""


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


@dataclass(slots=True)
class FileDiff:
    """What a patch does to one file.

    Attributes:
        path: The file as the patch names it; empty where it names none.
        moved_to: Its new path, empty where it stays.
        heading: How the patch announces the file, for display; empty in unified diffs.
    """

    path: str = ""
    change: Change = "edit"
    moved_to: str = ""
    heading: str = ""
    lines: list[DiffLine] = field(default_factory=list)


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
    return smallest(made)


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
    for file in files_in(text):
        if file.heading:
            made.append(DiffLine("@", None, file.heading))
        if file.moved_to and file.heading:
            made.append(DiffLine("@", None, f"Move to: {file.moved_to}"))
        made += file.lines
    return made[1:] if made and made[0].sign == "@" and not made[0].text else made


def files_in(patch: str) -> list[FileDiff]:
    """Return the files of a unified diff or of an ``*** Begin Patch`` text, in order.

    A broken patch gives what can be read of it. Lines that belong to no file are returned as
    a file without a path.
    """
    lines = patch.split("\n")
    envelope = any(_ENVELOPE.match(line) for line in lines)
    reader = _EnvelopeReader() if envelope else _UnifiedReader()
    for line, following in _pairs(lines):
        reader.take(line, following)
    for file in reader.files:
        file.lines = smallest(file.lines)
    return [file for file in reader.files if file.path or file.lines]


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, line in enumerate(lines):
        yield line, lines[at + 1] if at + 1 < len(lines) else ""


_ENVELOPE = re.compile(r"\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: )")
_FILE = re.compile(r"\*\*\* ((Add|Update|Delete) File: (.+))")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_CHANGES: dict[str, Change] = {"Add": "write", "Update": "edit", "Delete": "delete"}
_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))?")


class _Reader:
    """Collects the lines of a patch by file.

    Attributes:
        old, new: The numbers of the next lines; both 0 where they are unknown.
        left_old, left_new: How many lines the open hunk still has.
    """

    def __init__(self) -> None:
        self.files: list[FileDiff] = []
        self.old = self.new = self.left_old = self.left_new = 0

    @property
    def file(self) -> FileDiff:
        if not self.files:
            self.files.append(FileDiff())
        return self.files[-1]

    def open(self, file: FileDiff) -> None:
        self.files.append(file)
        self.old = self.new = self.left_old = self.left_new = 0

    def hunk(self, line: str) -> None:
        found = _HUNK.match(line)
        if found:
            self.old, self.new = int(found[1]), int(found[3])
            self.left_old, self.left_new = int(found[2] or 1), int(found[4] or 1)
        label = "" if found else line[2:].strip(" @")
        if self.file.lines or self.file.heading or label:
            self.file.lines.append(DiffLine("@", None, label))

    def content(self, line: str) -> None:
        sign = line[:1]
        if sign not in ("+", "-", " "):
            return
        known = self.old or self.new
        number = (self.old if sign == "-" else self.new) if known else None
        self.file.lines.append(DiffLine(sign, number, line[1:]))
        self.old += bool(known and sign != "+")
        self.new += bool(known and sign != "-")
        self.left_old -= sign != "+"
        self.left_new -= sign != "-"

    def take(self, line: str, following: str) -> None:
        raise NotImplementedError


class _EnvelopeReader(_Reader):
    """Reads ``*** Begin Patch``: each line of a file starts with its sign."""

    def take(self, line: str, following: str) -> None:
        found, moved = _FILE.match(line), _MOVE.match(line)
        if found:
            path = found[3].strip()
            self.open(FileDiff(path, _CHANGES[found[2]], heading=found[1].strip()))
        elif moved:
            self.file.moved_to = moved[1].strip()
            self.file.change = "move"
        elif line.startswith("@@"):
            self.hunk(line)
        else:
            self.content(line)


class _UnifiedReader(_Reader):
    """Reads a unified diff, with or without the lines that git puts before it."""

    def take(self, line: str, following: str) -> None:
        inside = self.left_old > 0 or self.left_new > 0
        if inside and line[:1] in ("+", "-", " "):
            self.content(line)
        elif inside and not line:
            # Some programs strip the blank of an empty line of context.
            self.content(" ")
        elif line.startswith("diff --git "):
            self.open(FileDiff())
        elif line.startswith("--- ") and following.startswith("+++ "):
            self._names(_name(line), _name(following))
        elif line.startswith("+++ ") and not self.file.lines:
            return
        elif line.startswith("@@"):
            self.hunk(line)
        elif line.startswith("rename from "):
            self.file.path, self.file.change = line[12:], "move"
        elif line.startswith("rename to "):
            self.file.moved_to = line[10:]
        else:
            self.content(line)

    def _names(self, old: str, new: str) -> None:
        if self.file.lines or (self.file.path and self.file.change != "move"):
            self.open(FileDiff())
        file = self.file
        if file.change == "move":
            return
        if old.startswith("a/") and new.startswith("b/"):
            old, new = old[2:], new[2:]
        if old == _NOWHERE:
            file.path, file.change = new.removeprefix("b/"), "write"
        elif new == _NOWHERE:
            file.path, file.change = old.removeprefix("a/"), "delete"
        else:
            file.path = new


_NOWHERE = "/dev/null"


def _name(line: str) -> str:
    return line[4:].partition("\t")[0].strip()


def between(old: str, new: str) -> list[DiffLine]:
    """Return the difference of two texts; the lines have no numbers."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > COMPARED_LINES:
        return _between_long(before, after)
    from difflib import SequenceMatcher

    made: list[DiffLine] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        if made:
            made.append(DiffLine("@", None, ""))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                made.extend(DiffLine(" ", None, line) for line in before[i1:i2])
                continue
            made.extend(DiffLine("-", None, line) for line in before[i1:i2])
            made.extend(DiffLine("+", None, line) for line in after[j1:j2])
    return made


def _between_long(before: list[str], after: list[str]) -> list[DiffLine]:
    """Return all lines between the equal starts and the equal ends as removed and added."""
    start, end = equal_ends(before, after)
    middle = before[start : len(before) - end], after[start : len(after) - end]
    if not any(middle):
        return []
    if sum(map(len, middle)) <= COMPARED_LINES and (start > CONTEXT or end > CONTEXT):
        around = max(0, start - CONTEXT), max(0, end - CONTEXT)
        return between(*("\n".join(lines[around[0] : len(lines) - around[1]])
                         for lines in (before, after)))
    return [
        *(DiffLine(" ", None, line) for line in before[max(0, start - CONTEXT) : start]),
        *(DiffLine("-", None, line) for line in middle[0]),
        *(DiffLine("+", None, line) for line in middle[1]),
        *(DiffLine(" ", None, line) for line in after[len(after) - end :][:CONTEXT]),
    ]


def smallest(lines: list[DiffLine]) -> list[DiffLine]:
    """Return a diff whose unchanged lines are context.

    Models and some programs write a block of removed lines and a block of added ones with equal
    lines in both, which are no change of the file.
    """
    made: list[DiffLine] = []
    for is_change, group in groupby(lines, key=lambda line: line.sign in ("+", "-")):
        block = list(group)
        if not is_change:
            made += block
            continue
        before = [line for line in block if line.sign == "-"]
        after = [line for line in block if line.sign == "+"]
        if {line.text for line in before}.isdisjoint(line.text for line in after):
            made += block
            continue
        for tag, i1, i2, j1, j2 in _opcodes([line.text for line in before],
                                            [line.text for line in after]):
            if tag == "equal":
                made += (DiffLine(" ", line.number, line.text) for line in after[j1:j2])
            else:
                made += [*before[i1:i2], *after[j1:j2]]
    return made


def _opcodes(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Return what differs; of long texts, all between their equal starts and equal ends."""
    if len(before) + len(after) <= COMPARED_LINES:
        from difflib import SequenceMatcher

        return list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    start, end = equal_ends(before, after)
    old, new = len(before) - end, len(after) - end
    return [("equal", 0, start, 0, start), ("replace", start, old, start, new),
            ("equal", old, len(before), new, len(after))]


def equal_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return how many lines two texts have in common at their start and at their end."""
    most, start = min(len(before), len(after)), 0
    while start < most and before[start] == after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return start, end


def added(text: str) -> list[DiffLine]:
    """Return a new file's text as added lines."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [DiffLine("+", number, line) for number, line in enumerate(lines, 1)]


def tally(lines: Sequence[DiffLine]) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    signs = [line.sign for line in lines]
    return signs.count("+"), signs.count("-")


def as_text(lines: Sequence[DiffLine]) -> str:
    """Return a diff as text, for copying."""
    return "\n".join(f"{line.sign}{line.text}" for line in lines)
