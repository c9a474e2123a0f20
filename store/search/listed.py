"""The sessions that a query asks for, as summaries: for the command line and coding agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from store.engine.database import Database
from store.errors import Invalid
from store.language.query import Query, parse
from store.models import Session
from store.queries.listing import rowids_of
from store.queries.listing_filter import ListFilterTest
from store.queries.matching_sessions import asks_for_activity
from store.queries.sessions import Cursor, SessionFilter, get, page
from store.queries.summaries import Keep, Summary, summaries

if TYPE_CHECKING:
    from store.sharing.masks import Masking


class Listed:
    """A list of sessions that a query narrows.

    Attributes:
        filter: Which sessions, the conditions of the query among them; archived ones too where
            the query asks for these and the filter says nothing of them.
        why: Why not all was searched for the parts that the query asks for; "" where all was.
    """

    def __init__(
        self, db: Database, query: Query, filter: SessionFilter, now: int,
        *, is_archived_chosen: bool = False, masking: Masking | None = None,
    ) -> None:  # fmt: skip
        """Prepare a list; a query that asks for parts of sessions is searched for at once.

        Args:
            db: The store.
            query: What is asked for; without problems.
            filter: Which sessions otherwise.
            now: The present, epoch ms.
            is_archived_chosen: Whether ``filter.archived`` counts whatever the query asks for.
            masking: What is masked in all texts before they are searched; None for nothing.
        """
        self._masking = masking
        masks = None
        if masking is not None:
            # Only here: the rules take a while to load.
            from store.sharing.masks import Masks

            masks = Masks(masking)
        asked = ListFilterTest(query, fuzzy=False, masks=masks)
        self.filter = replace(filter, fields=asked.conditions, masks=masks)
        if not is_archived_chosen and _asks_for_archived(query):
            self.filter = replace(self.filter, archived="include")
        self._db, self._now = db, now
        self.why = ""
        self._keep = self._with_hits(asked.query) if asked.needs_parts else _keep(db, asked, now)

    def page(self, before: Cursor | None = None, limit: int | None = None) -> Iterator[Summary]:
        """Yield sessions, newest first, reading as it goes.

        Args:
            before: ``(updated_at, id)`` of the last row of the page before.
            limit: How many; None for all.
        """
        return summaries(
            self._db, self.filter, now=self._now, before=before, limit=limit, keep=self._keep)

    def _with_hits(self, query: Query) -> Keep:
        """Search for the parts that a query asks for, and return which sessions have them."""
        from store.search.running import SessionsFound, sessions_with_hits, with_index

        found = SessionsFound(set())
        for step in with_index(
            self._db.path, lambda index: sessions_with_hits(
                self._db, query, index, masking=self._masking)
        ):
            found = step or found
        self.why = found.why
        return lambda _: found.ids


def sessions_asked_for(
    db: Database, asked: SessionFilter | str | None, *, before: Cursor | None, limit: int, now: int
) -> list[Session]:
    """Return a page of sessions, newest first.

    Args:
        db: The store.
        asked: A filter, a query as it is typed, or None for all that are not archived.
        before: ``(updated_at, id)`` of the last session of the page before.
        limit: How many at most; a negative number means all.
        now: The present, epoch ms.

    Raises:
        Invalid: The query cannot be read.
    """
    if not isinstance(asked, str):
        found = page(db, asked or SessionFilter(), before=before, limit=limit)
        return [Session.of(row) for row in found]
    query = parse(asked, now=now)
    if query.problems:
        raise Invalid(f"{asked!r}: {query.problems[0].message}")
    wanted = Listed(db, query, SessionFilter(), now)
    rows = (get(db, one["id"]) for one in wanted.page(before, None if limit < 0 else limit))
    return [Session.of(row) for row in rows if row is not None]


def _asks_for_archived(query: Query) -> bool:
    return any(one.field == "is" and one.value == "archived" for one in query.filters)


def _keep(db: Database, asked: ListFilterTest, now: int) -> Keep | None:
    """Return which sessions of a batch match what SQL does not test; None where it tests all."""
    if not asked.query.terms and not any(map(asks_for_activity, asked.conditions)):
        return None

    def matching(ids: Sequence[str]) -> set[str]:
        by_rowid = {rowid: id for id, rowid in rowids_of(db, ids).items()}
        return {by_rowid[rowid] for rowid in asked.matching(db, list(by_rowid), now)}

    return matching
