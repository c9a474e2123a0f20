"""Runs a search on a connection, a slice at a time: first the page of hits, then the counts."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from store.conversation.outcomes import outcome_of
from store.engine.database import Database
from store.engine.values import text
from store.errors import StoreError
from store.language.matching import Folded, TermMatcher, index_needle
from store.language.query import Query
from store.queries.helpers import no_helpers
from store.queries.list_keys import LAST_SECOND
from store.queries.listing import ListRow, rowids_of, rows_of
from store.rows import is_tool_type
from store.search.conditions import conditions_of
from store.search.excerpts import excerpt
from store.search.hits import (
    FACETS,
    Counts,
    Coverage,
    Facets,
    Hit,
    Order,
    Page,
    Place,
    SessionHits,
    Update,
    order_of,
)
from store.search.index.reading import Candidate, Index, IndexUnusable, open_index
from store.search.text import Section, Where, tool_of
from store.search.verifying import Found, Verifier, WantedSessions
from store.search.walking import NEWEST, batches, from_index, scan
from store.system.clock import system_clock

if TYPE_CHECKING:
    from store.search.on_server import OnServer
    from store.sharing.masks import Masking

T = TypeVar("T")

PAGE = 50
"""Hits on a page."""
MOST_COUNTED = 20_000
"""Hits after which the counting stops."""
MOST_RANKED = 5_000
"""The best hits are those of so many of the newest."""
SLICE_S = 0.002
"""How long a step runs before it lets others run. A count beside the screen then adds some
milliseconds to a key; a process of its own would add its start to the first search."""
SCAN_S = 10.0
"""Seconds of work after which a search ends that no index helps."""
INDEXED_S = 60.0
"""Seconds of work after which a search ends that an index helps."""
GAVE_UP = "the regular expression took too long on some texts"
_BETWEEN_UPDATES_S = 0.1
_LONGEST_STRING = 2_000
_MOST_ITEMS = 100
_MOST_SPANS = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a search is to return.

    Attributes:
        query: What is searched for.
        order: ``newest`` hits first, or the ``best``.
        limit: How many hits the page has at most.
        cursor: ``Page.cursor`` of the page before; None for the first.
        per_session: How many hits of one session the page has at most; None for no limit.
        helpers: Whether runs that agents started for themselves are searched.
        counting: Whether to go on behind the page, for counts and facets. A page behind a
            cursor has no counts.
        totals: Whether to count the sessions of the store, those that fulfil the filters, and
            the messages, which are counted too where not all are searched.
        context: Lines around the match in an excerpt.
        scan_s: Seconds of work after which a search ends that no index helps.
        count_s: Seconds of work after which the counting behind a full page ends.
        masking: What is masked in all texts before they are searched; None for nothing.
    """

    query: Query
    order: Order = "newest"
    limit: int = PAGE
    cursor: str | None = None
    per_session: int | None = None
    helpers: bool = False
    counting: bool = True
    totals: bool = True
    context: int = 0
    scan_s: float = SCAN_S
    count_s: float = INDEXED_S
    masking: Masking | None = None


