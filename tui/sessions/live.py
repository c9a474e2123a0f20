"""The session list as it happens: rows at once, the order at a slower pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from textual.timer import Timer

from store.activity.states import OPEN_STATES
from store.engine.changes import Moved
from store.errors import StoreError
from store.queries import activities
from store.queries.list_options import GROUPS, SORTS
from store.queries.listing import ListRow
from tui.messages import ProblemOccurred
from tui.sessions.pane import SessionListPane
from tui.sessions.view import PREFETCH, SessionList

ORDER_EVERY_S = 0.25
"""At least this long between two readings of the whole order."""
ORDER_SHARE = 6
"""So many times as long as such a reading took is waited before the next."""
RESTED_S = 0.6
"""The order stays as it is while the selection is being moved, and so long after it."""
AGAIN_EVERY_S = 1.0
"""Pause before the order is read again that a store which is busy or gone did not give."""
TOLD_AFTER = 3
"""Such failures in a row, of a store that is there, after which the user is told."""
COUNT_EVERY_S = 1.0
COUNTED_IN_A_READ = 500
"""Messages whose turns are counted in one read: some ms."""
COUNT_REST_SHARE = 9
"""So many times as long as such a read took is rested before the next."""
MOST_TOLD = 500
"""Of more sessions than this, what is seen is read again instead."""
_PLACED_BY = ("workspace", "parent_id", "archived_at")
"""Fields that decide whether and where a session is in any list."""


def _differ(one: ListRow, other: ListRow, names: Iterable[str]) -> bool:
    return any(getattr(one, name) != getattr(other, name) for name in names)


class LiveListPane(SessionListPane):
    """The session list with its live view."""

    _order_due: Timer | None = None
    _order_running = False
    _order_again = False
    _order_cost = 0.0
    _ordered_at = 0.0
    _order_failures = 0
    _moved_at = 0.0
    _count_due: Timer | None = None
    _recount: dict[str, int]
    _recounting: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make the pane; nothing is to be counted again yet."""
        super().__init__(*args, **kwargs)
        self._recount, self._recounting = {}, False

    async def look_again(self, moved: Moved) -> None:
        """Read again what the list shows of what moved; returns when it is shown.

        Raises:
            StoreError: The store is busy or gone.
        """
        view = self.view
        vague = moved.vague or len(moved.sessions) > MOST_TOLD
        seen = view.seen_rowids(PREFETCH)
        if vague:
            known = [rowid for rowid in seen if rowid in view.rows]
            fresh = await self.library.read(activities.rows, known, (), self.library.clock())
            view.keep_rows(seen)
            self._counted.forget({row.id for row in fresh.values()})
            gone = len(fresh) < len(known)
        else:
            ids = list(moved.sessions)
            fresh = await self.library.read(activities.rows, (), ids, self.library.clock())
            gone = len(fresh) < len(ids)
            if gone:
                # Its children have lost their parent, of which nobody tells.
                await self.look_again(Moved(vague=True))
                return
        reorder = vague or gone or bool(self.filter_text.strip())
        for row in fresh.values():
            reorder = self._take(row) or reorder
        view.add_rows(fresh.values())
        if reorder:
            self._order_soon()
        if self._count_due is None and (
            self._recount or any(row.turns is None for row in fresh.values())
        ):
            self._count_due = self.set_timer(COUNT_EVERY_S, self.count_now)

    def _take(self, row: ListRow) -> bool:
        """Compare a row with what was known of it; say whether it may stand elsewhere now."""
        old = self.view.rows.get(row.rowid)
        if old is None:
            self._counted.forget_one(row.id)
            return True
        # A message may have been hidden or sent. What was counted last stands until then.
        self._recount[row.id] = row.rowid
        row.turns = old.turns
        sort, group = SORTS[self.list_query.sort], GROUPS[self.list_query.group]
        if _differ(old, row, (*_PLACED_BY, *([group.field] if group.field else []))):
            return True
        moved = _differ(old, row, (sort.field,))
        model = self.view.model
        # What stands first of all stays there when it grows.
        first = (
            len(model) and model.rowids[0] == row.rowid and sort.field == "updated_at"
            and row.updated_at >= old.updated_at
        )
        return moved and not first

    @property
    def count_is_due(self) -> bool:
        """Whether turns are still to be counted again."""
        return self._count_due is not None or bool(self._recount) or self._recounting

    def count_now(self) -> None:
        """Count the turns of what was written, without waiting for it to rest."""
        if self._count_due is not None:
            self._count_due.stop()
            self._count_due = None
        self._count_turns()
        if self._recount and not self._recounting:
            self._work(self._count_again, "recount")

    async def _count_again(self) -> None:
        self._recounting = True
        try:
            while self._recount:
                session_id, rowid = next(iter(self._recount.items()))
                # At first: what is written while it is counted is counted once more.
                del self._recount[session_id]
                await self._count(session_id, rowid)
        finally:
            self._recounting = False

    async def _count(self, session_id: str, rowid: int) -> None:
        """Count the turns of a session, in small reads with rests between."""
        from store.queries.counting import Counts, add_counts

        counted, after = Counts(), None
        while True:
            started = time.perf_counter()
            after = await self.library.read(
                add_counts, session_id, counted, after, COUNTED_IN_A_READ)
            if after is None:
                break
            await asyncio.sleep(COUNT_REST_SHARE * (time.perf_counter() - started))
        row = self.view.rows.get(rowid)
        if row is not None and row.id == session_id:
            self._counted.take(row, counted.turns)
            self.view.rows_changed([rowid])

    # The order

    def _order_soon(self) -> None:
        if self._order_running:
            self._order_again = True
        elif self._order_due is None:
            now = time.monotonic()
            pause = max(
                self._ordered_at + max(ORDER_EVERY_S, ORDER_SHARE * self._order_cost),
                self._moved_at + RESTED_S,
            ) - now
            if pause <= 0:
                self.order_now()
            else:
                self._order_due = self.set_timer(pause, self._order_when_rested)

    def _order_when_rested(self) -> None:
        self._order_due = None
        self._order_soon()

    @property
    def order_is_due(self) -> bool:
        """Whether the order is still to be read again."""
        return self._order_due is not None or self._order_running or self._order_again

    def order_now(self) -> None:
        """Read the whole list again; the selection stays on its session."""
        if self._order_due is not None:
            self._order_due.stop()
            self._order_due = None
        self._order_again = False
        self.run_worker(self._order(), group="order", exit_on_error=False)

    async def _order(self) -> None:
        self._order_running, started = True, time.monotonic()
        try:
            await self._reload()
            self._order_failures = 0
        except StoreError as error:
            self._order_failed(error)
        except Exception as error:
            self._tell(error)
        finally:
            self._order_running = False
            self._ordered_at = time.monotonic()
            self._order_cost = self._ordered_at - started
        if self._order_again:
            self._order_again = False
            self._order_soon()

    def _order_failed(self, error: StoreError) -> None:
        """Try again: the store is busy or gone for a while, as the top line says."""
        self._order_failures += 1
        if self._order_failures == TOLD_AFTER and self.library.path.exists():
            self._tell(error)
        if self._order_due is None:
            self._order_due = self.set_timer(AGAIN_EVERY_S, self._order_when_rested)

    def _tell(self, error: Exception) -> None:
        self.post_message(ProblemOccurred("The session list could not be read", error))

    def on_session_list_moved(self, event: SessionList.Moved) -> None:
        """Keep the order still while the selection is being moved."""
        self._moved_at = time.monotonic()

    # Time

    def time_went_by(self) -> None:
        """Paint the ages anew."""
        self.view.refresh()

    def look_at_open(self) -> None:
        """Read again what runs or waits on the screen, as its process may have ended."""
        rows = [self.view.rows[r] for r in self.view.seen_rowids() if r in self.view.rows]
        live = {row.id: None for row in rows if row.activity in OPEN_STATES}
        if live:
            moved = Moved(sessions=dict.fromkeys(live))
            self._work(lambda: self.look_again(moved), "time")
