"""Keeps the search index and the statistics of the store up to date while the app runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from store.engine.server_url import ServerUrl
    from store.upkeep.process import UpkeepProcess, UpkeepTrouble

PAUSES_S = (1.0, 5.0, 30.0)
"""Before an upkeep that ended by itself is started again; the last one again and again."""


class Indexing:
    """Runs the upkeep of a store. One process does it: another one waits for its end."""

    def __init__(
        self, store: Path, failed: Callable[[str, BaseException | None], None],
        pauses_s: Sequence[float] = PAUSES_S, *, server: ServerUrl | None = None,
    ) -> None:
        """Name the store.

        Args:
            store: The store that is indexed.
            failed: Takes a summary and the error; each trouble is reported once.
            pauses_s: Before an indexer is started again.
            server: The URL of a store on a server.
        """
        self._store, self._failed, self._pauses_s = store, failed, pauses_s
        self._server = server
        self._process: UpkeepProcess | None = None
        self._stopped = asyncio.Event()
        self._trouble = ""

    async def run(self) -> None:
        """Index until ``stop``; trouble is reported, not raised."""
        ended = 0
        while not self._stopped.is_set():
            try:
                await self._follow()
            except Exception as error:
                self._report("The search index and the statistics are not kept up to date", error)
            pause = self._pauses_s[min(ended, len(self._pauses_s) - 1)]
            ended += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), pause)

    async def _follow(self) -> None:
        if self._server is None and not self._store.exists():
            return
        start_upkeep = import_module("store.upkeep.process").start_upkeep
        self._process = await start_upkeep(self._server or self._store)
        assert self._process is not None
        if self._stopped.is_set():
            await self._process.stop()
        async for event in self._process.events():
            if type(event).__name__ == "UpkeepTrouble":
                waits = cast("UpkeepTrouble", event)
                self._report(f"The search index or the statistics wait: {waits.message}", None)
            else:
                self._trouble = ""

    def _report(self, summary: str, error: BaseException | None) -> None:
        said = f"{summary}: {error}"
        if said != self._trouble:
            self._trouble = said
            self._failed(summary, error)

    async def stop(self) -> None:
        """Stop the indexer; what it has indexed is kept."""
        self._stopped.set()
        if self._process is not None:
            await self._process.stop()
