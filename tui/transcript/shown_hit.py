"""A hit of a search over all sessions, in the transcript of its session."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple, Protocol

from store.search.hits import Hit
from tui.kit.hits import Finds
from tui.kit.text import one_line
from tui.transcript.document import Document
from tui.transcript.reader import SessionReader

MOST_PAGES = 16
"""How many pages of a long part are opened to reach a match."""


class HitTour(Protocol):
    """The hits of a search, through which one goes on in the transcript."""

    @property
    def words(self) -> str:
        """Which hit is shown, such as ``hit 3 of 48``."""
        ...

    def step(self, by: int) -> Awaitable[None]:
        """Show the next (1) or previous (-1) hit, in whichever session it is."""
        ...


class ShownHit(NamedTuple):
    """A hit that the transcript shows.

    Attributes:
        hit: The hit.
        marks: Finds what is marked; None marks nothing.
        tour: Leads to the other hits, and back to the results.
    """

    hit: Hit
    marks: Finds | None
    tour: HitTour


async def part_of_hit(
    reader: SessionReader, document: Document, message_id: str | None, index: int
) -> int | None:
    """Return the part of a hit, once its row is loaded; None where it is gone.

    Args:
        reader: Reads the session.
        document: What is known of it; where that lacks the part, the whole session is read.
        message_id: The message; None for a title, whose part is the session's first.
        index: The part's index in the message.
    """
    if not len(document):
        return None
    if message_id is None:
        return 0
    part = document.skeleton.locate(message_id, index)
    if not document.complete and (
        part is None or document.skeleton.key(part) != (message_id, index)
    ):
        skeleton, heights = await reader.skeleton(document.setting)
        document.use(skeleton, heights, complete=True)
        part = document.skeleton.locate(message_id, index)
    if part is not None:
        await reader.have(document, [part])
    return part


def open_for_hit(document: Document, part: int, hit: Hit, marks: Finds | None) -> int:
    """Open a part, and the hidden messages it is in, as far as a hit asks for.

    Args:
        document: Holds the part's row.
        part: The part.
        hit: The hit.
        marks: Finds the matches.

    Returns:
        The line of the part that shows the match of the excerpt.
    """
    run = document.run_of(part)
    if run is not None and not document.run_opened(run):
        document.turn_run(run)
    block = document.block(part)
    if block is None or marks is None:
        return 0
    wanted = one_line(hit.excerpt.text)
    line = _line_of(document, part, marks, wanted)
    if line is not None or not block.folded:
        return line if line is not None else block.top
    key = document.skeleton.key(part)
    document.folds[key] = "whole"
    document.forget(part)
    while (line := _line_of(document, part, marks, wanted)) is None:
        block = document.block(part)
        more = block is not None and block.lines and block.lines[-1].fold == "more"
        if not more or document.pages.get(key, 1) >= MOST_PAGES:
            break
        document.pages[key] = document.pages.get(key, 1) + 1
        document.forget(part)
    if line is not None:
        return line
    block = document.block(part)
    return next(iter(block.hits(marks).starts), block.top) if block is not None else 0


def _line_of(document: Document, part: int, marks: Finds, wanted: str) -> int | None:
    """Return the first line with a match that shows a piece of a text."""
    block = document.block(part)
    for start in block.hits(marks).starts if block is not None else ():
        assert block is not None
        rest = [block.lines[start], *(line for line in block.lines[start + 1: start + 2])]
        words = one_line(block.lines[start].text)
        if words and (words in wanted or wanted in words):
            return start
        joined = one_line("".join([line.text for line in rest]))
        if wanted in joined or _overlap(words, wanted):
            return start
    return None


def _overlap(words: str, wanted: str) -> bool:
    """Return whether a row of a wrapped or decorated line shows some of a text."""
    pieces = [wanted[at: at + 24] for at in range(0, max(1, len(wanted) - 23), 12)]
    return any(piece in words for piece in pieces)
