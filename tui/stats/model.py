"""The statistics without a screen: what is asked for, what was read, and what is selected.

It outlives the screen, so that one comes back to it as it was from the sessions of a bar.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import date
from functools import partial

from store.config import Settings, zone_of
from store.engine.database import Database
from store.language.query import Query, parse
from store.prices.loading import load_prices
from store.prices.table import PriceTable
from store.stats.statistics import Span, counted_sessions, open_rollups
from store.stats.times import Calendar
from tui.state.library import Library
from tui.stats.measures import COST, MEASURES, Measure
from tui.stats.ranges import BUCKETS, Bucket, Range, RangeName, allowed, day_of
from tui.stats.reading import Board, BoardReader, Counted, Wanted
from tui.stats.view import Key

TYPING_S = 0.15
"""A query is asked when no key was typed for so long."""
RENEWED_EVERY_S, RESTS = 1.0, 4
"""Statistics are read again at most so often while the store changes, and rest for so many times
as long as that took."""

COUNTS_S, COUNTS_MOST_S = 0.1, 2.0
"""How long a reading counts sessions that are not counted yet: the first one, and later ones."""

Start = Callable[[Callable[[], Awaitable[None]], str], object]
"""Runs work beside the keys, in place of older work of its group."""


def _nothing() -> None:
    """Do nothing: no screen shows the statistics."""


class StatsModel:
    """The statistics of a store.

    Attributes:
        range: Which range is shown.
        bucket: What the plot is cut into; None for what fits the range.
        measure: What bars and rows show.
        text: What narrows it, as it was typed.
        query: The same, read.
        in_calendar: Whether a year is shown as a calendar in place of the plot.
        unfolded: Tables of which all rows are shown.
        selected: The selected bar or row.
        scrolled: The first line on the screen.
        board: What was read last, of what was asked for last once ``fresh`` is set.
        fresh: Whether anything was read of what was asked for last.
        running: Whether pieces may still come.
        failure: Why it could not be read; "" where it could.
        calendar: Where days, weeks and months begin.
        prices: What models cost; None before they are loaded.
        changed: Called when anything of it has changed.
    """

    def __init__(
        self, library: Library, settings: Settings, start: Start,
        report: Callable[[str, BaseException], None],
    ) -> None:
        """Make the statistics of the last 30 days; nothing is read yet.

        Args:
            library: The store.
            settings: The config: time zone and months.
            start: Runs work beside the keys.
            report: Shows an error.
        """
        self.library, self._start, self._report = library, start, report
        zone = zone_of(settings.stats.zone)
        self.calendar = Calendar(zone, settings.stats.month_starts)
        self.range = Range()
        self.bucket: Bucket | None = None
        self.measure: Measure = COST
        self.text = ""
        self.query = Query("")
        self.in_calendar = False
        self.unfolded: frozenset[str] = frozenset()
        self.selected: Key | None = None
        self.scrolled = 0
        self.board = Board(self.range.between(library.clock(), zone))
        self.fresh = self.running = False
        self.failure = ""
        self.prices: PriceTable | None = None
        self.changed: Callable[[], None] = _nothing
        self._laid_over = settings.prices
        self._reader: BoardReader | None = None
        self._rests_until = 0.0
        self._stale = False
        self._seconds = COUNTS_S

    @property
    def year(self) -> date | None:
        """The last day of the year that is shown as a calendar; None for the plot."""
        if not self.in_calendar:
            return None
        now, zone = self.library.clock(), self.calendar.zone
        end = self.range.between(now, zone).end
        return day_of(min(now, end - 1) if end is not None else now, zone)

    # What is asked for

    def choose_range(self, chosen: Range) -> None:
        """Show another range, in the bars that are usual for it."""
        if chosen.name != self.range.name or chosen.name == "custom":
            self.bucket = None
        self.range = chosen
        self.read()

    def choose_named(self, name: RangeName) -> None:
        """Show a range by its name, up to the present."""
        self.choose_range(Range(name))

    def move(self, by: int) -> str | None:
        """Show the range before (-1) or after (1) it; return why there is none, or None."""
        if self.range.why_not_moved:
            return self.range.why_not_moved
        if by > 0 and not self.range.back:
            return "This is the latest"
        self.choose_range(self.range.moved(by))
        return None

    def next_measure(self) -> None:
        """Show the next measure: cost, tokens, calls, time."""
        self.measure = MEASURES[(MEASURES.index(self.measure) + 1) % len(MEASURES)]
        # The groups are here already; the busiest sessions are others by another measure.
        self.changed()
        self.read(again=True)

    def next_bucket(self) -> Bucket | None:
        """Show the plot in the next size of bars that is not too many; return it."""
        between = self.board.between
        if between.start is None:
            return None
        sizes = [each for each in BUCKETS if allowed(each, between)]
        now = self.board.bucket
        at = sizes.index(now) + 1 if now in sizes else 0
        chosen = sizes[at % len(sizes)]
        if chosen != now:
            self.bucket = chosen
            self.read(again=True)
        return chosen

    def toggle_calendar(self) -> None:
        """Show a year as a calendar in place of the plot, or the plot again."""
        self.in_calendar = not self.in_calendar
        self.changed()
        if self.in_calendar:
            self.read(again=True)

    def toggle_rows(self, table: str) -> None:
        """Show all rows of a table, or the first ones again."""
        self.unfolded ^= {table}
        self.changed()

    def ask(self, text: str) -> None:
        """Narrow it by a query; an unfinished one waits until it is finished."""
        query = parse(text, now=self.library.clock())
        same = query.terms == self.query.terms and query.filters == self.query.filters
        self.text, self.query = text, query
        if not same:
            self.read(typed=True)

    # Reading

    async def sessions_of(self, counted: Counted, query: Query) -> set[int]:
        """Return the rowids of the sessions that a bar or row counts.

        Args:
            counted: What it counts.
            query: What narrows it.
        """
        def read(db: Database) -> set[int]:
            with open_rollups(db, seconds=COUNTS_MOST_S) as stats:
                return counted_sessions(
                    db, stats, by=counted.by, key=counted.key, span=Span(*counted.between),
                    query=query)

        return await self.library.read(read)

    def read(self, *, again: bool = False, typed: bool = False) -> None:
        """Start to read what is asked for now; an older reading ends.

        Args:
            again: Whether it is the same range and query, so that what is shown stays true.
            typed: Whether more keys may be typed at once.
        """
        self.running = True
        if not again:
            self.fresh = False
        self.changed()
        self._start(partial(self._read, TYPING_S if typed else 0.0), "statistics")

    @property
    def is_watched(self) -> bool:
        """Whether a screen shows it."""
        return self.changed is not _nothing

    def detach(self) -> None:
        """Go on without a screen."""
        self.changed = _nothing

    def store_changed(self) -> None:
        """Read it again, as the store has changed; not more often than it can be read."""
        if self.running or self._stale:
            self._stale = True
            return
        wait = self._rests_until - time.monotonic()
        if wait <= 0:
            self.read(again=True)
        else:
            self._stale = True
            self._start(partial(self._read_after, wait), "statistics")

    async def _read_after(self, wait: float) -> None:
        await asyncio.sleep(wait)
        self._stale = False
        self.running = True
        await self._read(0.0)

    async def _read(self, wait: float) -> None:
        if wait:
            await asyncio.sleep(wait)
        self._stale = False
        began = time.monotonic()
        try:
            await self._read_pieces()
            self.failure = ""
        except Exception as error:
            self.failure = str(error)
            self._report("The statistics could not be read", error)
        self.running = False
        now = time.monotonic()
        self._rests_until = now + max(RENEWED_EVERY_S, RESTS * (now - began))
        self.changed()
        coverage = self.board.coverage
        if coverage is not None and not coverage.whole and not self.failure:
            # The rest is counted in another process, or here with the next readings.
            self._seconds = min(COUNTS_MOST_S, 2 * self._seconds)
            self._stale = True
        if self._stale and self.is_watched:
            self._stale = False
            self.store_changed()

    async def _read_pieces(self) -> None:
        if self._reader is None:
            self.prices = await asyncio.to_thread(load_prices, self._laid_over)
            self._reader = BoardReader(self.library, self.prices)
        now, zone = self.library.clock(), self.calendar.zone
        wanted = Wanted(
            self.range.between(now, zone), self.bucket or self.range.usual_bucket, self.query,
            self.calendar, self.measure.order, now, self._seconds, self.year,
        )
        async with aclosing(self._reader.read(wanted)) as boards:
            async for board in boards:
                self._take(board)

    def _take(self, board: Board) -> None:
        """Show what was read; where it is the same again, pieces still to come stay as they are."""
        if self.fresh and not board.done:
            old = self.board
            board = replace(
                board, tables={**old.tables, **board.tables},
                sessions=board.sessions if board.sessions is not None else old.sessions,
                turns=board.turns if board.turns is not None else old.turns,
                contexts=board.contexts if board.contexts is not None else old.contexts,
                windows=old.windows,
                days=board.days if board.days is not None else old.days,
            )
        self.board, self.fresh = board, True
        self.changed()