class Run:
    """A search that runs: ``steps`` does it."""

    def __init__(self, db: Database, request: Request, index: Index | None) -> None:
        """Prepare a search.

        Args:
            db: The store.
            request: What to return.
            index: The store's index; None to search without.

        Raises:
            StoreError: The cursor is not of this search.
        """
        self._db, self._request, self._index = db, request, index
        self._asks = conditions_of(request.query)
        self._after = read_cursor(request.cursor, request.order)
        self._with_archived = _asks_for_archived(request.query)
        self._wanted = WantedSessions(
            db, self._asks.sessions, helpers=request.helpers, now=system_clock(),
            masking=request.masking)
        self._verifier = Verifier(db, self._asks, self._wanted, masking=request.masking)
        self._texts = _texts(self._verifier)
        self._server = _on_server(db, self._verifier, self._texts)
        self._tally = _Tally()
        self._page: dict[str, list[Hit]] = {}
        self._rows: dict[str, ListRow] = {}
        self._on_page = 0
        self._last: _Rank | None = None
        self._more = False
        self._ranked: list[_Rank] = []
        self._stopped = ""
        covered = index.coverage() if index is not None else None
        self._covered = covered is not None and covered.whole
        if self._server is not None:
            self._covered = self._server.helps
        # What the index answers for, where words can be looked up in it; the rest is scanned.
        self._answered = covered.messages if covered is not None and self._texts else 0
        self._since = NEWEST if not self._answered or covered is None else covered.since
        self._scanned = 0
        self._messages = covered.messages if covered is not None and covered.whole else -1
        self._more_to_count = False

    def steps(self) -> Iterator[Update | None]:
        """Run the search; yields what is known so far, or None where others may run.

        The last update has ``done`` set.
        """
        working, full_at, shown, ready = 0.0, 0.0, time.monotonic(), False
        slice_start = time.monotonic()
        for hits in self._verified():
            for found in hits:
                self._take(found)
            now = time.monotonic()
            full = self._is_full()
            if now - slice_start >= SLICE_S or (full and not ready):
                working += now - slice_start
                if self._ends(working):
                    break
                if ready and working > full_at + self._request.count_s:
                    self._more_to_count = True
                    break
                if full and not ready:
                    full_at = working
                    self._rank_page()
                if (full and not ready) or now - shown > _BETWEEN_UPDATES_S:
                    ready = full
                    yield self._update(ready=ready)
                    self._count()
                    shown = now
                else:
                    yield None
                slice_start = time.monotonic()
            elif self._ends(0):
                break
        if not ready:
            self._rank_page()
            # All is known but how large the store is, which takes longer in large stores.
            yield self._update(ready=True, ended=True)
        self._count()
        if self._request.totals:
            self._tally.wanted_sessions = self._wanted.count(self._tally.all_sessions)
        yield self._update(ready=True, ended=True, done=True)

    def _count(self) -> None:
        """Count the store's sessions and messages, once; the hits do not wait for it."""
        execute, totals = self._db.connection.execute, self._request.totals
        if totals and not self._tally.all_sessions:
            searched = "TRUE" if self._request.helpers else no_helpers(self._db)
            self._tally.all_sessions = int(execute(
                f"SELECT count(*) FROM chat_sessions s WHERE {searched}").fetchone()[0])
        if self._messages < 0 and (totals or self._stopped):
            self._messages = int(execute("SELECT count(*) FROM chat_messages").fetchone()[0])

    def _is_full(self) -> bool:
        """Return whether further hits cannot change the page."""
        if self._request.order == "best":
            return len(self._ranked) >= MOST_RANKED
        return self._on_page >= self._request.limit

    def _verified(self) -> Iterator[list[Found]]:
        before = None
        if self._after is not None and self._request.order == "newest":
            before = self._after.place
        candidates = _candidates(self._db, self._index, self._verifier, before, self._server)
        for batch in batches(candidates, before):
            before_batch = self._scanned
            for hits in self._verifier.found(batch):
                self._scanned += 1
                yield hits
            self._scanned = self._server.looked if self._server is not None else (
                before_batch + sum(
                    each.message_id is not None and each.created_at <= self._since
                    for each in batch))
            # No candidate of a batch may be wanted; the time is looked at nevertheless.
            yield []

    def _ends(self, working: float) -> bool:
        """Return whether to stop here: enough is found, or it took too long."""
        if self._tally.hits + self._tally.archived_hits >= MOST_COUNTED:
            self._more_to_count = True
            return True
        best = self._request.order == "best"
        if not self._request.counting and self._is_full() and (best or self._more):
            self._more_to_count = True
            return True
        helped = self._covered and bool(self._texts)
        if working > (INDEXED_S if helped else self._request.scan_s):
            self._stopped = _why_stopped(
                self._index, self._texts, helped=helped, server=self._server)
            return True
        return False

    # Hits

    def _take(self, found: Found) -> None:
        rank = _Rank(0.0, found.place, found.session.id)
        if self._request.order == "newest" and self._after is not None and not (
            rank.is_behind(self._after)
        ):
            return
        if found.session.archived and not self._with_archived:
            self._tally.archived(found)
            return
        self._tally.add(found)
        if self._request.order == "best":
            if not self._is_full():
                self._ranked.append(rank._replace(score=_score(found, self._asks.terms)))
        elif self._on_page < self._request.limit:
            self._put(found, rank)
        else:
            self._more = True

    def _put(self, found: Found, rank: _Rank) -> None:
        hits = self._page.setdefault(found.session.id, [])
        if self._request.per_session is None or len(hits) < self._request.per_session:
            hits.append(hit_of(found, self._asks.terms, self._request.context, rank.score))
            self._on_page += 1
            self._last = rank

    def _rank_page(self) -> None:
        """Fill the page with the best of what was found, where these are asked for."""
        self._ranked.sort(key=lambda rank: order_of(rank.score, rank.place))
        for rank in self._ranked:
            if self._after is not None and not rank.is_behind(self._after):
                continue
            if self._on_page >= self._request.limit:
                self._more = True
                return
            message_id = None if rank.place.number < 0 else rank.place.message_id
            candidate = Candidate(rank.session_id, message_id, rank.place.created_at)
            for hits in self._verifier.found([candidate]):
                for found in hits:
                    if found.place == rank.place:
                        self._put(found, rank)

    # Updates

    def _update(self, *, ready: bool, ended: bool = False, done: bool = False) -> Update:
        sessions = []
        self._read_rows()
        for session_id, hits in self._page.items():
            if row := self._rows.get(session_id):
                more = self._tally.by_session[session_id] - len(hits)
                sessions.append(SessionHits(row, list(hits), more))
        cursor = self._last.cursor(self._request.order) if self._more and self._last else None
        whole = ended and not self._stopped and not self._more_to_count
        return Update(
            Page(sessions, cursor), self._tally.counts(whole=whole),
            self._tally.facets(), self._coverage(ended), ready, done, dict(self._tally.days),
        )

    def _read_rows(self) -> None:
        missing = [each for each in self._page if each not in self._rows]
        if not missing:
            return
        rowids = rowids_of(self._db, missing)
        rows = rows_of(self._db, list(rowids.values()))
        self._rows |= {row.id: row for row in rows.values()}

    def _coverage(self, ended: bool) -> Coverage:
        gave_up = any(each.gave_up for each in (*self._asks.terms, *self._asks.unwanted))
        why = self._stopped if ended else ""
        if gave_up and not why:
            why = GAVE_UP
        searched = self._answered + self._scanned
        if self._messages < 0:
            return Coverage(searched, 0, self._covered, why)
        total = self._messages
        searched = total if ended and not self._stopped else min(total, searched)
        return Coverage(searched, total, self._covered, why)


