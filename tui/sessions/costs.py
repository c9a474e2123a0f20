"""What the sessions on the screen cost, where their rows do not say it: from kept statistics.

Nothing waits for it. It is read on a thread once the list rests, and again while the keeper of
the statistics has not yet counted what was written to a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from store.queries.listing import ListRow
from tui.kit.later import Later
from tui.sessions.jobs import Jobs
from tui.sessions.turns import Seen

if TYPE_CHECKING:
    from store.stats.costs import SessionCost

READ_AFTER_S = 0.4
"""Seconds after which they are read: not while keys go through the list."""
AGAIN_AFTER_S = 5.0
"""Seconds after which sessions that were not counted yet are looked at again."""
MOST_AGAIN = 24
"""How often that is done until something happens in the list."""
Cost = tuple[float, bool]
"""Dollars, and whether a part of them is an estimate."""


class ListCosts:
    """Reads costs into the rows of sessions that are seen."""

    def __init__(self, path: Path, seen: Seen, jobs: Jobs) -> None:
        """Make a reader that has read nothing.

        Args:
            path: The store's file.
            seen: The sessions on the screen.
            jobs: Runs the reading.
        """
        self._path, self._seen, self._jobs = path, seen, jobs
        self._known: dict[str, tuple[int, Cost | None]] = {}
        self._due: Later | None = None
        self._again = 0

    def fill(self, rows: Iterable[ListRow]) -> None:
        """Write what is known into new rows."""
        for row in rows:
            row.own_cost = self._known.get(row.id, (0, row.own_cost))[1]

    def read_soon(self, after: float = READ_AFTER_S) -> None:
        """Read after some seconds, where the screen has sessions that are not known as they are."""
        self._again = 0
        if self._due is None and self._missing():
            self._due = self._jobs.later(after, self._read)

    @property
    def is_due(self) -> bool:
        """Whether costs are still to be read."""
        return self._due is not None

    def _read(self) -> None:
        self._due = None
        self._jobs.start(self._read_seen, "costs")

    def _missing(self) -> list[ListRow]:
        rows: Mapping[int, ListRow] = self._seen.rows
        seen = (rows.get(rowid) for rowid in self._seen.seen_rowids())
        return [
            row for row in seen
            if row is not None and not row.cost and row.tokens
            and self._known.get(row.id, (0, None))[0] != row.updated_at
        ]  # fmt: skip

    async def _read_seen(self) -> None:
        missing = self._missing()
        if not missing:
            return
        found = await asyncio.to_thread(_costs, self._path, [row.id for row in missing])
        for row in missing:
            cost = found.get(row.id)
            if cost is not None:
                shown = None if cost.usd is None else (cost.usd, cost.is_estimate)
                # Counted before it was written to: shown, and looked at again.
                is_current = cost.updated_at == row.updated_at
                self._known[row.id] = row.updated_at if is_current else 0, shown
        self.fill(missing)
        self._seen.rows_changed(row.rowid for row in missing if row.id in found)
        if self._due is None and self._missing() and self._again < MOST_AGAIN:
            self._again += 1
            self._due = self._jobs.later(AGAIN_AFTER_S, self._read)


def _costs(path: Path, session_ids: list[str]) -> dict[str, SessionCost]:
    # Not needed for the first paint.
    from store.stats.costs import costs_of, is_kept
    from tui.state.prices import price_table

    return costs_of(path, session_ids, price_table()) if is_kept(path) else {}
