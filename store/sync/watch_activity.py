"""What sources say that their sessions do now, beside the sessions in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from store.clock import Clock, system_clock
from store.database import Database
from store.ids import derived_session_id
from store.processes import Process, is_alive, this_process
from store.sources.protocol import RunningSession
from store.sync.locking import transaction
from store.sync.writer import log_changes, trim_changes

Row = tuple[str, int, str]
"""State, since, and the process as JSON."""


@dataclass(slots=True)
class ActivityBoard:
    """Keeps ``live_activity`` of some roots as their sources say it.

    Attributes:
        alive: Says whether a process runs; None where that cannot be told.
    """

    database: Database
    clock: Clock = system_clock
    alive: Callable[[dict[str, object]], bool | None] = is_alive
    _watcher: Process = field(default_factory=this_process)
    _shown: dict[tuple[str, str], dict[str, Row]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no session runs."""
        return not any(self._shown.values())

    def clear(self) -> None:
        """Take away what this watcher showed, and what those that have ended left behind."""
        connection = self.database.connection
        with transaction(connection, self.database.path):
            rows = connection.execute("SELECT session_id, watcher_json FROM live_activity")
            for session_id, watcher in rows.fetchall():
                process = orjson.loads(watcher)
                if process == self._watcher.as_json() or self.alive(process) is False:
                    connection.execute(
                        "DELETE FROM live_activity WHERE session_id = ?", (session_id,)
                    )
                    log_changes(self.database, session_id, (), self.clock)
        self._shown.clear()

    def show(
        self, kind: str, root: Path, said: Iterable[RunningSession]
    ) -> list[tuple[str, str | None]]:
        """Make the store say what a source says, but for processes that have ended.

        Returns:
            The sessions whose activity changed, with the new state; None where nobody
            runs them any more.
        """
        rows = {}
        for session in said:
            process = Process(
                session.pid, self._watcher.host, session.started, self._watcher.boot
            ).as_json()
            if self.alive(process) is not False:
                text = orjson.dumps(process).decode()
                name = derived_session_id(kind, session.source_id)
                rows[name] = (session.state, session.since, text)
        before = self._shown.get((kind, str(root)), {})
        changed = [name for name, row in rows.items() if before.get(name) != row]
        gone = [name for name in before if name not in rows]
        if changed or gone:
            self._write(kind, root, {name: rows[name] for name in changed}, gone)
        self._shown[kind, str(root)] = rows
        return [(name, rows[name][0]) for name in changed] + [(name, None) for name in gone]

    def _write(self, kind: str, root: Path, rows: dict[str, Row], gone: list[str]) -> None:
        connection, now = self.database.connection, self.clock()
        watcher = orjson.dumps(self._watcher.as_json()).decode()
        with transaction(connection, self.database.path):
            connection.executemany(
                "DELETE FROM live_activity WHERE session_id = ?", ((name,) for name in gone)
            )
            connection.executemany(
                "INSERT OR REPLACE INTO live_activity(session_id, kind, root, state, since, "
                "process_json, watcher_json, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (name, kind, str(root), state, since, process, watcher, now)
                    for name, (state, since, process) in rows.items()
                ),
            )
            for name in (*rows, *gone):
                log_changes(self.database, name, (), self.clock)
            trim_changes(self.database)
