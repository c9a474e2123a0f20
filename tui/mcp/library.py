"""The store that the tools read, opened when it is first needed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from store.engine.database import Database
from store.errors import NotFound, Refused
from store.language.query import Query, parse
from store.queries.sessions import Cursor, SessionFilter, cursor_in
from store.queries.summaries import Summary
from store.search.hits import Hit as FoundHit
from store.search.hits import SessionHits, Update
from store.search.listed import Listed
from store.search.searching import Request, Searcher
from store.sharing.masks import Masking, Masks
from store.store import Store
from store.system.clock import system_clock
from tui.mcp.answers import Hit, Hits, Sessions, Transcript, harmless
from tui.mcp.reading import Amount, iso_time, session_of, transcript
from tui.words.calls import describe

LONGEST_SEARCH_S = 10.0
"""A search that has not ended by then answers with what it has found."""


class Library:
    """A store, and a searcher on it."""

    def __init__(
        self, target: Path | str, *, helpers: bool = False, masking: Masking | None = None
    ) -> None:
        """Name the store.

        Args:
            target: Its file, which may not be there yet; or the URL of a database on a server.
            helpers: Whether runs that agents started for themselves are shown.
            masking: What is masked in all answers, and not searched; secrets alone where None.
        """
        self.masking = masking or Masking()
        self._target = target
        self._helpers = helpers
        self._store: Store | None = None
        self._searcher: Searcher | None = None
        self._opening, self._searching = asyncio.Lock(), asyncio.Lock()

    async def search(self, query: str, *, limit: int, cursor: str | None) -> Hits:
        """Return a page of hits, newest first; a search that runs is waited for.

        Args:
            query: As it is typed; it has to ask for something.
            limit: How many hits at most.
            cursor: Of the page before; None for the first.

        Raises:
            Refused: The query asks for nothing, or cannot be read.
            StoreError: The store cannot be read, or the cursor is none of this search.
        """
        store = await self._opened()
        asked = _parsed(query, required=True)
        async with self._searching:
            if self._searcher is None:
                self._searcher = await Searcher.open(store.path)
            last = await self._last_update(self._searcher, Request(
                asked, limit=limit, cursor=cursor, helpers=self._helpers, masking=self.masking))
        found = [_hit(session, hit) for session in last.page.sessions for hit in session.hits]
        return harmless(
            Hits(hits=found, found=_found(last), cursor=last.page.cursor), Masks(self.masking))

    async def _last_update(self, searcher: Searcher, request: Request) -> Update:
        ends = time.monotonic() + LONGEST_SEARCH_S
        last: Update | None = None
        async for last in searcher.run(request):
            if last.ready and time.monotonic() > ends:
                break
        if last is None:
            raise Refused("the search was ended; ask again")
        return last

    async def sessions(self, query: str, *, limit: int, cursor: str | None) -> Sessions:
        """Return a page of sessions, newest first.

        Args:
            query: As it is typed; empty for all sessions that are not archived.
            limit: How many at most.
            cursor: Of the page before; None for the first.

        Raises:
            Refused: The query or the cursor cannot be read.
            StoreError: The store cannot be read.
        """
        store = await self._opened()
        filter = SessionFilter(skip_empty=True, helpers=self._helpers)
        asked = _parsed(query, required=False)
        found, why = await store.read(
            _summaries, asked, filter, _place(cursor), limit + 1, self.masking)
        page = found[:limit]
        more = f"{page[-1]['updated_at']}:{page[-1]['id']}" if len(found) > limit else None
        return harmless(Sessions(
            sessions=[session_of(one) for one in page], cursor=more, unsearched=why or None),
            Masks(self.masking))

    async def show(
        self,
        session: str,
        *,
        message: str | None,
        cursor: str | None,
        limit: int,
        part_chars: int,
        hidden: bool,
    ) -> Transcript:
        """Return messages of a session.

        Args:
            session: Its id, or the beginning of it.
            message: Read from this message on; None for the cursor's place.
            cursor: Of a transcript before; None for the first messages.
            limit: How many messages at most.
            part_chars: How many characters of each text at most.
            hidden: Whether hidden messages are read, too.

        Raises:
            NotFound: There is no such session or message.
            Ambiguous: A name fits several.
            Refused: The cursor is none of a transcript.
            StoreError: The store cannot be read.
        """
        store = await self._opened()
        masks = Masks(self.masking)
        return harmless(await store.read(
            transcript, session, message=message, cursor=cursor, hidden=hidden,
            amount=Amount(limit, part_chars), masks=masks, now=system_clock(),
        ), masks)  # fmt: skip

    async def close(self) -> None:
        """Close what is open."""
        if self._searcher is not None:
            await self._searcher.close()
        if self._store is not None:
            await self._store.close()

    async def _opened(self) -> Store:
        async with self._opening:
            if self._store is None:
                if isinstance(self._target, Path) and not self._target.exists():
                    raise NotFound(
                        f"There is no library yet ({self._target}). The user can make it with"
                        " `backscroll sync`.")
                self._store = await Store.open(self._target)
        return self._store


def _summaries(
    db: Database, query: Query, filter: SessionFilter, before: Cursor | None, limit: int,
    masking: Masking,
) -> tuple[list[Summary], str]:
    listed = Listed(db, query, filter, system_clock(), masking=masking)
    return list(listed.page(before, limit)), listed.why


def _parsed(text: str, *, required: bool) -> Query:
    query = parse(text, now=system_clock())
    if query.problems:
        raise Refused(" ".join(problem.message for problem in query.problems))
    if required and not text.strip():
        raise Refused("the query is empty; name words or fields, or list the sessions")
    return query


def _place(cursor: str | None) -> Cursor | None:
    if cursor is None:
        return None
    try:
        return cursor_in(cursor)
    except ValueError:
        raise Refused(
            f"{cursor!r} is no cursor of a list; leave it out to start anew") from None


def _hit(session: SessionHits, hit: FoundHit) -> Hit:
    row = session.row
    call = describe(dict(hit.data), times=hit.times).what if hit.tool is not None else None
    return Hit(
        session_id=hit.session_id,
        session_title=row.title,
        agent=row.agent,
        workspace=row.workspace,
        message_id=hit.message_id,
        time=iso_time(hit.created_at),
        role=hit.role,
        where=hit.where,
        tool=hit.tool,
        call=call,
        failed=hit.failed,
        excerpt=hit.excerpt.text,
        matches=hit.matches,
    )


def _found(update: Update) -> str:
    """Return how much a search found and what it searched, as a sentence."""
    counts, coverage = update.counts, update.coverage
    least = "" if counts.whole else "at least "
    said = f"{least}{counts.hits} hits in {counts.sessions} sessions"
    if counts.archived_hits:
        said += f"; {counts.archived_hits} more in archived ones (is:archived)"
    return said if coverage.whole else f"{said}. Not all was searched: {coverage.why}"
