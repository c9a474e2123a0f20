"""Reads what the statistics screen shows, piece by piece, on the store's reading thread.

Each piece is one short read, so that other readers have their turn between two, and a read
that is no longer wanted ends with the piece that it is at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date, timedelta, tzinfo
from typing import NamedTuple

from store.engine.database import Database
from store.language.query import Query
from store.prices.table import PriceTable
from store.stats.statistics import (
    Answer,
    Coverage,
    Dimension,
    Figures,
    Group,
    Grouping,
    LongestTurn,
    Order,
    Rollups,
    Span,
    context_tokens,
    figures,
    longest_turns,
    open_rollups,
)
from store.stats.times import Calendar
from store.stats.windows import Window, windows_without_figures, with_figures
from tui.state.library import Library
from tui.stats.ranges import (
    Between,
    Bucket,
    Slot,
    allowed,
    day_between,
    day_of,
    fitting_bucket,
    slots,
)

MOST_GROUPS = 200
"""Groups of a table that are read; the rest is one row."""
MOST_SESSIONS, MOST_WINDOWS = 12, 12
TABLES: tuple[Dimension, ...] = ("model", "tool", "workspace", "agent", "branch")
"""The tables of groups, those first that are seen first."""


class Table(NamedTuple):
    """The groups of a table.

    Attributes:
        groups: The largest first.
        others: What those beyond the limit come to; None without any.
    """

    groups: list[Group]
    others: Figures | None = None


class TimeBucket(NamedTuple):
    """What one bar of the plot stands for.

    Attributes:
        slot: Its time.
        figures: Its figures.
        parts: The same by agent.
    """

    slot: Slot
    figures: Figures
    parts: dict[str, Figures]


class Counted(NamedTuple):
    """What a bar or a row counts.

    Attributes:
        between: In which time.
        by: What its table is grouped by; None where it counts all of that time.
        key: Of its group.
    """

    between: Between
    by: Grouping | None = None
    key: str = ""


class InContext(NamedTuple):
    """A session with what is in its context now, in tokens; None where that is not known."""

    group: Group
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        between: The range.
        bucket: What its plot is cut into; None for what fits.
        query: What narrows it.
        calendar: Where days, weeks and months begin.
        order: What tables are ordered by.
        now: Epoch ms.
        seconds: For how long sessions are counted that are not counted yet.
        year: Up to which day a year is read as a calendar; None for no calendar.
    """

    between: Between
    bucket: Bucket | None
    query: Query
    calendar: Calendar
    order: Order
    now: int
    seconds: float
    year: date | None = None

    @property
    def zone(self) -> tzinfo | None:
        """The time zone; None is the computer's own."""
        return self.calendar.zone


@dataclass(frozen=True, slots=True)
class Board:
    """What was read; pieces that were not read yet are None or missing.

    Attributes:
        between: The range; both limits are known once there are buckets.
        bucket: What the plot is cut into.
        whole: All of it.
        buckets: The bars of the plot.
        tables: By what they are grouped by.
        sessions: The busiest.
        turns: The longest.
        contexts: The busiest sessions, with their contexts.
        windows: The windows of plans that are open now; none where a query narrows the rest.
        days: By day of a year, where that is wanted.
        coverage: How many sessions are counted.
        why: Why the query did not find all sessions; "" where it did.
        done: Whether all of it was read.
    """

    between: Between
    bucket: Bucket = "day"
    whole: Figures | None = None
    buckets: Sequence[TimeBucket] = ()
    tables: dict[Dimension, Table] = field(default_factory=dict)
    sessions: Sequence[Group] | None = None
    turns: Sequence[LongestTurn] | None = None
    contexts: Sequence[InContext] | None = None
    windows: Sequence[Window] = ()
    days: dict[date, Group] | None = None
    coverage: Coverage | None = None
    why: str = ""
    done: bool = False


class BoardReader:
    """Reads boards of one store."""

    def __init__(self, library: Library, prices: PriceTable) -> None:
        """Take the store, and what models cost."""
        self._library, self._prices = library, prices

    async def read(self, wanted: Wanted) -> AsyncGenerator[Board, None]:
        """Read what is asked for; yields what there is after each piece.

        Args:
            wanted: What is asked for.

        Raises:
            StoreError: The store cannot be read.
        """
        opened: AbstractContextManager[Rollups] = await self._library.read(
            lambda db: open_rollups(db, self._prices, seconds=wanted.seconds))
        stats = await self._library.read(lambda db: opened.__enter__())
        try:
            board = await self._library.read(_over_time, stats, wanted)
            yield board
            if wanted.year is not None:
                days = await self._library.read(_days, stats, wanted, wanted.year)
                board = replace(board, days=days)
                yield board
            for by in TABLES:
                table = await self._library.read(_table, stats, wanted, by)
                board = replace(board, tables={**board.tables, by: table})
                yield board
            sessions = await self._library.read(_sessions, stats, wanted)
            turns = await self._library.read(_turns, stats, wanted)
            contexts = await self._library.read(_contexts, sessions)
            board = replace(board, sessions=sessions, turns=turns, contexts=contexts)
            yield board
            windows = []
            for window in await self._library.read(_windows, stats, wanted):
                windows.append(await self._library.read(with_figures, stats, window))
            yield replace(board, windows=windows, done=True)
        finally:
            await self._library.read(lambda db: opened.__exit__(None, None, None))


