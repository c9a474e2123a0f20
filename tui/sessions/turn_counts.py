"""How many turns each session has, as it was counted last."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from store.queries.listing import ListRow

NEVER = -1
"""No session has changed then."""


class TurnCounts:
    """Remembers what was counted: it stands until it is counted again."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._counted: dict[str, tuple[int, int]] = {}

    def forget(self, but: Collection[str] = ()) -> None:
        """Have every session but some counted again; what was counted stands until then."""
        self._counted = {
            name: (counted_at if name in but else NEVER, turns)
            for name, (counted_at, turns) in self._counted.items()
        }

    def forget_one(self, session_id: str) -> None:
        """Have a session counted again when it is seen."""
        if session_id in self._counted:
            self._counted[session_id] = (NEVER, self._counted[session_id][1])

    def waiting(self, rows: Iterable[ListRow | None]) -> bool:
        """Say whether some of these are still to be counted."""
        return any(
            row is not None and self._counted.get(row.id, (NEVER, 0))[0] != row.updated_at
            for row in rows
        )

    def take(self, row: ListRow, turns: int) -> None:
        """Take what was counted of a session."""
        row.turns = turns
        self._counted[row.id] = (row.updated_at, turns)

    def give(self, rows: Iterable[ListRow]) -> list[ListRow]:
        """Put into rows what is known of them; return those that are still to be counted."""
        waiting = []
        for row in rows:
            counted_at, turns = self._counted.get(row.id, (NEVER, row.turns))
            row.turns = turns
            if counted_at != row.updated_at:
                waiting.append(row)
        return waiting
