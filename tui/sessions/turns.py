"""Counts the turns of the sessions that are seen, and again after they were written to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from store.queries.listing import ListRow
from tui.sessions.jobs import Jobs
from tui.state.library import Library

if TYPE_CHECKING:
    from textual.timer import Timer

COUNTED_AT_ONCE = 12
COUNT_EVERY_S = 1.0
COUNTED_IN_A_READ = 500
"""Messages whose turns are counted in one read: some ms."""
COUNT_REST_SHARE = 9
"""After a read, pause so many times as long as it took."""
STALE = -1
"""Stands for the time of a count that has to be made again; no session changed then."""


class Seen(Protocol):
    """The sessions that are on the screen."""

    @property
    def rows(self) -> Mapping[int, ListRow]:
        """What is known of sessions, by rowid."""
        ...

    def seen_rowids(self) -> list[int]:
        """Return the sessions that are on the screen."""
        ...

    def rows_changed(self, rowids: Iterable[int]) -> None:
        """Draw sessions again whose rows were changed in place."""
        ...


class TurnCounts:
    """The last counts, by session id, with the ``updated_at`` that they belong to."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._counted: dict[str, tuple[int, int]] = {}

    def expire(self, but: Collection[str] = ()) -> None:
        """Have all sessions but some counted again; until then the last counts are shown."""
        self._counted = {
            name: (counted_at if name in but else STALE, turns)
            for name, (counted_at, turns) in self._counted.items()
        }

    def expire_one(self, session_id: str) -> None:
        """Have a session counted again when it is seen."""
        if session_id in self._counted:
            self._counted[session_id] = (STALE, self._counted[session_id][1])

    def misses(self, rows: Iterable[ListRow | None]) -> bool:
        """Return whether some of these have no current count."""
        return any(
            row is not None and self._counted.get(row.id, (STALE, 0))[0] != row.updated_at
            for row in rows
        )

    def put(self, row: ListRow, turns: int) -> None:
        """Keep the count of a session, and write it into its row."""
        row.turns = turns
        if row.outline:
            # Nothing of it is read yet: this is no count to remember.
            return
        self._counted[row.id] = (row.updated_at, turns)

    def fill(self, rows: Iterable[ListRow]) -> list[ListRow]:
        """Write the last counts into rows; return the rows without a current one."""
        missing = []
        for row in rows:
            counted_at, turns = self._counted.get(row.id, (STALE, row.turns))
            row.turns = turns
            if counted_at != row.updated_at:
                missing.append(row)
        return missing


class TurnCounter:
    """Counts turns beside the keys: what is seen at once, what is written to a little later.

    Attributes:
        counts: The last counts.
    """

    def __init__(self, library: Library, seen: Seen, jobs: Jobs) -> None:
        """Make a counter that has counted nothing.

        Args:
            library: The store.
            seen: The sessions on the screen.
            jobs: Runs the counting.
        """
        self.counts = TurnCounts()
        self._library, self._seen, self._jobs = library, seen, jobs
        self._due: Timer | None = None
        self._written: dict[str, int] = {}
        self._counting_written = False

    def count_seen(self) -> None:
        """Start to count the sessions on the screen that have no current count."""
        self._jobs.start(self._count_seen, "turns")

    def count_scrolled(self) -> None:
        """Start to count where the list was scrolled to sessions without a current count."""
        if self.counts.misses(map(self._seen.rows.get, self._seen.seen_rowids())):
            self.count_seen()

    def fill_seen(self, rows: Mapping[int, ListRow]) -> None:
        """Write the last counts into new rows of sessions on the screen."""
        self.counts.fill(rows[rowid] for rowid in self._seen.seen_rowids() if rowid in rows)

    async def _count_seen(self) -> None:
        from store.queries.counting import counts

        seen = self._seen
        rows = [seen.rows[rowid] for rowid in seen.seen_rowids() if rowid in seen.rows]
        missing = self.counts.fill(rows)
        seen.rows_changed(row.rowid for row in rows)
        for start in range(0, len(missing), COUNTED_AT_ONCE):
            some = missing[start:start + COUNTED_AT_ONCE]
            found = await self._library.read(counts, [row.id for row in some])
            for row in some:
                self.counts.put(row, found[row.id].turns)
            seen.rows_changed(row.rowid for row in some)

    # Sessions that were written to

    def written(self, row: ListRow) -> None:
        """Remember that a session was written to: its turns may have changed."""
        self._written[row.id] = row.rowid

    def count_soon(self, rows: Iterable[ListRow]) -> None:
        """Count in a while, where sessions were written to or some of these have no count."""
        if self._due is None and (self._written or any(row.turns is None for row in rows)):
            self._due = self._jobs.set_timer(COUNT_EVERY_S, self.count_now)

    @property
    def is_due(self) -> bool:
        """Whether sessions are still to be counted again."""
        return self._due is not None or bool(self._written) or self._counting_written

    def count_now(self) -> None:
        """Start to count what was written to, without a pause."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        self.count_seen()
        if self._written and not self._counting_written:
            self._jobs.start(self._count_written, "recount")

    async def _count_written(self) -> None:
        self._counting_written = True
        try:
            while self._written:
                session_id, rowid = next(iter(self._written.items()))
                # Before it is counted: what is written meanwhile is counted once more.
                del self._written[session_id]
                await self._count_one(session_id, rowid)
        finally:
            self._counting_written = False

    async def _count_one(self, session_id: str, rowid: int) -> None:
        """Count the turns of a session, in small reads with pauses between."""
        from store.queries.counting import Counts, add_counts

        counted, after = Counts(), None
        while True:
            started = time.perf_counter()
            after = await self._library.read(
                add_counts, session_id, counted, after, COUNTED_IN_A_READ)
            if after is None:
                break
            await asyncio.sleep(COUNT_REST_SHARE * (time.perf_counter() - started))
        row = self._seen.rows.get(rowid)
        if row is not None and row.id == session_id:
            self.counts.put(row, counted.turns)
            self._seen.rows_changed([rowid])
