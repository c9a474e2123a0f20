"""Counts the turns of the sessions that are seen, and again after they were written to.

Of a session that is written to, it is remembered which messages it has and which begin a turn. So
only the messages that a change names are read again, however long the session is.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from store.engine.changes import Moved
from store.queries.listing import ListRow
from tui.kit.later import Later
from tui.sessions.jobs import Jobs
from tui.state.library import Library

if TYPE_CHECKING:
    from store.queries.counting import Beginning

COUNTED_AT_ONCE = 12
COUNT_EVERY_S = 1.0
COUNTED_IN_A_READ = 500
"""Messages whose turns are counted in one read: some ms."""
COUNT_REST_SHARE = 9
"""After a read, pause so many times as long as it took."""
BUCKETS = 4096
"""Of the hashes of one session: 61 in each where it has 250,000 messages."""
MOST_TALLIES = 64
"""Sessions of which it is remembered what begins a turn, those that were written to last."""
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


class Tally:
    """Which messages a session has, and which begin a turn, by hashes of their ids.

    A message costs the same in every session: nothing is sorted, and nothing long is moved.
    """

    def __init__(self) -> None:
        """Start with no messages."""
        self._messages, self._turns = _Hashes(), _Hashes()

    @property
    def messages(self) -> int:
        """How many messages there are, hidden ones too."""
        return len(self._messages)

    @property
    def turns(self) -> int:
        """How many of them begin a turn."""
        return len(self._turns)

    def add(self, page: Iterable[Beginning]) -> None:
        """Take some of the messages, each with whether it begins a turn."""
        for message_id, begins in page:
            self._take(message_id, True, begins)

    def renew(self, asked: Iterable[str], found: Iterable[Beginning]) -> None:
        """Take what some messages are now.

        Args:
            asked: Their ids.
            found: Those of them that the session has.
        """
        begins = dict(found)
        for message_id in asked:
            self._take(message_id, message_id in begins, begins.get(message_id, False))

    def _take(self, message_id: str, there: bool, begins: bool) -> None:
        hashed = hash(message_id)
        self._messages.put(hashed, there)
        self._turns.put(hashed, begins)


class _Hashes:
    """A set of hashes, 8 bytes each; a set of Python takes eight times as much."""

    def __init__(self) -> None:
        """Start empty."""
        self._buckets: dict[int, array[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def put(self, hashed: int, there: bool) -> None:
        """Add a hash to the set, or remove it.

        Args:
            hashed: The hash.
            there: Whether to add it.
        """
        bucket = self._buckets.get(hashed % BUCKETS)
        if bucket is None:
            if there:
                self._buckets[hashed % BUCKETS] = array("q", (hashed,))
                self._count += 1
        elif (hashed in bucket) != there:
            if there:
                bucket.append(hashed)
            else:
                bucket.remove(hashed)
            self._count += 1 if there else -1


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
        self._due: Later | None = None
        self._written: dict[str, int] = {}
        self._counting_written = False
        self._tallies: dict[str, Tally] = {}
        self._tallied_rowid = 0
        self._tallied_now = ""
        """The session whose messages are being read; what is written to it meanwhile is below."""
        self._meanwhile: set[str] = set()

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
        before = [row.turns for row in rows]
        missing = [row for row in self.counts.fill(rows)
                   if row.id not in self._written and row.id != self._tallied_now]
        seen.rows_changed(
            row.rowid for row, turns in zip(rows, before, strict=True) if row.turns != turns)
        for start in range(0, len(missing), COUNTED_AT_ONCE):
            some = missing[start:start + COUNTED_AT_ONCE]
            found = await self._library.read(counts, [row.id for row in some])
            for row in some:
                self.counts.put(row, found[row.id].turns)
            seen.rows_changed(row.rowid for row in some)

    # Sessions that were written to

    def tallied(self, moved: Moved) -> dict[str, set[str]]:
        """Return the messages that have to be read again, of sessions whose others are known.

        Args:
            moved: What was written; of a session without named messages nothing is known any more.
        """
        found = {}
        if moved.vague:
            self.forget()
        for session_id, messages in moved.sessions.items():
            if messages is None:
                self._forget_one(session_id)
            elif session_id in self._tallies:
                found[session_id] = messages
            elif session_id == self._tallied_now:
                self._meanwhile |= messages
        return found

    def counted_later(self, session_ids: Iterable[str]) -> dict[str, int]:
        """Return the last counts of messages of long sessions that are about to be tallied.

        To count all their messages anew for each write takes longer the more there are.

        Args:
            session_ids: Sessions that were written to.
        """
        found = {}
        for session_id in session_ids:
            rowid = self._written.get(session_id)
            if rowid is None and session_id == self._tallied_now:
                rowid = self._tallied_rowid
            row = None if rowid is None else self._seen.rows.get(rowid)
            if row is not None and row.id == session_id and row.messages > COUNTED_IN_A_READ:
                found[session_id] = row.messages
        return found

    def renew(self, session_id: str, asked: Iterable[str], found: Iterable[Beginning]) -> None:
        """Take what some messages of a session are now, which ``tallied`` has named.

        Args:
            session_id: The session.
            asked: Their ids.
            found: Those of them that it has.
        """
        if session_id in self._tallies:
            self._tallies[session_id].renew(asked, found)

    def forget(self) -> None:
        """Forget which messages sessions have: anything may have been written."""
        self._tallies.clear()
        self._tallied_now = ""

    def _forget_one(self, session_id: str) -> None:
        self._tallies.pop(session_id, None)
        if session_id == self._tallied_now:
            self._tallied_now = ""

    def written(self, row: ListRow) -> None:
        """Write the counts of a session that was written to into its row, or have it counted."""
        tally = self._tallies.pop(row.id, None)
        if tally is not None:
            self._tallies[row.id] = tally
            row.messages = tally.messages
            self.counts.put(row, tally.turns)
        elif row.id != self._tallied_now:
            self._written[row.id] = row.rowid

    def count_soon(self, rows: Iterable[ListRow]) -> None:
        """Count in a while, where sessions were written to or some of these have no count."""
        if self._due is None and (self._written or any(row.turns is None for row in rows)):
            self._due = self._jobs.later(COUNT_EVERY_S, self.count_now)

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
            self._counting_written, self._tallied_now = False, ""

    async def _count_one(self, session_id: str, rowid: int) -> None:
        """Count the turns of a session, in small reads with pauses between."""
        from store.queries.counting import beginning_page, beginnings

        self._tallied_now, self._tallied_rowid, self._meanwhile = session_id, rowid, set()
        tally, after = Tally(), None
        while True:
            started = time.perf_counter()
            page, after = await self._library.read(
                beginning_page, session_id, after, COUNTED_IN_A_READ)
            tally.add(page)
            if after is None:
                break
            await asyncio.sleep(COUNT_REST_SHARE * (time.perf_counter() - started))
        while self._meanwhile and self._tallied_now:
            some, self._meanwhile = self._meanwhile, set()
            told = await self._library.read(beginnings, {session_id: some})
            tally.renew(some, told[session_id])
        if self._tallied_now:
            self._tallies[session_id], self._tallied_now = tally, ""
            if len(self._tallies) > MOST_TALLIES:
                del self._tallies[next(iter(self._tallies))]
        row = self._seen.rows.get(rowid)
        if row is not None and row.id == session_id:
            if session_id in self._tallies:
                row.messages = tally.messages
            self.counts.put(row, tally.turns)
            self._seen.rows_changed([rowid])