class _Rank(NamedTuple):
    """Where a hit is in the order of the search.

    Attributes:
        score: 0 for order ``newest``.
    """

    score: float
    place: Place
    session_id: str

    def is_behind(self, other: _Rank) -> bool:
        """Return whether this hit comes after another."""
        return order_of(*other[:2]) < order_of(*self[:2])

    def cursor(self, order: Order) -> str:
        """Return the text from which ``read_cursor`` makes it again."""
        created_at, message_id, number = self.place
        score = f"{self.score!r}:" if order == "best" else ""
        return f"{score}{created_at}:{number}:{message_id}"


def read_cursor(text: str | None, order: Order) -> _Rank | None:
    """Return the place that a cursor names; None without one.

    Args:
        text: ``Page.cursor``.
        order: The order of the search.

    Raises:
        StoreError: It is no cursor of a search in this order.
    """
    if text is None:
        return None
    score, rest = "0", text
    if order == "best":
        score, _, rest = text.partition(":")
    created_at, _, rest = rest.partition(":")
    number, _, message_id = rest.partition(":")
    try:
        place = Place(int(created_at), message_id, int(number))
        if not message_id or not -NEWEST <= place.created_at <= NEWEST:
            raise ValueError(text)
        return _Rank(float(score), place, "")
    except ValueError:
        raise StoreError(f"{text!r} is no cursor of a search by {order}") from None


