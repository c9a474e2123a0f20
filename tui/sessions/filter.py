"""The filter of the session list: its words, and the sessions that match them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from store.system.records import NamedTuple
from tui.sessions.loader import ListLoader

if TYPE_CHECKING:
    from store.language.query import Query

SessionsReader = Callable[[], Awaitable[set[int]]]
"""Reads rowids of sessions."""
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
        unsearched: Why not all was searched for what is said; "" where all was.
    """

    def __init__(self, loader: ListLoader) -> None:
        """Make an empty filter.

        Args:
            loader: Reads the sessions that are looked at.
        """
        self.text = ""
        self._loader = loader
        self._query: Query | None = None
        self._asks_for_parts = False
        self._chosen: tuple[str, SessionsReader | None] = "", None
        self._matched: tuple[Query, set[int]] | None = None
        self._said: tuple[str, set[int]] = "", set()  # Rowids, by the words they were found for.
        self._search: object = None  # The one whose hits are waited for.
        self.unsearched = ""

    @property
    def is_searching(self) -> bool:
        """Whether what is said in the sessions is being searched."""
        return self._search is not None

    def stop_searching(self) -> None:
        """Wait no longer for a search, which may take a moment to end."""
        self._search = None

    @property
    def query(self) -> Query:
        """What is asked for, with dates as of when it was first wanted."""
        if self._query is None or self._query.text != self.text:
            # Not needed before a query is typed.
            from store.language.query import parse
            from store.queries.listing_filter import ListFilterTest

            self._query = parse(self.text, now=self._loader.clock())
            self._asks_for_parts = ListFilterTest(self._query).asks_for_parts
        return self._query

    def choose(self, text: str, sessions: SessionsReader | None) -> None:
        """Set the text, and what reads the sessions that it stands for as long as it stays.

        Args:
            text: The filter.
            sessions: Reads them; None where they are looked for.
        """
        self.text, self._chosen = text, (text, sessions)
        self.forget()

    @property
    def _reader(self) -> SessionsReader | None:
        text, sessions = self._chosen
        return sessions if text == self.text else None

    @property
    def words(self) -> str:
        """The text that is looked for; empty where nothing is asked for yet."""
        return self.text.strip() if self.text and self.query else ""

    @property
    def asks_for_parts(self) -> bool:
        """Whether sessions may also match by what is said in them."""
        return bool(self.words) and self._asks_for_parts and self._reader is None

    @property
    def will_search(self) -> bool:
        """Whether what is said in the sessions is still to be searched, or is being searched."""
        return self.is_searching or (self.asks_for_parts and self._said[0] != self.words)

    @property
    def asks_for_archived(self) -> bool:
        """Whether archived sessions are asked for, whatever the list shows else."""
        return bool(self.words) and any(
            each.field == "is" and each.value == "archived" and not each.negated
            for each in self.query.filters
        )

    @property
    def matched(self) -> set[int] | None:
        """The sessions that match; None without a filter, and before it has looked at all."""
        if self._matched is None:
            return None
        said = self._said[0] == self.words and self._reader is None
        return self._matched[1] | self._said[1] if said else self._matched[1]

    @property
    def is_looking(self) -> bool:
        """Whether the filter is set and has not looked at all sessions yet."""
        return bool(self.words) and self._matched is None

    def forget(self) -> None:
        """Forget what matched, as the list has changed."""
        self._matched = None

    async def look(self, rowids: array[int]) -> AsyncIterator[Found]:
        """Look for sessions that match by title and fields, and yield them from time to time.

        Words that narrow the ones before look at what these matched alone. Those in which the
        words were found before, by ``search``, stay.

        Args:
            rowids: The sessions of the list, in its order.
        """
        from store.queries.listing_filter import narrows

        query = self.query
        if (sessions := self._reader) is not None:
            matching = await sessions()
            # Of no query: what is typed next must not look at these alone.
            self._matched = (type(query)(""), matching)
            yield Found(matching)
            return
        narrowed = self._matched is not None and narrows(query, self._matched[0])
        candidates = rowids
        if narrowed and self._matched is not None:
            kept = self.matched or set()
            candidates = array("q", (rowid for rowid in rowids if rowid in kept))
        said = self._said[1] if self._said[0] == self.words else set()
        clock = asyncio.get_running_loop().time
        shown_at = 0.0
        matching = set()
        async for looked_at, matching in self._loader.matches(candidates, query):
            if looked_at < len(candidates) and clock() - shown_at >= REPAINT_EVERY_S:
                shown_at = clock()
                yield Found(matching | said, None if narrowed else looked_at)
        self._matched = (query, matching)
        yield Found(matching | said)

    async def search(self) -> AsyncGenerator[set[int], None]:
        """Look for sessions in which the words are, and yield all that match from time to time.

        Raises:
            StoreError: The store cannot be read.
        """
        if self._matched is None:
            return
        query, words = self._matched[0], self.words
        before = self._said[1] if self._said[0] == words else set()
        clock = asyncio.get_running_loop().time
        shown_at, said, search = 0.0, set[int](), object()
        self._search, self.unsearched = search, ""
        try:
            async with aclosing(self._loader.said(query)) as found:
                async for said, self.unsearched in found:
                    if said - before and clock() - shown_at >= REPAINT_EVERY_S:
                        shown_at = clock()
                        self._said = words, before | said
                        yield self.matched or set()
        except Exception as error:
            self._said, self.unsearched = (words, before | said), str(error)
            raise
        finally:
            if self._search is search:
                self._search = None
        self._said = words, said
        yield self.matched or set()