def _over_time(db: Database, stats: Rollups, wanted: Wanted) -> Board:
    limited = None not in wanted.between
    by = wanted.bucket if wanted.bucket is not None and limited else "day"
    answer = _by_time(db, stats, wanted, by)
    between = _limits(wanted.between, answer.groups)
    bucket = wanted.bucket or fitting_bucket(between)
    if not allowed(bucket, between):
        bucket = fitting_bucket(between)
    if bucket != by:
        answer = _by_time(db, stats, wanted, bucket)
    times = []
    if between.start is not None and between.end is not None:
        times = slots(between.start, between.end, bucket, wanted.calendar)
    return Board(between, bucket, answer.whole, _in_slots(answer.groups, times),
                 coverage=answer.coverage, why=answer.why)


def _by_time(db: Database, stats: Rollups, wanted: Wanted, by: Bucket) -> Answer:
    return figures(
        db, stats, by=by, span=Span(*wanted.between), query=wanted.query, zone=wanted.zone,
        stack="agent", month_starts=wanted.calendar.month_starts,
    )


def _limits(between: Between, found: Sequence[Group]) -> Between:
    """Return the range, with the limits of what was found where it has none of its own."""
    spans = [group.span for group in found if group.span is not None]
    starts = [span.start for span in spans if span.start is not None]
    ends = [span.end for span in spans if span.end is not None]
    start = between.start if between.start is not None else min(starts, default=None)
    end = between.end if between.end is not None else max(ends, default=None)
    if start is None or end is None:
        return Between(None, None)
    return Between(start, max(end, start + 1))


def _in_slots(found: Sequence[Group], times: Sequence[Slot]) -> list[TimeBucket]:
    """Return a bucket for each slot, with the sums of the groups in it."""
    made = [TimeBucket(slot, Figures(), {}) for slot in times]
    ends = [slot.end for slot in times]
    for group in found:
        begin = (group.span.start if group.span is not None else None) or 0
        at = bisect_right(ends, begin)
        if at >= len(made):
            continue
        bucket = made[at]
        bucket.figures.add(group.figures)
        bucket.figures.sessions = group.figures.sessions
        for agent, part in group.parts.items():
            bucket.parts.setdefault(agent, Figures()).add(part)
    return made


def _days(db: Database, stats: Rollups, wanted: Wanted, last: date) -> dict[date, Group]:
    first = last - timedelta(days=53 * 7)
    span = Span(day_between(first, wanted.zone).start, day_between(last, wanted.zone).end)
    answer = figures(db, stats, by="day", span=span, query=wanted.query, zone=wanted.zone,
                     stack="agent")
    return {
        day_of(group.span.start, wanted.zone): group for group in answer.groups
        if group.span is not None and group.span.start is not None
    }


def _table(db: Database, stats: Rollups, wanted: Wanted, by: Dimension) -> Table:
    answer = figures(
        db, stats, by=by, span=Span(*wanted.between), query=wanted.query, zone=wanted.zone,
        stack=None if by == "tool" else "agent", limit=MOST_GROUPS,
        order="calls" if by == "tool" else wanted.order,
    )
    return Table(answer.groups, answer.others)


def _sessions(db: Database, stats: Rollups, wanted: Wanted) -> list[Group]:
    return figures(
        db, stats, by="session", span=Span(*wanted.between), query=wanted.query,
        zone=wanted.zone, stack="agent", limit=MOST_SESSIONS, order=wanted.order,
    ).groups


def _turns(db: Database, stats: Rollups, wanted: Wanted) -> list[LongestTurn]:
    return longest_turns(db, stats, span=Span(*wanted.between), query=wanted.query,
                         limit=MOST_SESSIONS)


def _contexts(db: Database, sessions: Sequence[Group]) -> list[InContext]:
    return [InContext(group, context_tokens(db, group.key)) for group in sessions]


def _windows(db: Database, stats: Rollups, wanted: Wanted) -> list[Window]:
    # They are of all requests of an agent, so they are not shown beside narrowed figures.
    if wanted.query:
        return []
    return windows_without_figures(db, stats, now=wanted.now)[:MOST_WINDOWS]