class _Tally:
    """What was counted so far."""

    def __init__(self) -> None:
        self.all_sessions = self.hits = self.archived_hits = 0
        self.wanted_sessions = -1
        self.by_session: Counter[str] = Counter()
        self._archived_sessions: set[str] = set()
        self.days: Counter[str] = Counter()
        self._facets: dict[str, Counter[str]] = {name: Counter() for name in FACETS}

    def archived(self, found: Found) -> None:
        self.archived_hits += 1
        self._archived_sessions.add(found.session.id)

    def add(self, found: Found) -> None:
        self.hits += 1
        self.by_session[found.session.id] += 1
        facets = self._facets
        facets["agent"][found.session.agent] += 1
        facets["workspace"][found.session.workspace] += 1
        facets["where"][found.where] += 1
        day = day_of(found.place.created_at)
        self.days[day] += 1
        facets["month"][day[:7]] += 1
        if found.message is not None:
            facets["role"][found.message.role] += 1
        tool = tool_of(found.data) if found.data is not None else None
        if tool:
            facets["tool"][tool] += 1

    def counts(self, *, whole: bool) -> Counts:
        return Counts(
            self.hits, len(self.by_session), self.archived_hits, len(self._archived_sessions),
            self.all_sessions, self.wanted_sessions, whole,
        )

    def facets(self) -> Facets:
        return {name: dict(found.most_common()) for name, found in self._facets.items()}


def day_of(at: int) -> str:
    """Return the local day of epoch ms as ``YYYY-MM-DD``."""
    return time.strftime("%Y-%m-%d", time.localtime(min(max(at / 1000, 0), LAST_SECOND)))


# Hits


def hit_of(
    found: Found, terms: Sequence[TermMatcher], context: int = 0, score: float = 0.0
) -> Hit:
    """Return a hit with its excerpt.

    Args:
        found: What was verified.
        terms: The terms of the search.
        context: Lines around the match in the excerpt.
        score: How good it is.
    """
    section, spans = _best_section(found, terms)
    message, part, data = found.message, found.part, found.data
    ended = None
    if data is not None and part is not None and is_tool_type(part.kind):
        ended = outcome_of(data)
    return Hit(
        session_id=found.session.id,
        message_id=message.id if message else None,
        part_id=part.id if part else None,
        index=found.place.number,
        created_at=found.place.created_at,
        times=(part.created_at, part.updated_at) if part else (0, 0),
        where=section.where,
        role=message.role if message else "",
        tool=tool_of(data) if data is not None else None,
        state=part.state if part else None,
        failed=(ended is not None and ended.status == "failed")
        or (part is not None and part.kind == "data-error"),
        data=shortened(data) if data is not None else {},
        # Exit code and duration, which some outputs begin with, are shown beside the call.
        excerpt=excerpt(section.text, spans, context,
                        ended.head if ended and section.where == "output" else 0),
        matches=sum(map(len, spans)),
        score=score,
    )


def _best_section(
    found: Found, terms: Sequence[TermMatcher]
) -> tuple[Section, list[list[tuple[int, int]]]]:
    """Return the section in which most terms match, and where; the last one without terms."""
    best: tuple[Section, list[list[tuple[int, int]]]] | None = None
    for section in found.sections:
        if section.where == found.where:
            folded = Folded(section.text)
            spans = [each.spans(folded, _MOST_SPANS) for each in terms]
            if best is None or not terms or sum(map(bool, spans)) > sum(map(bool, best[1])):
                best = section, spans
    return best or (Section(found.where, ""), [])


