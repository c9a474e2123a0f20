"""Reads the list on threads, and interrupts reads that are no longer needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from store.engine.database import Database, open_database
from store.queries import activities, listing
from store.queries.list_keys import ListKeys
from store.queries.listing import ListQuery
from store.system.clock import Clock
from tui.sessions.model import ListModel, build_model

if TYPE_CHECKING:
    from store.language.query import Query
    from store.search.searching import Searcher

T = TypeVar("T")

CHUNK = 4_000
"""Sessions that one step of a filter looks at."""
MOST_IDLE = 2
"""Connections that are kept: the list and its filter may be read at once."""


class ListLoader:
    """Runs list queries on threads, each on a connection of its own.

    The reading thread of the store stays free for the transcript, however long the list is.

    Attributes:
        clock: Returns the present as epoch ms.
    """

    def __init__(self, path: Path, clock: Clock, *, keeps: bool = False) -> None:
        """Name the store.

        Args:
            path: The store's file, or its place.
            clock: Returns the present as epoch ms.
            keeps: Whether connections are kept for later readings. One to a server takes longer
                to make than most readings; one to a file does not, and holds the file open.
        """
        self._path, self.clock, self._keeps = path, clock, keeps
        self._idle: list[Database] = []
        self._searcher: Searcher | None = None
        self._one_opens = asyncio.Lock()
        self._closed = False

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[_Lent]:
        """Lend a connection; what still runs on it at the end is interrupted."""
        lent = _Lent(await self._connection())
        try:
            yield lent
        finally:
            lent.end(self._take_back)

    async def _connection(self) -> Database:
        while self._idle:
            database = self._idle.pop()
            lent = _Lent(database)
            try:
                if not await lent.run(Database.is_stale):
                    return database
            except asyncio.CancelledError:
                lent.end(self._take_back)
                raise
            await asyncio.to_thread(database.close)
        opening = asyncio.ensure_future(asyncio.to_thread(open_database, self._path, write=False))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # One that nobody waits for any more is closed.
            opening.add_done_callback(_close_opened)
            raise

    def _take_back(self, database: Database) -> None:
        kept = self._keeps and not self._closed and len(self._idle) < MOST_IDLE
        if kept and not database.moved() and not database.connection.in_transaction:
            self._idle.append(database)
        else:
            database.close()

    @asynccontextmanager
    async def _searching(self) -> AsyncIterator[Searcher]:
        """Lend a searcher; a new search ends the one before it."""
        from store.search.searching import Searcher  # Not needed before words are searched for.

        if not self._keeps:
            async with await Searcher.open(self._path) as searcher:
                yield searcher
            return
        async with self._one_opens:
            if self._searcher is None:
                self._searcher = await Searcher.open(self._path)
        yield self._searcher

    async def close(self) -> None:
        """Close the connections that are kept; those that are lent are closed at their end."""
        self._closed = True
        idle, self._idle = self._idle, []
        for database in idle:
            await asyncio.to_thread(database.close)
        async with self._one_opens:
            if self._searcher is not None:
                await self._searcher.close()

    async def _run(self, work: Callable[[Database], T]) -> T:
        async with self._lent() as lent:
            return await lent.run(work)

    async def keys(self, query: ListQuery) -> ListKeys:
        """Return the keys of the whole list."""
        return await self._run(lambda database: activities.keys(database, query, self.clock()))

    async def folds(self, folds: Mapping[str, bool]) -> dict[int, bool]:
        """Return the user's folds by rowid, from those by session id."""
        if not folds:
            return {}
        rowids = await self._run(lambda database: listing.rowids_of(database, list(folds)))
        return {rowid: folds[name] for name, rowid in rowids.items()}

    async def model(
        self, keys: ListKeys, folds: Mapping[int, bool], matching: set[int] | None, *, headed: bool
    ) -> ListModel:
        """Arrange the list on a thread.

        Args:
            keys: The sessions in order.
            folds: By rowid, whether the user folded or unfolded what is below a session.
            matching: The rowids that the filter leaves; None without a filter.
            headed: Whether groups have headings.
        """
        return await asyncio.to_thread(build_model, keys, folds, matching, headed=headed)

    async def matches(
        self, candidates: Sequence[int], query: Query
    ) -> AsyncGenerator[tuple[int, set[int]], None]:
        """Look for the sessions that match by title and fields, in the order of the list.

        Args:
            candidates: Rowids to look at.
            query: What the user asks for.

        Yields:
            How many were looked at so far, and those of them that match.
        """
        # Not needed before a query is typed.
        from store.queries.listing_filter import ListFilterTest

        test = ListFilterTest(query)
        found: set[int] = set()

        def look(database: Database, rowids: Sequence[int]) -> set[int]:
            return test.matching(database, rowids, self.clock())

        async with self._lent() as lent:
            for start in range(0, len(candidates), CHUNK):
                chunk = list(candidates[start:start + CHUNK])
                found |= await lent.run(partial(look, rowids=chunk))
                yield min(start + CHUNK, len(candidates)), found

    async def said(self, query: Query) -> AsyncGenerator[tuple[set[int], str], None]:
        """Look for the sessions in which there is what a query asks for.

        Args:
            query: What the user asks for.

        Yields:
            The rowids of those that were found so far, and why not all was searched, once the
            search has ended; "" where all was.

        Raises:
            StoreError: The store cannot be read.
        """
        from store.queries.listing_filter import ListFilterTest

        test = ListFilterTest(query)

        def allowed(database: Database, ids: set[str]) -> set[int]:
            rowids = list(listing.rowids_of(database, ids).values())
            return test.allowed(database, rowids, self.clock())

        seen: set[str] = set()
        found: set[int] = set()
        async with (
            self._searching() as searcher,
            aclosing(searcher.sessions(test.of_parts)) as steps,
        ):
            async for ids, why in steps:
                new = ids - seen
                found |= await self._run(partial(allowed, ids=new)) if new else set()
                seen |= new
                yield set(found), why


class _Lent:
    """A connection for the time of a reading.

    Attributes:
        database: The connection.
    """

    def __init__(self, database: Database) -> None:
        """Take the connection."""
        self.database = database
        self._task: asyncio.Task[Any] | None = None

    async def run(self, work: Callable[[Database], T]) -> T:
        """Run a function of the connection on a thread."""
        task = self._task = asyncio.create_task(asyncio.to_thread(work, self.database))
        return await asyncio.shield(task)

    def end(self, take_back: Callable[[Database], None]) -> None:
        """Give the connection back, after what still runs on it.

        Args:
            take_back: Takes it.
        """
        task, database = self._task, self.database
        if task is None or task.done():
            take_back(database)
            return

        def ended(done: asyncio.Task[Any]) -> None:
            if not done.cancelled():
                done.exception()  # Nobody waits for it.
            take_back(database)

        database.connection.interrupt()
        task.add_done_callback(ended)


def _close_opened(opening: asyncio.Future[Database]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
