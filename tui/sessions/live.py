"""The rows of the list while the store is written to; ``order`` follows at its own pace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from store.activity.states import OPEN_STATES
from store.engine.changes import Moved
from store.engine.database import Database
from store.queries import activities
from store.queries.list_options import GROUPS, SORTS
from store.queries.listing import ListRow
from tui.sessions.contents import ListContents
from tui.sessions.filter import ListFilter
from tui.sessions.order import LiveOrder
from tui.sessions.turns import TurnCounter
from tui.sessions.view import PREFETCH, SessionList
from tui.state.library import Library

if TYPE_CHECKING:
    from store.queries.counting import Beginning

MOST_NAMED = 500
"""Where more sessions than this have changed, what is seen is read again instead."""
_PLACED_BY = ("workspace", "parent_id", "archived_at")
"""Fields that decide whether and where a session is in any list."""


def _differ(one: ListRow, other: ListRow, names: Iterable[str]) -> bool:
    return any(getattr(one, name) != getattr(other, name) for name in names)


def _rows(
    db: Database, session_ids: Sequence[str], asked: Mapping[str, Collection[str]],
    uncounted: Sequence[str], now: int,
) -> tuple[dict[int, ListRow], dict[str, list[Beginning]]]:
    """Return rows of the list, and what some messages are now, by session.

    Args:
        db: The store.
        session_ids: Sessions whose messages are counted.
        asked: The messages, by session; these are not counted.
        uncounted: More sessions that are not counted.
        now: The present, epoch ms.
    """
    from store.queries import counting

    told = counting.beginnings(db, asked)
    return activities.rows(db, (), session_ids, now, uncounted=[*asked, *uncounted]), told


class LiveRows:
    """Reads again what the list shows of the sessions that have changed."""

    def __init__(
        self, library: Library, view: SessionList, *, contents: ListContents,
        filter: ListFilter, turns: TurnCounter, order: LiveOrder,
    ) -> None:
        """Follow a list.

        Args:
            library: The store.
            view: Shows the rows.
            contents: What the list is sorted and grouped by.
            filter: Where it is set, each change may change what matches.
            turns: Counts again the turns of what has changed.
            order: Reads the order again where a row may be at another place.
        """
        self._library, self._view, self._contents = library, view, contents
        self._filter, self._turns, self._order = filter, turns, order

    async def look_again(self, moved: Moved) -> None:
        """Read again what the list shows of what has changed; returns when it is shown.

        Raises:
            StoreError: The store is busy or gone.
        """
        view, library = self._view, self._library
        last_counts: Mapping[str, int] = {}
        vague = moved.vague or len(moved.sessions) > MOST_NAMED
        if vague:
            seen = view.seen_rowids(PREFETCH)
            known = [rowid for rowid in seen if rowid in view.rows]
            fresh = await library.read(activities.rows, known, (), library.clock())
            view.keep_rows(seen)
            self._turns.forget()
            self._turns.counts.expire({row.id for row in fresh.values()})
            gone = len(fresh) < len(known)
        else:
            asked = self._turns.tallied(moved)
            others = [session_id for session_id in moved.sessions if session_id not in asked]
            last_counts = self._turns.counted_later(others)
            ids = [session_id for session_id in others if session_id not in last_counts]
            fresh, told = await library.read(_rows, ids, asked, list(last_counts), library.clock())
            gone = len(fresh) < len(moved.sessions)
            for session_id, found in told.items():
                self._turns.renew(session_id, asked[session_id], found)
            if gone:
                # Its children have lost their parent, which no change names.
                await self.look_again(Moved(vague=True))
                return
        reorder = vague or gone or bool(self._filter.words)
        for row in fresh.values():
            row.messages = last_counts.get(row.id, row.messages)
            reorder = self._take(row) or reorder
        view.add_rows(fresh.values())
        if reorder:
            self._order.read_soon()
        self._turns.count_soon(fresh.values())

    def _take(self, row: ListRow) -> bool:
        """Compare a row with what was known; return whether its place may be another now."""
        old = self._view.rows.get(row.rowid)
        if old is None:
            self._turns.counts.expire_one(row.id)
            return True
        # A message may have been hidden or sent; the last count is shown until it is known.
        row.turns, row.own_cost = None if old.outline else old.turns, old.own_cost
        self._turns.written(row)
        query = self._contents.query
        sort, group = SORTS[query.sort], GROUPS[query.group]
        if _differ(old, row, (*_PLACED_BY, *([group.field] if group.field else []))):
            return True
        moved = _differ(old, row, (sort.field,))
        model = self._view.model
        # The newest session stays the first when it grows.
        first = (
            len(model) and model.rowids[0] == row.rowid and sort.newest_first
            and row.updated_at >= old.updated_at
        )
        return moved and not first

    async def look_at_open(self) -> None:
        """Read again what runs or waits on the screen, as its process may have ended."""
        rows = self._view.rows
        shown = [rows[rowid] for rowid in self._view.seen_rowids() if rowid in rows]
        live = {row.id: None for row in shown if row.activity in OPEN_STATES}
        if live:
            await self.look_again(Moved(sessions={name: set() for name in live}))