def shortened(value: Any) -> Any:
    """Return a JSON value with long strings and lists cut, for a line about it."""
    if isinstance(value, str):
        return value[:_LONGEST_STRING]
    if isinstance(value, dict):
        return {name: shortened(item) for name, item in list(value.items())[:_MOST_ITEMS]}
    if isinstance(value, list):
        return [shortened(item) for item in value[:_MOST_ITEMS]]
    return value


_WEIGHTS: dict[Where, float] = {
    "title": 3.0, "prompt": 2.0, "text": 1.2, "input": 0.8, "reasoning": 0.5, "output": 0.0,
}
_HALF_A_YEAR_MS = 182 * 86_400_000
_COUNTED_MATCHES = 16


def _score(found: Found, terms: Sequence[TermMatcher]) -> float:
    """Return how good a hit is: place, whole words, density, and how recent it is.

    It does not depend on the present, so the order of two hits stays.
    """
    score = _WEIGHTS[found.where] + found.place.created_at / _HALF_A_YEAR_MS
    section, spans = _best_section(found, terms)
    for several in spans:
        whole = any(_is_whole_word(section.text, *span) for span in several[:_COUNTED_MATCHES])
        score += (whole + math.log2(1 + min(len(several), _COUNTED_MATCHES)) / 3) / len(spans)
    return score - math.log2(1 + len(section.text) / 1000) / 4


