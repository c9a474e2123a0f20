"""A watcher in a thread, for tests of sources on servers."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store.engine.database import open_database
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.watch import Watch
from store.system.stopping import Stop

PATIENCE_S = 120


class Following:
    """A watcher in a thread, and what it says."""

    def __init__(self, library: Path, target: Target) -> None:
        self.target = target
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._stop = Stop()
        self._path = library
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        library = open_database(self._path, create=True)
        try:
            settings = Settings(helpers=0)
            Watch(library, settings, lambda: [self.target], self._stop, say=self._said.put).run()
        finally:
            library.close()

    def until(self, event: str) -> dict[str, Any]:
        """Wait for an event; others that come before it are dropped."""
        while True:
            said = self._said.get(timeout=PATIENCE_S)
            if said["event"] == event:
                return said

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


@contextlib.contextmanager
def following(library: Path, target: Target) -> Iterator[Following]:
    watcher = Following(library, target)
    try:
        watcher.until("watching")
        yield watcher
    finally:
        watcher.end()
