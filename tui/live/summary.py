"""Counts a store for the top line: how many sessions, which run, how fresh it is."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.screen import Screen

from store.activity.states import OPEN_STATES
from store.errors import StoreError
from store.queries import activities
from store.queries.listing import ListRow
from store.queries.summary import Totals, totals
from store.system.records import NamedTuple
from tui.kit.later import Later
from tui.live.polling import Health
from tui.messages import ProblemOccurred
from tui.state.library import Library

SECOND = 1_000
COUNTED_EVERY_S = 1.0
"""At least this long between two counts while somebody writes."""
_TROUBLE = {"busy": "store busy", "gone": "store is gone", "failed": "store cannot be read",
            "waits": "store is locked"}


def ago(milliseconds: int) -> str:
    """Return a duration in words, such as ``5 s ago``."""
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


class Summary(NamedTuple):
    """The content of the top line.

    Attributes:
        sessions: Sessions of the store; None while they are not counted.
        archived: How many of them are archived.
        sources: Kinds of sources that they came from; None where unknown.
        running: Sessions that run.
        waiting: Sessions of the last day that wait for their user.
        freshness: How fresh the store is, such as ``synced 2 s ago``.
        trouble: Why what is shown may be old, and how old it is; empty where it is not.
        read_only: Whether nothing can be written to the store.
    """

    store: str = ""
    sessions: int | None = None
    archived: int = 0
    sources: int | None = None
    running: int = 0
    waiting: int = 0
    freshness: str = ""
    trouble: str = ""
    read_only: bool = False


class StoreCounter:
    """Counts a store for the top line, at a pace.

    Attributes:
        syncing: Words about a sync that runs, such as ``syncing 12 of 80``; empty without.
        servers: Words about servers that cannot be read now; empty without.
        moved_at: Epoch ms of the last write that was shown; 0 before the first.
    """

    def __init__(
        self, screen: Screen[None], library: Library, *,
        counted: Callable[[list[ListRow]], None], busy: Callable[[], None],
    ) -> None:
        """Make a counter that has counted nothing.

        Args:
            screen: Runs the timer and the worker.
            library: The store.
            counted: Called after each count, with the sessions that are active.
            busy: Called where the store was busy.
        """
        self._screen, self._library = screen, library
        self._tell, self._busy = counted, busy
        self.syncing = ""
        self.servers = ""
        self.moved_at = 0
        self._counted: Totals | None = None
        self._active: list[ListRow] = []
        self._counted_at = 0.0
        self._due: Later | None = None

    @property
    def lives(self) -> bool:
        """Whether a session was seen that runs or waits, so that it may have ended since."""
        return any(row.activity in OPEN_STATES for row in self._active)

    @property
    def is_due(self) -> bool:
        """Whether a count waits for its time."""
        return self._due is not None

    @property
    def running(self) -> int:
        """How many sessions run, as counted last."""
        return sum(row.activity in ("running", "retrying") for row in self._active)

    def count_soon(self) -> None:
        """Count, at once where the last count is long enough ago."""
        if self._due is not None:
            return
        pause = self._counted_at + COUNTED_EVERY_S - time.monotonic()
        if pause <= 0:
            self.count_now()
        else:
            self._due = Later(self._screen, pause, self.count_now)

    def count_now(self) -> None:
        """Count at once."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        self._counted_at = time.monotonic()
        self._screen.run_worker(
            # A coroutine is made only when it runs: another may take its place.
            self._count, group="summary",  # type: ignore[arg-type]
            exclusive=True, exit_on_error=False,
        )

    async def _count(self) -> None:
        library = self._library
        try:
            self._counted = await library.read(totals)
            self._active = await library.read(activities.recently_active, library.clock())
        except StoreError:
            self._busy()
        except Exception as error:
            self._screen.post_message(ProblemOccurred("The store could not be counted", error))
        else:
            self._tell(self._active)

    def summary(self, health: Health) -> Summary:
        """Return what was counted last, and how fresh it is.

        Args:
            health: Whether the store can be read.
        """
        library, counted = self._library, self._counted
        now = library.clock()
        read_only = library.no_change is not None
        trouble = _TROUBLE.get(health.state)
        if health.state == "waits":
            trouble = f"server {health.reason}"
        elif trouble is not None and library.database.server is not None:
            # The rest of the reason may be long; a read that failed says none.
            said = health.reason.partition(":")[0] or "cannot be read"
            trouble = f"server {said}, trying again"
        if trouble is not None:
            trouble = f"{trouble}, shown as of {ago(now - health.since)}"
        trouble = trouble or self.servers
        if counted is None:
            return Summary(store=library.name, trouble=trouble, read_only=read_only)
        states = [row.activity or "idle" for row in self._active]
        return Summary(
            store=library.name, sessions=counted.sessions, archived=counted.archived,
            sources=counted.sources, read_only=read_only,
            running=self.running,
            waiting=sum(state.startswith("waiting") for state in states),
            freshness=self.syncing or self._fresh(counted, now), trouble=trouble,
        )

    def _fresh(self, counted: Totals, now: int) -> str:
        if counted.synced_at is not None:
            return f"synced {ago(now - counted.synced_at)}"
        # A part that grows moves no time of its session.
        changed = max(counted.changed_at or 0, self.moved_at)
        return f"changed {ago(now - changed)}" if changed else ""