def _is_whole_word(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return not before.isalnum() and not after.isalnum()


# Candidates


def _texts(verifier: Verifier) -> list[str]:
    """Return what each message with a hit holds: words, phrases and names of files."""
    terms = (each.term for each in verifier.asks.terms)
    return [*(each.text for each in terms if index_needle(each) is not None), *verifier.names]


def _on_server(db: Database, verifier: Verifier, texts: Sequence[str]) -> OnServer | None:
    """Return what looks at messages of a store on a server; None for a file."""
    if db.server is None:
        return None
    # Only here: a search in a file needs nothing of servers.
    from store.search.on_server import OnServer

    return OnServer(db, verifier, texts)


def _candidates(
    db: Database, index: Index | None, verifier: Verifier, before: Place | None,
    server: OnServer | None,
) -> Iterator[Candidate]:
    """Return what a search looks at, newest first.

    Args:
        db: The store.
        index: Its index, if there is one.
        verifier: What is asked.
        before: Where to start; None for the newest.
        server: What looks at the messages of a store on a server.
    """
    asks, wanted, texts = verifier.asks, verifier.wanted, _texts(verifier)
    if not asks.titles and not asks.parts:
        return iter(())
    if server is not None:
        return server.candidates(before)
    sessions = wanted.condition, wanted.values
    # Without a text the index names everything: reading some sessions alone is less.
    if index is not None and asks.parts and (texts or not asks.sessions.filters):
        return from_index(db, index, texts, before=before, scanned=sessions)
    newest = NEWEST if before is None else before.created_at
    return scan(db, *sessions, parts=asks.parts, titles=asks.titles, newest=newest)


def _why_stopped(
    index: Index | None, texts: Sequence[str], *, helped: bool, server: OnServer | None
) -> str:
    """Return why a search that ends before its time has not searched everything.

    Args:
        index: The index of a file.
        texts: What is looked up.
        helped: Whether an index helped.
        server: What looked at the messages of a store on a server.
    """
    if server is not None:
        return server.why_slow
    if helped:
        return "it took too long"
    if index is None:
        return "there is no index yet"
    return "the index is not complete" if texts else (
        "no word of the query can be looked up in the index")


def _asks_for_archived(query: Query) -> bool:
    return any(one.field == "is" and one.value == "archived" and not one.negated
               for one in query.filters)


def with_index(
    path: Path, begin: Callable[[Index | None], Iterator[T | None]]
) -> Iterator[T | None]:
    """Yield what a search yields with a store's index; without it where that is unusable.

    Args:
        path: The store's file.
        begin: Begins the search with an index, or with None.
    """
    index = open_index(path)
    try:
        yield from begin(index)
    except IndexUnusable:
        yield from begin(None)
    finally:
        if index is not None:
            index.close()


class SessionsFound(NamedTuple):
    """The sessions that have hits.

    Attributes:
        ids: All that were found so far.
        why: Why not all was searched, once the search has ended; "" where all was.
    """

    ids: set[str]
    why: str = ""


def sessions_with_hits(
    db: Database, query: Query, index: Index | None = None, *, helpers: bool = True,
    seconds: float = SCAN_S, masking: Masking | None = None,
) -> Iterator[SessionsFound | None]:
    """Yield the sessions that have hits, archived ones too, as they are found.

    A fork that holds a hit as a copy has it too. ``-tool:``, ``-file:`` and ``-role:`` leave out
    the sessions that have any such part. Yields None where others may run, else all
    that were found so far; the last is the result.

    Args:
        db: The store.
        query: What is searched for.
        index: The store's index; None to search without.
        helpers: Whether runs that agents started for themselves are searched.
        seconds: Of work after which the search ends.
        masking: What is masked in all texts before they are searched; None for nothing.
    """
    absent = [each for each in query.part_conditions if each.negated and each.field in _WHOLE]
    dropped = {each for one in absent for each in one.filters}
    kept = replace(query, filters=tuple(each for each in query.filters if each not in dropped))
    without, why = set[str](), ""
    for one in absent:
        asked = Query(query.text, filters=tuple(
            replace(each, negated=False) for each in one.filters))
        for having in _with_hits(
            db, asked, index, helpers=helpers, seconds=seconds, masking=masking
        ):
            if having is not None:
                without, why = without | having.ids, why or having.why
            yield None
    if not kept:
        rows = db.connection.execute("SELECT id FROM chat_sessions").fetchall()
        yield SessionsFound({text(row[0]) or "" for row in rows} - without, why)
        return
    for found in _with_hits(
        db, kept, index, helpers=helpers, seconds=seconds, masking=masking
    ):
        yield None if found is None else SessionsFound(found.ids - without, why or found.why)


_WHOLE = frozenset({"tool", "file", "role", "task", "channel"})
"""Fields whose negation asks for sessions that have no such part at all."""


def _with_hits(
    db: Database, query: Query, index: Index | None, *, helpers: bool, seconds: float,
    masking: Masking | None,
) -> Iterator[SessionsFound | None]:
    asks = conditions_of(query)
    wanted = WantedSessions(
        db, asks.sessions, helpers=helpers, now=system_clock(), masking=masking)
    verifier = Verifier(db, asks, wanted, copies=True, masking=masking)
    found: set[str] = set()
    shown, working, started, why = 0, 0.0, time.monotonic(), ""
    server = _on_server(db, verifier, _texts(verifier))
    for batch in batches(_candidates(db, index, verifier, None, server), None):
        left = [each for each in batch if each.session_id not in found]
        for hits in chain(verifier.found(left), ([],)):
            found |= {hit.session.id for hit in hits}
            if time.monotonic() - started > SLICE_S:
                working += time.monotonic() - started
                yield SessionsFound(set(found)) if len(found) > shown else None
                shown, started = len(found), time.monotonic()
        if working > seconds:
            texts = _texts(verifier)
            helped = bool(texts) and index is not None and index.coverage().whole
            why = _why_stopped(index, texts, helped=helped, server=server)
            break
    if not why and any(each.gave_up for each in (*asks.terms, *asks.unwanted)):
        why = GAVE_UP
    yield SessionsFound(found, why)
