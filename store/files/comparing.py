"""The difference of two contents of a file, with line numbers."""

from __future__ import annotations

from difflib import SequenceMatcher

from store.text.diffs import COMPARED_LINES, CONTEXT, DiffLine, equal_ends


def as_text(body: bytes | None) -> str | None:
    """Return a content as text; None for one that is no text. No file is an empty text."""
    if body is None:
        return ""
    if b"\0" in body[:8192]:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def differences(old: str, new: str) -> list[DiffLine]:
    """Return the lines of a diff; a text that lacks the last newline differs in its last line.

    Args:
        old: The text before.
        new: The text after.
    """
    before, after = _lines(old), _lines(new)
    start, end = equal_ends(before, after)
    first = max(0, start - CONTEXT)
    old_end, new_end = len(before) - max(0, end - CONTEXT), len(after) - max(0, end - CONTEXT)
    made: list[DiffLine] = []
    for group in _groups(before[first:old_end], after[first:new_end]):
        if made:
            made.append(DiffLine("@", None, ""))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                made += _signed(" ", after, first, j1, j2)
                continue
            made += _signed("-", before, first, i1, i2)
            made += _signed("+", after, first, j1, j2)
    return made


def _signed(sign: str, lines: list[str], first: int, start: int, end: int) -> list[DiffLine]:
    return [DiffLine(sign, first + at + 1, _shown(lines[first + at])) for at in range(start, end)]


_Group = list[tuple[str, int, int, int, int]]


def _groups(before: list[str], after: list[str]) -> list[_Group]:
    """Return what differs; of long texts, all from the first difference to the last."""
    if len(before) + len(after) > COMPARED_LINES:
        return [[("replace", 0, len(before), 0, len(after))]]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [list(group) for group in matcher.get_grouped_opcodes(CONTEXT)]


def _lines(text: str) -> list[str]:
    """Return the lines, each with its newline."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _shown(line: str) -> str:
    return line[:-1] if line.endswith("\n") else f"{line}  (no newline at the end)"
