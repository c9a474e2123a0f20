"""The facts that tell a session from the others of its list, in the few cells of a row.

What all sessions that were seen share says nothing and is left out, as is what the heading of
the group says already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import attrgetter

from store.queries.list_options import Group
from store.queries.listing import ListRow
from store.system.records import NamedTuple
from tui.kit.glyphs import glyphs
from tui.kit.text import cells, fit, one_line
from tui.words.sessions import folder, model_name, short_kind

MOST_CELLS = 60
USUAL_BRANCHES = ("main", "master")
"""Branches that are not shown: most sessions are on one of them."""


class Fact(NamedTuple):
    """A fact of a session.

    Attributes:
        field: The field of ``ListRow`` that it is made of.
        words: Returns its words, empty where there is nothing to say.
        short: Returns shorter ones.
    """

    field: str
    words: Callable[[ListRow], str]
    short: Callable[[ListRow], str]


def _place(row: ListRow) -> str:
    return folder(row.workspace).rstrip("/").rpartition("/")[2] if row.workspace else ""


def _branch(row: ListRow) -> str:
    return "" if row.branch in USUAL_BRANCHES else one_line(row.branch or "", MOST_CELLS)


def _source(row: ListRow) -> str:
    return one_line(row.source or row.agent, MOST_CELLS)


def _model(row: ListRow) -> str:
    return model_name(row.model)


FACTS = (
    Fact("workspace", _place, _place),
    Fact("source", _source, lambda row: short_kind(_source(row))),
    Fact("model", _model, _model),
    Fact("branch", _branch, lambda row: _branch(row).rpartition("/")[2]),
)
"""The most telling first. To add a fact, add one here; nothing else."""
_values_of = attrgetter("agent", *(fact.field for fact in FACTS))
"""What the words of a row's facts are made of; where no source is known, it is the agent."""


class Variety:
    """Which facts differ among the sessions that were seen."""

    def __init__(self) -> None:
        """Start with no session seen."""
        self._values: dict[str, set[str]] = {fact.field: set() for fact in FACTS}
        self._seen: set[tuple[str | None, ...]] = set()

    def add(self, rows: Iterable[ListRow]) -> None:
        """Take sessions that are seen."""
        for row in rows:
            values = _values_of(row)
            if values in self._seen:
                continue
            self._seen.add(values)
            for fact in FACTS:
                if words := fact.words(row):
                    self._values[fact.field].add(words)

    @property
    def differing(self) -> frozenset[str]:
        """The fields of the facts that have more than one value."""
        return frozenset(field for field, values in self._values.items() if len(values) > 1)


def facts_of(row: ListRow, differing: Collection[str], group: Group, room: int) -> str:
    """Return the facts of a session that have room, whole; the first one cut where none has.

    Args:
        row: The session.
        differing: As ``Variety`` has them.
        group: What the list is grouped by.
        room: Cells.
    """
    shown = [fact for fact in FACTS if fact.field in differing and fact.field != group.field]
    head: list[str] = []
    if row.lineage == "subagent":
        # It runs in its parent's agent, folder and branch.
        head, shown = ["subagent"], [fact for fact in shown if fact.field == "model"]
    long = head + [fact.words(row) for fact in shown]
    short = head + [fact.short(row) for fact in shown]
    for words in (long, short):
        if cells(_joined(words)) <= room:
            return _joined(words)
    fitting: list[str] = []
    for word in short:
        if cells(_joined([*fitting, word])) <= room:
            fitting.append(word)
    return _joined(fitting) or fit(next(filter(None, short), ""), room)


def _joined(words: Iterable[str]) -> str:
    return f" {glyphs().dot} ".join(filter(None, words))
