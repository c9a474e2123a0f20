"""The rows of a document that a selection holds."""

from __future__ import annotations

from collections.abc import Iterator

from textual.selection import Selection

from tui.kit.lines import Line
from tui.kit.selection import LAST_LINE, offset_y, places_in
from tui.transcript.document import Document

MOST_COPIED_PARTS = 5_000


def rows_in(document: Document, selection: Selection) -> Iterator[tuple[int, Line, str]]:
    """Yield offset, line and text of each row that may be selected and whose part is here."""
    last = max(0, len(document) - 1)
    (first_part, first_line), (last_part, last_line) = places_in(selection, (last, LAST_LINE))
    for part in range(first_part, min(last_part, first_part + MOST_COPIED_PARTS) + 1):
        block = document.block(part)
        if block is None:
            continue
        start = first_line if part == first_part else 0
        end = last_line + 1 if part == last_part else len(block.lines)
        for number, line in enumerate(block.lines[start:end], start):
            text = line.text.rstrip() if line.bar == "none" else line.text
            yield offset_y(part, number), line, text
