"""Reads the list on threads, and interrupts reads that are no longer needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from store.engine.database import Database, open_database
from store.queries import activities, listing
from store.queries.list_keys import ListKeys
from store.queries.listing import ListQuery
from store.system.clock import Clock
from tui.sessions.model import ListModel, build_model

if TYPE_CHECKING:
    from store.language.query import Query

T = TypeVar("T")

CHUNK = 4_000
"""Sessions that one step of a filter looks at."""


class ListLoader:
    """Runs list queries on threads, each on a connection of its own.

    The reading thread of the store stays free for the transcript, however long the list is.

    Attributes:
        clock: Returns the present as epoch ms.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        """Name the store's file; the clock returns the present as epoch ms."""
        self._path, self.clock = path, clock

    async def _open(self) -> Database:
        """Return a new connection; one that nobody waits for any more is closed."""
        opening = asyncio.ensure_future(asyncio.to_thread(open_database, self._path, write=False))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)
            raise

    async def _run(self, work: Callable[[Database], T]) -> T:
        database = await self._open()
        task = asyncio.create_task(asyncio.to_thread(work, database))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            database.connection.interrupt()
            raise
        finally:
            task.add_done_callback(lambda done: _finish(done, database))

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

        def look(rowids: Sequence[int]) -> set[int]:
            return test.matching(database, rowids, self.clock())

        database = await self._open()
        task: asyncio.Task[set[int]] | None = None
        try:
            for start in range(0, len(candidates), CHUNK):
                chunk = list(candidates[start:start + CHUNK])
                task = asyncio.create_task(asyncio.to_thread(look, chunk))
                found |= await asyncio.shield(task)
                yield min(start + CHUNK, len(candidates)), found
        finally:
            if task is None or task.done():
                database.close()
            else:
                database.connection.interrupt()
                task.add_done_callback(lambda done: _finish(done, database))

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
        from store.search.searching import Searcher

        test = ListFilterTest(query)

        def allowed(database: Database, ids: set[str]) -> set[int]:
            rowids = list(listing.rowids_of(database, ids).values())
            return test.allowed(database, rowids, self.clock())

        seen: set[str] = set()
        found: set[int] = set()
        async with (
            await Searcher.open(self._path) as searcher,
            aclosing(searcher.sessions(test.of_parts)) as steps,
        ):
            async for ids, why in steps:
                new = ids - seen
                found |= await self._run(partial(allowed, ids=new)) if new else set()
                seen |= new
                yield set(found), why


def _finish(task: asyncio.Task[T], database: Database) -> None:
    if not task.cancelled():
        task.exception()
    database.close()


def _close_opened(opening: asyncio.Future[Database]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
