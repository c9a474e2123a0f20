"""A search without a screen: what is asked for, what was found so far, and what is selected.

It outlives the search screen, so that one comes back to the same place, and goes on through
the hits from the transcript.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from store.errors import BackscrollError
from store.language.query import Query, parse, without
from store.search.hits import Counts, Coverage, Facets, Hit, Order, SessionHits, Update
from store.search.searching import PAGE, Searcher
from tui.kit.masked import view_masking
from tui.search.facets import toggled
from tui.search.marks import Marks, marks_of
from tui.search.results import HITS_OF_A_SESSION, Results, key_of
from tui.state.library import Library
from tui.state.searches import SearchKeeper, searches_path

TYPING_S = 0.03
"""A search starts when no key was typed for so long."""
RENEWED_EVERY_S, RESTS = 1.0, 4
"""A search is done again at most so often while the store changes, and rests for so many times
as long as it took."""
MOST_RENEWED = 500
"""Hits that are read again when the store changes, at most."""
ALL_OF_A_SESSION = 500
"""Hits of one session that are read when it is opened in the results."""

Start = Callable[[Callable[[], Awaitable[None]], str], object]
"""Runs work beside the keys, in place of older work of its group."""


class SearchModel:
    """The search of a store.

    Attributes:
        library: The store.
        text: The query, as it was typed.
        query: What it asks for.
        order: Of the hits.
        results: What was found, and which hit is selected.
        counts: How much was found; of the query before it until there is anything new.
        facets: Hits by value.
        days: Hits by local day.
        coverage: What part of the store was searched.
        running: Whether hits may still come.
        counting: Whether the counts may still grow.
        failure: Why the search failed; empty where it did not.
        marks: Marks the words of the query; None where it has none.
        keeper: History and saved searches.
        opened_in_hits: Whether the last hit was opened by a key among the hits, not in the query.
        changed: Called when anything of it has changed; ``fresh`` where the results are new.
        searched_at: When what is shown was searched for, by ``time.monotonic``.
    """

    def __init__(
        self, library: Library, start: Start, report: Callable[[str, BaseException], None],
        *, helpers: bool = False,
    ) -> None:
        """Make a search that asks for nothing.

        Args:
            library: The store.
            start: Runs work beside the keys.
            report: Shows an error that is no mistake of the query.
            helpers: Whether runs that agents started for themselves are searched.
        """
        self.library, self._start, self._report = library, start, report
        self._helpers = helpers
        self.keeper = SearchKeeper(
            searches_path(library.path), writes=library.limits.read_only is None)
        self.text = ""
        self.query = Query("")
        self.order: Order = "newest"
        self.results = Results()
        self.counts, self.coverage = Counts(), Coverage()
        self.facets: Facets = {}
        self.days: Mapping[str, int] = {}
        self.running = self.counting = False
        self.failure = ""
        self.marks: Marks | None = None
        self.opened_in_hits = False
        self.changed: Callable[[bool], None] = _nothing
        self._searcher: Searcher | None = None
        self._second: Searcher | None = None
        self._opening = asyncio.Lock()
        self._further: dict[str, SessionHits] = {}
        self._page: list[SessionHits] = []
        self._cursor: str | None = None
        self._fresh = False
        self.searched_at = 0.0
        self._moved = False
        self._work: object | None = None
        self._rests_until = 0.0
        self._is_broken = False

    @property
    def has_query(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.query)

    @property
    def is_awaited(self) -> bool:
        """Whether what is asked for is searched, and nothing of it is known yet."""
        return self._fresh and self.running

    # What is asked for

    def ask(self, text: str) -> None:
        """Search for something else; what is shown stays until there is something new."""
        if text == self.text:
            return
        self.text = text
        before = self.query
        self.query = parse(text, now=self.library.clock())
        if (self.query.terms, self.query.filters) != (before.terms, before.filters):
            self._search()
        self.changed(False)

    def sort(self) -> None:
        """Search in the other order."""
        self.order = "best" if self.order == "newest" else "newest"
        self._search()
        self.changed(False)

    def toggle(self, facet: str, value: str) -> str:
        """Return the query's text with a value of a facet asked for, or no longer."""
        return toggled(self.query, facet, value)

    def _search(self) -> None:
        self.failure, self._fresh, self._is_broken = "", True, False
        self.running = self.counting = bool(self.query)
        self._rests_until = 0.0
        self._work = None
        if self.query:
            self._begin(self._run)
        else:
            self._start(_rest, "search")
            self._clear()

    def _begin(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run some work in place of the search that runs; afterwards, search again if need be."""
        mine = self._work = object()

        async def all_work() -> None:
            try:
                await self._reported(work)
                while self._moved and self._work is mine and not self._is_broken:
                    await self._reported(self._renew)
            finally:
                if self._work is mine:
                    self._work = None

        self._start(all_work, "search")

    def store_changed(self) -> None:
        """Search for the same once more, soon; the selection and what is opened stay.

        Not after an error that is no fault of the store, which would only come again.
        """
        self._moved = True
        if self.query and self._work is None and not self._is_broken:
            self._begin(self._renew)

    def masks_changed(self) -> None:
        """Search once more, as other texts are masked now."""
        if self.query:
            self._search()

    def _clear(self) -> None:
        self._page, self._further, self._cursor = [], {}, None
        self.counts, self.coverage = Counts(all_sessions=self.counts.all_sessions), Coverage()
        self.facets, self.days, self.marks = {}, {}, None
        self.results.show([], now=self.library.clock(), fresh=True)
        self.changed(True)

    # What is found

    async def _run(self) -> None:
        query = self.query
        await asyncio.sleep(TYPING_S)
        async for update in self._updates(PAGE):
            self._take(update, query)

    async def _renew(self) -> None:
        """Search again, and show the new results in place of those that are shown."""
        await asyncio.sleep(max(0.0, self._rests_until - time.monotonic()))
        started, taken = time.monotonic(), False
        async for update in self._updates(min(MOST_RENEWED, max(PAGE, len(self.results.hits)))):
            if self._fresh:
                self._take(update, self.query)
                taken = not self._fresh
            elif update.ready and not taken:
                await self._replace(update)
                taken = True
            if update.done:
                self.failure = ""
                self.counts, self.facets, self.coverage = (
                    update.counts, update.facets, update.coverage)
                self.changed(False)
        took = time.monotonic() - started
        self._rests_until = time.monotonic() + max(RENEWED_EVERY_S, RESTS * took)

    async def _replace(self, update: Update) -> None:
        """Take a page in place of all pages; sessions that are opened are read again."""
        further: dict[str, SessionHits] = {}
        for session in update.page.sessions:
            if session.row.id in self.results.opened and session.more:
                for found in await self._read_session(session.row.id):
                    further[found.row.id] = found
        self._page, self._cursor, self._further = (
            update.page.sessions, update.page.cursor, further)
        self.results.show(self._together(), now=self.library.clock(), renewed=True)
        self.changed(False)

    async def _updates(self, limit: int) -> AsyncIterator[Update]:
        self._moved, self.searched_at = False, time.monotonic()
        searcher = await self._first()
        async for update in searcher.search(
            self.query, order=self.order, limit=limit, per_session=HITS_OF_A_SESSION + 1,
            helpers=self._helpers, masking=view_masking(),
        ):
            yield update

    async def _reported(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except BackscrollError as error:
            self._failed(str(error))
        except Exception as error:
            self._is_broken = True
            self._failed("The search failed")
            self._report("The search failed", error)

    def _failed(self, words: str) -> None:
        self.failure, self.running, self.counting = words, False, False
        self._rests_until = time.monotonic() + RENEWED_EVERY_S
        self.changed(False)

    def _take(self, update: Update, query: Query) -> None:
        if self._fresh and not update.page.sessions and not update.ready:
            return  # What was found before stays until it is known whether there is more.
        fresh, self._fresh = self._fresh, False
        if fresh:
            self._further = {}
            self.marks = marks_of(query)
        self._page, self._cursor = update.page.sessions, update.page.cursor
        every = update.counts.all_sessions or self.counts.all_sessions
        self.counts = replace(update.counts, all_sessions=every)
        self.facets, self.coverage = update.facets, update.coverage
        self.days = update.days
        self.running, self.counting = not update.ready, not update.done
        self._show(fresh=fresh)

    def _show(self, *, fresh: bool = False) -> None:
        self.results.show(self._together(), now=self.library.clock(), fresh=fresh)
        self.changed(fresh)

    def _together(self) -> list[SessionHits]:
        """Return the hits of the page with those that were read after it."""
        found: dict[str, SessionHits] = {}
        for session in (*self._page, *self._further.values()):
            known = found.get(session.row.id)
            if known is None:
                found[session.row.id] = SessionHits(session.row, list(session.hits), session.more)
                continue
            keys = {key_of(hit) for hit in known.hits}
            extra = [hit for hit in session.hits if key_of(hit) not in keys]
            known.hits += extra
            known.more = max(0, known.more - len(extra))
        for session in found.values():
            session.hits.sort(key=lambda hit: hit.where != "title")
        return list(found.values())

    # More of it

    @property
    def has_more(self) -> bool:
        """Whether there are hits behind those that are known."""
        return self._cursor is not None and not self.running

    def want_more(self) -> None:
        """Read the next hits beside the keys."""
        if self.has_more:
            self._start(self._read_more, "search-more")

    async def _read_more(self) -> None:
        await self.read_more()

    async def read_more(self) -> bool:
        """Read the next hits; return whether there were any."""
        cursor = self._cursor
        if cursor is None:
            return False
        page, self._cursor = await self._read(self.query, cursor), None
        for session in page[0]:
            self._add(session)
        self._cursor = page[1]
        self._show()
        return bool(page[0])

    async def open_session(self, session_id: str) -> None:
        """Read the further hits of a session."""
        found = next((each for each in self.results.sessions if each.row.id == session_id), None)
        if found is None or not found.more:
            return
        for session in await self._read_session(session_id):
            self._add(session)
        self._show()

    async def _read_session(self, session_id: str) -> list[SessionHits]:
        query = parse(f"{self.query.text} id:={session_id}", now=self.library.clock())
        sessions, _ = await self._read(query, None, limit=ALL_OF_A_SESSION, per_session=None)
        return sessions

    def _add(self, session: SessionHits) -> None:
        known = self._further.get(session.row.id)
        if known is None:
            self._further[session.row.id] = session
        else:
            known.hits += session.hits

    async def _read(
        self, query: Query, cursor: str | None, **more: Any
    ) -> tuple[list[SessionHits], str | None]:
        async with self._opening:
            if self._second is None:
                self._second = await Searcher.open(self.library.path)
        wanted: dict[str, Any] = {
            "per_session": HITS_OF_A_SESSION + 1, "helpers": self._helpers,
            "masking": view_masking(), **more}
        last: Update | None = None
        async for update in self._second.search(
            query, order=self.order, cursor=cursor, counting=False, **wanted
        ):
            last = update
        return (list(last.page.sessions), last.page.cursor) if last is not None else ([], None)

    async def _first(self) -> Searcher:
        async with self._opening:
            if self._searcher is None:
                self._searcher = await Searcher.open(self.library.path)
            return self._searcher

    def detach(self) -> None:
        """Go on without a screen."""
        self.changed = _nothing

    async def finds_without_filters(self) -> bool:
        """Return whether the words of the query are found where its filters are left out."""
        query = self.query
        words = without(query, [each.span for each in query.filters])
        fewer = parse(words, now=self.library.clock())
        sessions, _ = await self._read(fewer, None, limit=1)
        return bool(sessions)

    async def close(self) -> None:
        """Close the connections."""
        self.detach()
        for searcher in (self._searcher, self._second):
            if searcher is not None:
                await searcher.close()
        self._searcher = self._second = None

    # Going on from a hit

    async def beside(self, hit: Hit, by: int) -> Hit | None:
        """Return the next (1) or previous (-1) hit, read where it is not known yet.

        Args:
            hit: The hit.
            by: 1 or -1.
        """
        await self._read_beside(hit, by)
        other = self.results.beside(hit, by)
        if other is None and by > 0 and self.has_more and await self.read_more():
            other = self.results.beside(hit, by)
        return other

    async def _read_beside(self, hit: Hit, by: int) -> None:
        """Read the further hits of a session where the way leads through them."""
        sessions = self.results.sessions
        at = next((n for n, each in enumerate(sessions) if each.row.id == hit.session_id), None)
        if at is None:
            return
        edge = sessions[at].hits[-1 if by > 0 else 0]
        if key_of(edge) == key_of(hit):
            through = at if by > 0 else at - 1
            if through >= 0 and sessions[through].more:
                await self.open_session(sessions[through].row.id)

    def remember(self) -> None:
        """Put the query at the top of the history."""
        try:
            self.keeper.used(self.text)
        except OSError as error:
            self._report("The search could not be kept", error)


def _nothing(_fresh: bool) -> None:
    """Change nothing: no screen shows the search."""


async def _rest() -> None:
    """Do nothing, in place of a search that is no longer wanted."""
