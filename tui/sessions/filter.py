"""The filter of the session list: its words, and the sessions that match them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

from tui.sessions.loader import ListLoader

if TYPE_CHECKING:
    from store.language.query import Query

REPAINT_EVERY_S = 0.15
"""Pace at which a filter that still runs shows what it found."""


class Found(NamedTuple):
    """What a filter has found so far.

    Attributes:
        matching: Rowids of the sessions that match.
        looked_at: How many sessions it has looked at; None where that is not shown, and at
            the end.
    """

    matching: set[int]
    looked_at: int | None = None


class ListFilter:
    """The words of the filter, and which sessions match them once it has looked.

    Attributes:
        text: As it was typed.
    """

    def __init__(self, loader: ListLoader) -> None:
        """Make an empty filter.

        Args:
            loader: Reads the sessions that are looked at.
        """
        self.text = ""
        self._loader = loader
        self._query: Query | None = None
        self._matched: tuple[Query, set[int]] | None = None

    @property
    def query(self) -> Query:
        """What is asked for, with dates as of when it was first wanted."""
        if self._query is None or self._query.text != self.text:
            # Not needed before a query is typed.
            from store.language.query import parse

            self._query = parse(self.text, now=self._loader.clock())
        return self._query

    @property
    def words(self) -> str:
        """The text that is looked for; empty where nothing is asked for yet."""
        return self.text.strip() if self.text and self.query else ""

    @property
    def matched(self) -> set[int] | None:
        """The sessions that match; None without a filter, and before it has looked at all."""
        return None if self._matched is None else self._matched[1]

    @property
    def is_looking(self) -> bool:
        """Whether the filter is set and has not looked at all sessions yet."""
        return bool(self.words) and self._matched is None

    def forget(self) -> None:
        """Forget what matched, as the list has changed."""
        self._matched = None

    async def look(self, rowids: array[int]) -> AsyncIterator[Found]:
        """Look for the sessions that match the words, and yield what was found from time to time.

        Words that narrow the ones before look at what these matched alone.

        Args:
            rowids: The sessions of the list, in its order.
        """
        from store.queries.listing_filter import narrows

        query = self.query
        narrowed = self._matched is not None and narrows(query, self._matched[0])
        candidates = rowids
        if narrowed and self._matched is not None:
            kept = self._matched[1]
            candidates = array("q", (rowid for rowid in rowids if rowid in kept))
        clock = asyncio.get_running_loop().time
        shown_at = 0.0
        matching: set[int] = set()
        async for looked_at, matching in self._loader.matches(candidates, query):
            if looked_at < len(candidates) and clock() - shown_at >= REPAINT_EVERY_S:
                shown_at = clock()
                yield Found(set(matching), None if narrowed else looked_at)
        self._matched = (query, matching)
        yield Found(matching)
