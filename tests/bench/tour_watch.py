"""What a browser holds while it runs, and what its connections do on a server."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from store.engine.opening import open_target
from tests.bench.scale_bench import children

_EVERY_S = 0.25
_SERVER = """
SELECT count(*), coalesce(max(extract(epoch FROM clock_timestamp() - state_change) * 1000)
        FILTER (WHERE state LIKE 'idle in transaction%'), 0),
    (array_agg(query ORDER BY state_change) FILTER (WHERE state LIKE 'idle in transaction%'))[1]
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


class Held(NamedTuple):
    """What a browser held at a moment.

    Attributes:
        memory_mb: Its resident memory.
        helpers_mb: That of the processes that it started.
        threads: Of its own.
        files: That it had open.
        connections: Of all programs to the database, without ours.
        idle_ms: How long one of them was idle in a transaction at most, whenever it was looked.
        idle_after: The statement before that.
    """

    memory_mb: float
    helpers_mb: float
    threads: int
    files: int
    connections: int
    idle_ms: float
    idle_after: str

    def __str__(self) -> str:
        """Say it in a line."""
        return (f"{self.memory_mb:.0f} MB (helpers {self.helpers_mb:.0f}), {self.threads} threads,"
                f" {self.files} open files, {self.connections} connections, idle in a transaction"
                f" {self.idle_ms:.0f} ms at most {self.idle_after[:60]!r}")  # fmt: skip


class Watch:
    """Looks at a browser, and all the time at its server where it has one."""

    def __init__(self, process: int, store: str) -> None:
        """Begin.

        Args:
            process: The browser's.
            store: Its store.
        """
        self._process, self._store = process, store
        self._ended = threading.Event()
        self._connections, self._idle_ms, self._idle_after = 0, 0.0, ""
        self._looking = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        if self._store.startswith("postgresql:"):
            self._looking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._looking.ident is not None:
            self._looking.join()

    def _look(self) -> None:
        server = open_target(self._store, write=False)
        while not self._ended.wait(_EVERY_S):
            ((self._connections, idle, after),) = server.connection.execute(_SERVER).fetchall()
            if idle > self._idle_ms:
                self._idle_ms, self._idle_after = float(idle), " ".join(after.split())
        server.close()

    def held(self) -> Held:
        """Return what is held now."""
        process = Path(f"/proc/{self._process}")
        return Held(_memory_mb(self._process), sum(map(_memory_mb, children(self._process))),
                    len(list((process / "task").iterdir())), len(list((process / "fd").iterdir())),
                    self._connections, self._idle_ms, self._idle_after)  # fmt: skip


def _memory_mb(process: int) -> float:
    try:
        rows = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:  # It has ended meanwhile.
        return 0.0
    found = re.search(r"^Rss:\s+(\d+) kB", rows, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0
