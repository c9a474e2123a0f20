"""What the top line says of a store: how many, what runs, how fresh it is."""

from __future__ import annotations

from store.queries import listing, summary
from tui.bars import Summary
from tui.library import Library

SECOND = 1_000


def ago(milliseconds: int) -> str:
    """Return a time that has gone by, in words."""
    seconds = max(0, milliseconds) // SECOND
    if seconds < 1:
        return "now"
    if seconds < 60:
        return f"{seconds} s ago"
    if seconds < 3_600:
        return f"{seconds // 60} min ago"
    if seconds < 86_400:
        return f"{seconds // 3_600} h ago"
    return f"{seconds // 86_400} d ago"


class Freshness:
    """Counts a store for the top line.

    Attributes:
        syncing: Words about a sync that runs, such as ``syncing 12 of 80``; empty without.
    """

    def __init__(self, library: Library) -> None:
        """Take the store."""
        self._library = library
        self.syncing = ""

    def at_start(self) -> Summary:
        """Return what can be said before anything is counted."""
        return Summary(store=self._library.name)

    async def summary(self) -> Summary:
        """Count, and say what runs and what waits."""
        library = self._library
        now = library.clock()
        counted = await library.read(summary.totals)
        active = await library.read(listing.recently_active, now)
        from tui.sessions.wording import activity_of

        states = [activity_of(row, now) for row in active]
        return Summary(
            store=library.name, sessions=counted.sessions, sources=counted.sources,
            running=sum(state in ("running", "retrying") for state in states),
            waiting=sum(state.startswith("waiting") for state in states),
            freshness=self.syncing or _fresh(counted, now),
        )


def _fresh(counted: summary.Totals, now: int) -> str:
    if counted.synced_at is not None:
        return f"synced {ago(now - counted.synced_at)}"
    if counted.changed_at is not None:
        return f"changed {ago(now - counted.changed_at)}"
    return ""
