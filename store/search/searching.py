"""Searches a store, with its own connection, so that no pane waits for it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from store.engine.connection_thread import ConnectionThread
from store.engine.database import Database
from store.engine.loops_lock import CLOSE_S, LoopsLock
from store.engine.transactions import for_user
from store.errors import StoreError
from store.language.query import Query
from store.search.hits import Hits, Order, Update, order_of
from store.search.index.reading import Index, IndexUnusable, open_index
from store.search.running import (
    PAGE,
    SCAN_S,
    Request,
    Run,
    SessionsFound,
    sessions_with_hits,
)

if TYPE_CHECKING:
    from store.sharing.masks import Masking

__all__ = ["PAGE", "Request", "Searcher"]

_PAUSE_S = 0.002
"""Between two slices, so that whoever draws in this process gets its turn."""


class _End:
    """Says that a search has ended."""


_END = _End()
T = TypeVar("T")


class Searcher:
    """Runs one search at a time on a store; starting another ends the one that runs.

    ``async with await Searcher.open(path) as searcher`` closes it.
    """

    def __init__(self, path: Path) -> None:
        """Name the store; ``open`` makes one that is ready."""
        self.path = path
        self._thread: ConnectionThread
        self._index: Index | None = None
        self._current: object | None = None
        self._running, self._finding = LoopsLock(), LoopsLock()
        self._closed = False
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Return a searcher with an open connection.

        Raises:
            StoreError: The file is missing or is no store.
        """
        searcher = cls(path)
        searcher._thread = await ConnectionThread(path, write=False).start()
        return searcher

    def search(
        self,
        query: Query,
        *,
        order: Order = "newest",
        limit: int = PAGE,
        cursor: str | None = None,
        per_session: int | None = None,
        helpers: bool = False,
        counting: bool = True,
        masking: Masking | None = None,
    ) -> AsyncIterator[Update]:
        """Yield what is found, first the page of hits, then counts and facets as they grow.

        A search that is not the newest one of this searcher ends without a last update.

        Args:
            query: What is searched for, from ``store.language.query.parse``.
            order: ``newest`` hits first, or the ``best``.
            limit: How many hits the page has at most.
            cursor: ``Page.cursor`` of the page before; None for the first.
            per_session: How many hits of one session the page has at most; the others are
                counted in ``SessionHits.more``. None for no limit.
            helpers: Whether runs that agents started for themselves are searched.
            counting: Whether to go on behind the page, for counts and facets. With the newest
                first, they count from the cursor on.
            masking: What is masked in all texts before they are searched; None for nothing.

        Raises:
            StoreError: The store cannot be read, or the cursor is none of this search.
        """
        return self.run(Request(
            query, order, limit, cursor, per_session, helpers, counting, totals=counting,
            scan_s=SCAN_S, masking=masking))

    async def run(self, request: Request) -> AsyncIterator[Update]:
        """Yield what ``search`` does, for a request.

        Args:
            request: The search, from ``store.search.running``.

        Raises:
            StoreError: The store cannot be read, or the cursor is none of this search.
        """
        async for update in self._stepped(
            lambda db, index: Run(db, request, index).steps()
        ):
            yield update

    async def hits(
        self, query: Query, *, order: Order = "newest", limit: int = PAGE,
        cursor: str | None = None,
    ) -> Hits:
        """Return a page of hits; calls of several tasks are taken one after the other.

        Args:
            query: What is searched for.
            order: ``newest`` hits first, or the ``best``.
            limit: How many hits at most.
            cursor: Of the page before; None for the first.

        Raises:
            StoreError: The store cannot be read, or the cursor is none of this search.
        """
        async with self._finding.held():
            last: Update | None = None
            request = Request(query, order, limit, cursor, counting=False, totals=False)
            async for update in self.run(request):
                last = update
        if last is None:
            raise StoreError(f"the search of {self.path} was ended; search again")
        found = sorted(last.page.hits, key=lambda hit: order_of(
            hit.score if order == "best" else 0.0, hit.place))
        return Hits(found, last.page.cursor, last.coverage.why)

    async def sessions(
        self, query: Query, *, helpers: bool = True
    ) -> AsyncGenerator[SessionsFound, None]:
        """Yield the sessions that have hits, all that are known so far.

        Args:
            query: What is searched for.
            helpers: Whether runs that agents started for themselves are searched.

        Raises:
            StoreError: The store cannot be read.
        """
        async for found in self._stepped(
            lambda db, index: sessions_with_hits(db, query, index, helpers=helpers)
        ):
            yield found

    async def _stepped(
        self, begin: Callable[[Database, Index | None], Iterator[T | None]]
    ) -> AsyncIterator[T]:
        """Yield what a search yields, a step at a time, until another one is begun."""
        if self._closed:
            return
        mine = self._current = object()
        self._thread.interrupt()
        async with self._running.held():
            await self._renew()
            steps = self._begun(begin)
            try:
                while self._current is mine and not self._closed:
                    step = await self._thread.run(lambda: next(steps, _END))
                    if isinstance(step, _End):
                        return
                    if step is not None and self._current is mine:
                        yield step
                    await asyncio.sleep(_PAUSE_S)
            except sqlite3.Error as error:
                if self._current is mine and not self._closed:
                    raise for_user(error, self.path) from error
            finally:
                # What the index reads is released where it was begun.
                await self._thread.run(steps.close)

    async def _renew(self) -> None:
        """Open the file again where that is needed to see what others wrote to it."""
        if await self._thread.run(lambda: self._thread.database.is_stale()):
            fresh = await ConnectionThread(self.path, write=False).start()
            stale, self._thread = self._thread, fresh
            await stale.close()

    def _begun(
        self, begin: Callable[[Database, Index | None], Iterator[T | None]]
    ) -> Generator[T | None, None, None]:
        """Run a search with the index, or without it where it turns out to be damaged."""
        if self._index is None:
            self._index = open_index(self.path)
        try:
            yield from begin(self._thread.database, self._index)
        except IndexUnusable:
            # Its own process makes a new one.
            self._close_index()
            yield from begin(self._thread.database, None)

    async def close(self) -> None:
        """End the search that runs, and close the connection."""
        if self._closed:
            return
        self._closed = True
        self._current = None
        self._thread.interrupt()
        # A caller that is cancelled meanwhile leaves, and the connection is closed all the same.
        self._closing = asyncio.ensure_future(self._close_thread())
        await asyncio.shield(self._closing)

    async def _close_thread(self) -> None:
        is_file = self._thread.database.server is None
        try:
            async with self._running.held(within_s=None if is_file else CLOSE_S):
                await self._thread.run(self._close_index)
                await self._thread.close()
        except TimeoutError:
            # It is being opened again on a server that does not answer.
            self._thread.begin_close()

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    async def __aenter__(self) -> Self:
        """Return the searcher."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the searcher."""
        await self.close()
