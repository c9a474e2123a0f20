"""All edits of a file as one diff, in order, each below a line that names its call."""

from __future__ import annotations

from collections.abc import Sequence

from store.queries.touches import FileRow, FileUse
from store.text.diffs import DiffLine, as_text
from store.text.figures import count_of, moment
from tui.details.touched_tables import call_link
from tui.kit.blocks import Block, Fixed
from tui.kit.diff import changes
from tui.kit.lines import BLANK, Line, Link, Run, Value, cut, width_of
from tui.kit.text import fit_path, one_line
from tui.words.touched import changed_words, line_words, mark_words, use_words

MOST_LINES = 20_000
"""Lines of a diff that are shown; laying out more would hold up the keys."""
PREVIEW_LINES = 400
"""Lines of the diff beside the list."""

Edits = Sequence[tuple[FileUse, list[DiffLine]]]


def edit_blocks(
    session_id: str, row: FileRow, edits: Edits, most: int = MOST_LINES
) -> list[Block]:
    """Return the blocks of a file's edits.

    Args:
        session_id: The session, for the links.
        row: The file.
        edits: Its changes with their lines, oldest first.
        most: Lines to show; what is beyond is counted.
    """
    whole = Value("diff", lambda: diff_text(row, edits), ".diff")
    blocks: list[Block] = [Fixed(lambda width: _head(row, len(edits), width, whole))]
    if not edits:
        reads = row.count("read")
        told = f"Only read, {reads}×" if reads > 1 else "Only read"
        blocks.append(_told(told))
    left = most
    for at, (use, lines) in enumerate(edits):
        if left <= 0:
            blocks.append(_told(f"… {count_of(len(edits) - at, 'more edit')}"))
            break
        blocks += _edit(session_id, use, lines[:left], len(lines))
        left -= len(lines)
    return blocks


def _head(row: FileRow, edits: int, width: int, value: Value) -> list[Line]:
    plus, minus = line_words(row)
    right: list[Run] = [(f"{plus} " if plus else "", "ok"), (minus, "error")]
    room = width - width_of(right) - 2
    runs: list[Run] = [(fit_path(one_line(row.shown[-1_000:]), room), "text bold"),
                       (f"  {changed_words(row)}", "muted")]
    return [Line(cut(runs, room), right, value=value), BLANK]


def _edit(session_id: str, use: FileUse, lines: list[DiffLine], length: int) -> list[Block]:
    value = Value("edit", lambda: as_text(lines), ".diff")
    link = call_link(session_id, use.call)

    def head(width: int) -> list[Line]:
        plus, minus = use.lines or (0, 0)
        ink = "text" if use.call.counts else "error" if not use.call.outcome.done else "fork"
        runs: list[Run] = [(f"turn {use.call.place.turn}", "text bold"),
                           (f"  {moment(use.call.at)[5:16]}", "faint"),
                           (f"  {one_line(use_words(use), 200)}", ink)]
        runs += [(f"  +{plus:,}", "ok")] if plus else []
        runs += [(f"  -{minus:,}", "error")] if minus else []
        runs += [(f"  {marks}", "fork")] if (marks := mark_words(use.call)) else []
        rule = width - width_of(runs) - 1
        runs += [(" ", "text"), ("─" * rule, "rule")] if rule > 0 else []
        return [Line(cut(runs, width), value=value, link=link)]

    blocks: list[Block] = [Fixed(head)]
    if lines:
        blocks.append(changes(lines, value, None, None, link))
    else:
        blocks.append(_told("The lines of this edit are not recorded.", link))
    if length > len(lines):
        blocks.append(_told(f"… {count_of(length - len(lines), 'more line')}", link))
    blocks.append(Fixed(lambda _: [BLANK]))
    return blocks


def _told(text: str, link: Link | None = None) -> Block:
    return Fixed(lambda _: [Line(((text, "muted"),), link=link)])


def diff_text(row: FileRow, edits: Edits) -> str:
    """Return all edits of a file as text, for copying."""
    pieces = []
    for use, lines in edits:
        at = moment(use.call.at)
        pieces.append(f"# {row.shown}, turn {use.call.place.turn}, {at}, {use_words(use)}")
        pieces.append(as_text(lines))
    return "\n".join(pieces)
