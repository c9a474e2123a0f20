"""Follows the sync that runs in a process of its own, in words for the top line."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from store.engine.server_url import Root
    from store.sync.process import Event, Server, SyncProcess, Trouble
    from store.sync.progress import Progress, Summary


PAUSES_S = (1.0, 5.0, 30.0)
"""Before a watcher that ended by itself is started again; the last one again and again."""
EXACT_S = 90
"""Up to so many seconds, the time left is shown in seconds, above in minutes."""


class Syncing:
    """Runs one sync, and the watcher that follows it."""

    def __init__(
        self, store: Path, progress: Callable[[str], None],
        failed: Callable[[str, BaseException | None], None],
        pauses_s: Sequence[float] = PAUSES_S,
        servers: Callable[[str], None] = lambda words: None,
        read: Callable[[bool], None] = lambda elsewhere: None,
    ) -> None:
        """Name the store.

        Args:
            store: The store that is written.
            progress: Called with words about how far the sync is; empty when it has ended.
            failed: Takes a summary and the error.
            pauses_s: Before a watcher is started again.
            servers: Called with words about the servers that cannot be read now; empty once
                all can.
            read: Called once all that was there is read, or could not be, with False; with True
                where another browser's watcher reads it.
        """
        self._store = store
        self._progress = progress
        self._failed = failed
        self._show_servers, self._read = servers, read
        self._servers: dict[str, Server] = {}
        self._process: SyncProcess | None = None
        self._trouble = ""
        self._pauses_s, self._restarts = pauses_s, 0
        self._stopped = asyncio.Event()

    async def run(self, targets: Sequence[str | Root], *, watch: bool = False) -> None:
        """Sync; trouble is reported, not raised.

        Args:
            targets: Sources by path or URL; none means the usual places.
            watch: Whether what agents write later is followed, until ``stop``. One watcher
                serves a store: where another app's does, ours waits to take over.
        """
        while not self._stopped.is_set():
            try:
                await self._follow(targets, watch)
                self._progress("")
            except Exception as error:
                self._progress("")
                self._tell(error, again=watch)
            self._read(False)
            self._servers.clear()
            self._show_servers("")
            if not watch:
                return
            await self._rest()

    async def _follow(self, targets: Sequence[str | Root], watch: bool) -> None:
        start_sync = import_module("store.sync.process").start_sync
        as_root = import_module("store.engine.server_url").as_root
        roots = [as_root(name) if isinstance(name, str) else name for name in targets]
        self._process = await start_sync(self._store, roots, watch=watch)
        assert self._process is not None
        if self._stopped.is_set():
            await self._process.stop()
        async for event in self._process.events():
            self._heed(event)

    async def _rest(self) -> None:
        """Pause before the watcher is started again, once there is a store for it."""
        while not self._stopped.is_set():
            pause = self._pauses_s[min(self._restarts, len(self._pauses_s) - 1)]
            self._restarts += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), pause)
            if self._store.exists():
                return

    def _tell(self, error: Exception, *, again: bool) -> None:
        """Report why a sync ended; of a watcher that cannot start, once."""
        if str(error) != self._trouble:
            self._failed("Sync ended, and starts again" if again else "Sync failed", error)
        self._trouble = str(error)

    def _heed(self, event: Event) -> None:
        kind = type(event).__name__
        if kind == "Progress":
            self._progress(progress_words(cast("Progress", event)))
        elif kind == "Summary":
            self._progress("")
            self._read(False)
            self._report(cast("Summary", event))
        elif kind == "Trouble":
            self._say_once(cast("Trouble", event).message)
        elif kind == "Server":
            self._take_server(cast("Server", event))
        elif kind == "Standby":
            self._progress("")
            self._read(True)
        elif kind == "Watching":
            # Trouble is over: if it comes back, it is reported again.
            self._trouble, self._restarts = "", 0

    def _take_server(self, server: Server) -> None:
        """Keep a server in sight as long as it cannot be read."""
        if server.reason is None:
            self._servers.pop(server.server, None)
        else:
            self._servers[server.server] = server
        self._show_servers(server_words(list(self._servers.values())))

    def _say_once(self, trouble: str) -> None:
        """Report what the watcher tries again and again, once."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._failed(trouble, None)

    def _report(self, summary: Summary) -> None:
        if summary.problems:
            count = summary.problems
            noun = "place" if count == 1 else "places"
            self._failed(
                f"Sync could not read {count:,} {noun}; backscroll sources --problems lists them",
                None,
            )

    def read_first(self, session_id: str) -> None:
        """Ask the sync, where it runs, for a session before all others."""
        if self._process is not None:
            self._process.read_first(session_id)

    async def stop(self) -> None:
        """Break the sync off; what it has done stays done."""
        self._stopped.set()
        if self._process is not None:
            await self._process.stop()


def server_words(servers: Sequence[Server]) -> str:
    """Return which servers cannot be read and since when; empty where all can.

    For example ``db.example.org/hub cannot be reached since 14:02``.
    """
    if not servers:
        return ""
    first = min(servers, key=lambda server: server.since)
    _, _, place = first.server.partition("://")
    place = place.rpartition("@")[2].partition("?")[0].strip("/")
    reason = (first.reason or "").partition(":")[0]
    at = time.localtime(first.since / 1000)
    clock = "%H:%M" if at[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M"
    more = f" (and {len(servers) - 1} more)" if len(servers) > 1 else ""
    return f"{place or 'the server'} {reason} since {time.strftime(clock, at)}{more}"


def progress_words(progress: Progress) -> str:
    """Return how far a sync is, such as ``syncing 120 of 2,000 files, 12 s left``.

    While sessions are listed before they are read: ``listing 120 of 2,000 files``.
    """
    if progress.waiting:
        return "waiting for another sync"
    if not progress.files_total:
        return "syncing"
    if progress.listing or (progress.files_listed and not progress.files_done):
        return f"listing {progress.files_listed:,} of {progress.files_total:,} files"
    words = f"syncing {progress.files_done:,} of {progress.files_total:,} files"
    if progress.eta_s is not None and progress.eta_s >= 1:
        words += f", {_left(progress.eta_s)} left"
    return words


def _left(seconds: float) -> str:
    """Return a time that is no more exact than an estimate can be."""
    return f"{seconds:.0f} s" if seconds < EXACT_S else f"{seconds / 60:.0f} min"
