"""Lines and runs: what every screen of text is built of, before it has colours.

A run is a piece of text with an *ink*. An ink is a role of the palette, then any of
``bold``, ``italic``, ``underline``, ``strike`` and ``reverse``, and ``on:<role>`` for another
ground: ``"user bold"``, ``"text on:added"``. The role ``blank`` is for padding, ``thumb`` for a
scroll bar, ``mark`` for a faint bar on any ground. Inks are resolved when a line is painted
(``tui.kit.paint``), so lines outlive a change of theme or focus.

Text in a run is drawable: it went through ``tui.kit.text`` and holds no newline.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from store.system.records import NamedTuple, record
from tui.kit.text import cells, fit, one_line

Run = tuple[str, str]
"""Text and ink."""


class Value(NamedTuple):
    """What copying, opening or saving a line takes.

    Attributes:
        name: Says what it is, such as ``output`` or ``input.command``.
        read: Returns the whole text, as it is (not made harmless).
        suffix: The file suffix that fits it.
        path: Its path in the JSON document, "" where it has none.
    """

    name: str
    read: Callable[[], str]
    suffix: str = ".txt"
    path: str = ""


class Link(NamedTuple):
    """Where enter on a line leads.

    Attributes:
        kind: ``session`` opens a session; ``attachment`` loads a side file; ``turn`` and
            ``call`` go to a message of this session.
        target: The session's id, or the attachment's name.
        message_id: The message to place the session at.
        part_id: The part of that message to select.
    """

    kind: str
    target: str
    message_id: str | None = None
    part_id: str | None = None


@record
class Line:
    """One row of the screen.

    A builder may change a line until it hands it over; from then on it is a value.

    Attributes:
        runs: From the left edge.
        right: At the right edge; the left runs give way to them.
        value: What copying the line takes.
        link: Where enter leads.
        fold: Names what a click or a key folds, unfolds or opens on this line.
        ground: Role of the background under the content, "" for the view's own.
        bar: Role of the accent bar in views that have one: "" for the block's, ``none`` for
            no bar.
        soft: Whether it continues the line above, which was too long.
        lead: Characters at the start that are decoration: left out when a soft-wrapped
            line is joined for copying and searching, and not on the line's ground.
        tail: White space that the break after this row swallowed.
    """

    runs: Sequence[Run] = ()
    right: Sequence[Run] = ()
    value: Value | None = None
    link: Link | None = None
    fold: Hashable | None = None
    ground: str = ""
    bar: str = ""
    soft: bool = False
    lead: int = 0
    tail: str = ""

    @property
    def text(self) -> str:
        """The content as plain text, without the right runs."""
        return "".join([text for text, _ink in self.runs])

    @property
    def whole_text(self) -> str:
        """All of the line as plain text; the right runs follow two spaces."""
        right = "".join([text for text, _ink in self.right])
        return f"{self.text}  {right}" if right else self.text


BLANK = Line()


# Widths


def width_of(runs: Iterable[Run]) -> int:
    """Return how many cells the runs take."""
    width = 0
    for text, _ink in runs:
        width += len(text) if text.isascii() else cells(text)
    return width


def cut(runs: Sequence[Run], width: int) -> tuple[Run, ...]:
    """Return the runs in at most ``width`` cells, with an ellipsis where they were cut."""
    if width_of(runs) <= width:
        return tuple(runs)
    kept: list[Run] = []
    left = width
    for text, ink in runs:
        size = cells(text)
        if size >= left:
            kept.append((fit(text + " " if size == left else text, left), ink))
            break
        kept.append((text, ink))
        left -= size
    return tuple(kept)


def set_width(runs: Sequence[Run], width: int) -> tuple[Run, ...]:
    """Return the runs cut or padded to exactly ``width`` cells."""
    kept = cut(runs, width)
    pad = width - width_of(kept)
    return (*kept, (" " * pad, "blank")) if pad > 0 else kept


def arrange(line: Line, width: int, margin: int = 0) -> tuple[Run, ...]:
    """Return one row of runs, with the right runs at the edge.

    Args:
        line: The line; its left runs are cut where both have no room.
        width: Cells of the line.
        margin: Blank cells after them; the row is ``width + margin`` cells wide.
    """
    runs, right = line.runs, line.right
    taken = width_of(right) if right else 0
    if taken >= width - 2:
        if taken:
            runs = (*runs, ("  ", "text"), *right)
        right, taken = (), 0
    room = width - taken - 1 if taken else width
    used = width_of(runs)
    if used > room:
        runs = cut(runs, room)
        used = width_of(runs)
    fill = width - taken - used
    if taken:
        end: tuple[Run, ...] = ((" " * margin, "blank"),) if margin else ()
        return (*runs, (" " * fill, "blank"), *right, *end)
    return (*runs, (" " * (fill + margin), "blank")) if fill + margin else tuple(runs)


def middle_cut(text: str, width: int) -> str:
    """Return a long id shortened in its middle to ``width`` cells."""
    if len(text) <= width or width < 5:
        return text
    tail = min(6, (width - 1) // 3)
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def slice_runs(runs: Iterable[Run], start: int, end: int) -> list[Run]:
    """Return the runs of the characters from start to end.

    Args:
        runs: One line.
        start: The first character.
        end: The character after the last.
    """
    sliced, at = [], 0
    for text, ink in runs:
        if at >= end:
            break
        stop = at + len(text)
        if stop > start:
            sliced.append((text[max(0, start - at): end - at], ink))
        at = stop
    return sliced


# Lines that many screens have


def heading(
    title: str, facts: Sequence[str], width: int, *, value: Value | None = None,
    fold: Hashable | None = None,
) -> Line:
    """Return a section's title, its facts and the thin rule that ends the line.

    Args:
        title: What the section holds.
        facts: Faint, after the title.
        width: Cells of the line.
        value: What copying the line takes.
        fold: What folds on this line.
    """
    runs: list[Run] = [(title, "muted bold")]
    for fact in facts:
        runs.append((f"  {fact}", "faint"))
    rule = width - width_of(runs) - 1
    if rule > 0:
        runs += [(" ", "text"), ("─" * rule, "rule")]
    return Line(cut(runs, width), value=value, fold=fold)


def pair(
    name: str, runs: Sequence[Run], width: int, *, label: int = 9, value: Value | None = None,
    link: Link | None = None,
) -> Line:
    """Return a fact: its name in a column of its own, then what it is.

    Args:
        name: At the left, faint.
        runs: What the fact is.
        width: Cells of the line.
        label: Cells of the column of names.
        value: What copying the line takes.
        link: Where enter leads.
    """
    name_run: Run = (name.ljust(label) + " ", "faint")
    return Line(cut((name_run, *runs), width), value=value, link=link)


FACT_LABEL = 11
"""Cells of the column of names of ``fact`` and ``identity``."""


def fact(name: str, text: str, width: int, ink: str = "text") -> Line:
    """Return a fact that is text; copying the line takes the text.

    Args:
        name: At the left, faint.
        text: Any text; blanks before it align it.
        width: Cells of the line.
        ink: What the text is drawn with.
    """
    blanks = min(len(text) - len(text.lstrip(" ")), width)
    shown: Run = (" " * blanks + one_line(text), ink)
    return pair(name, [shown], width, label=FACT_LABEL, value=Value(name, text.strip))


def identity(name: str, text: str, width: int) -> Line:
    """Return a fact that is an id, shortened in its middle; copying takes all of it.

    Args:
        name: At the left, faint.
        text: The id.
        width: Cells of the line.
    """
    shown = middle_cut(one_line(text, 200), max(8, width - FACT_LABEL - 1))
    return pair(name, [(shown, "text")], width, label=FACT_LABEL, value=Value(name, lambda: text))


def indented(line: Line, columns: int) -> Line:
    """Move a line to the right, in place; returns it."""
    line.runs = ((" " * columns, "text"), *line.runs)
    line.lead += columns
    return line


# Rows that are one line of the source


def logical_lines(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of rows that are one line of the source."""
    start = 0
    for number in range(1, len(lines) + 1):
        if number == len(lines) or not lines[number].soft:
            yield start, number
            start = number


def joined(group: Sequence[Line]) -> tuple[str, list[tuple[int, int, int]]]:
    """Join soft-wrapped rows to the text they came from.

    Returns:
        The text, and for each row where it begins there, its lead and its length.
    """
    pieces, places, at = [], [], 0
    for row, line in enumerate(group):
        lead = line.lead if row else 0
        text = line.text[lead:]
        places.append((at, lead, len(text)))
        pieces += [text, line.tail]
        at += len(text) + len(line.tail)
    return "".join(pieces), places
