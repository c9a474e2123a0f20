"""Lines as the inspector builds them: runs of text with a look, and what the line stands for.

A builder never touches colours or widgets: it names looks by the palette's roles, so that
the same lines serve every theme, and the view resolves them when it paints.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

Run = tuple[str, str]
"""A text and its look: a palette role, then any of ``bold``, ``italic``, ``underline``,
``reverse``, and ``on:<role>`` for another ground."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a line stands for when it is copied, opened or saved.

    Attributes:
        name: Says what it is, such as ``output`` or ``input.command``.
        read: Returns the whole text, as it is (not made harmless).
        suffix: The file suffix that fits it.
        path: Its path in the JSON document, empty where it is none.
    """

    name: str
    read: Callable[[], str]
    suffix: str = ".txt"
    path: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """Where enter on a line leads.

    Attributes:
        kind: ``session`` opens a session; ``attachment`` loads a side file; ``turn``
            goes to a message of this session.
        target: The session's id, or the attachment's name.
        message_id: The message to place the session at.
    """

    kind: str
    target: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the screen.

    Attributes:
        runs: From the left edge.
        right: At the right edge; the left runs give way to it.
        fold: Names what ``o`` folds or unfolds on this line.
        ground: A palette role to lay beneath the whole line.
        soft: Whether the line goes on where the line above was broken for its width.
    """

    runs: tuple[Run, ...] = ()
    right: tuple[Run, ...] = ()
    value: Value | None = None
    link: Link | None = None
    fold: Hashable | None = None
    ground: str | None = None
    soft: bool = False

    @property
    def text(self) -> str:
        """The text of the line without its looks; right runs follow two spaces."""
        left = "".join(text for text, _ in self.runs)
        right = "".join(text for text, _ in self.right)
        return f"{left}  {right}" if right else left


BLANK = Line()


def width_of(runs: Iterable[Run]) -> int:
    """Return how many cells the runs take."""
    return sum(len(text) if text.isascii() else cell_len(text) for text, _ in runs)


def cut(runs: Sequence[Run], width: int) -> tuple[Run, ...]:
    """Return the runs in at most ``width`` cells, with an ellipsis where they were cut."""
    if width_of(runs) <= width:
        return tuple(runs)
    kept: list[Run] = []
    left = max(0, width - 1)
    for text, look in runs:
        size = width_of([(text, look)])
        if size > left:
            kept.append((set_cell_size(text, left) + "…" if width > 0 else "", look))
            break
        kept.append((text, look))
        left -= size
    return tuple(kept)


def set_width(runs: Sequence[Run], width: int) -> tuple[Run, ...]:
    """Return the runs cut or padded to exactly ``width`` cells."""
    kept = cut(runs, width)
    pad = width - width_of(kept)
    return (*kept, (" " * pad, "text")) if pad > 0 else kept


def arrange(line: Line, width: int) -> tuple[Run, ...]:
    """Return one row of runs, exactly ``width`` cells, with the right runs at the edge."""
    right_width = width_of(line.right)
    if not right_width:
        return set_width(line.runs, width)
    if right_width >= width - 2:
        return set_width((*line.runs, ("  ", "text"), *line.right), width)
    return (*set_width(line.runs, width - right_width - 1), (" ", "text"), *line.right)


def middle_cut(text: str, width: int) -> str:
    """Return a long id shortened in its middle to ``width`` cells."""
    if len(text) <= width or width < 5:
        return text
    tail = min(6, (width - 1) // 3)
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def heading(title: str, facts: Sequence[str], width: int, **more: object) -> Line:
    """Return a section's title, its facts and the thin rule that ends the line."""
    runs: list[Run] = [(title, "muted bold")]
    for fact in facts:
        runs.append((f"  {fact}", "faint"))
    rule = width - width_of(runs) - 1
    if rule > 0:
        runs += [(" ", "text"), ("─" * rule, "rule")]
    return replace(Line(runs=cut(runs, width)), **more)  # type: ignore[arg-type]


def pair(name: str, runs: Sequence[Run], width: int, *, label: int = 9, **more: object) -> Line:
    """Return a fact: its name in a column of ``label`` cells, then what it is."""
    name_run: Run = (name.ljust(label) + " ", "faint")
    return replace(Line(runs=cut((name_run, *runs), width)), **more)  # type: ignore[arg-type]
