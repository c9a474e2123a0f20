"""The words of a query as what marks them in lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from store.language.matching import Folded, matcher
from store.language.query import Query, Span


class Mark(NamedTuple):
    """A place that is marked."""

    first: int
    last: int

    def start(self) -> int:
        """Return its first character."""
        return self.first

    def end(self) -> int:
        """Return the character after its last."""
        return self.last


class Marks:
    """Finds each of the words that a query asks for; see ``tui.kit.hits.Finds``."""

    def __init__(self, query: Query) -> None:
        """Take the words of a query, without those that must not be there."""
        self._matcher = matcher([term for term in query.terms if not term.negated])

    def finditer(self, text: str, /) -> Iterator[Mark]:
        """Yield where the words are; places that overlap are one."""
        folded = Folded(text)
        found = sorted(span for term in self._matcher.terms for span in term.spans(folded))
        open_: Span | None = None
        for start, end in found:
            if open_ is not None and start <= open_[1]:
                open_ = open_[0], max(open_[1], end)
                continue
            if open_ is not None:
                yield Mark(*open_)
            open_ = (start, end) if end > start else open_
        if open_ is not None:
            yield Mark(*open_)


def marks_of(query: Query) -> Marks | None:
    """Return what marks the words of a query; None where it has none."""
    return Marks(query) if any(not term.negated for term in query.terms) else None
