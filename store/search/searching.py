"""Searches a store, with its own connection, so that no pane waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol, Self

from store.search.hits import Order, Update

PAGE = 50
"""Hits on a page."""


class Candidates(Protocol):
    """What a search asks an index: which messages may match.

    A message is the unit, since all words of a search must be in a part or its message.
    """

    def messages(
        self, terms: Any, *, before: tuple[int, str] | None, limit: int
    ) -> list[tuple[int, str]]:
        """Return ``(created_at, message id)``, newest first, both descending.

        Every covered message that contains all terms that are not negated is among them;
        others may be too, as each is verified in the rows. Fewer than ``limit`` come only at
        the end.

        Args:
            terms: The terms of a ``Query``.
            before: Only what comes behind this place in that order.
            limit: How many at most.
        """
        ...


class Searcher:
    """Runs one search at a time on a store; starting another ends the one that runs.

    ``async with await Searcher.open(path) as searcher`` closes it.
    """

    def __init__(self, path: Path) -> None:
        """Name the store; ``open`` makes one that is ready."""
        self.path = path

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Return a searcher with an open connection.

        Raises:
            StoreError: The file is missing or is no store.
        """
        raise NotImplementedError

    def search(
        self,
        query: Any,
        *,
        order: Order = "newest",
        limit: int = PAGE,
        cursor: str | None = None,
        per_session: int | None = None,
        helpers: bool = False,
        counting: bool = True,
    ) -> AsyncIterator[Update]:
        """Yield what is found, first the page of hits, then counts and facets as they grow.

        Args:
            query: What is searched for, from ``store.language.query.parse``.
            order: ``newest`` hits first, or the ``best``.
            limit: How many hits the page has at most.
            cursor: ``Page.cursor`` of the page before; None for the first.
            per_session: How many hits of one session the page has at most; the others are
                counted in ``SessionHits.more``. None for no limit.
            helpers: Whether runs that agents started for themselves are searched.
            counting: Whether to go on behind the page, for counts and facets.

        Raises:
            StoreError: The store cannot be read, or the cursor is none of this search.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the search that runs, and close the connection."""
        raise NotImplementedError
