"""Maintains ``live_activity``: the current state of sessions and the processes that run them.

Some agents record their state (``ActivitySource``); for others the process is searched. When
a process has ended, its row stays with the state ``gone``, and the session counts as ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from store.activity.attendance import Processes, running_processes
from store.activity.judgement import judged_all, known_of, leave_to_watcher, live_activities
from store.activity.presence import newer_beside
from store.activity.states import ALIVE, GONE, OPEN_STATES
from store.engine.database import Database
from store.engine.values import decoded
from store.ids import derived_session_id
from store.queries import activities
from store.queries.sessions import get
from store.rows import SessionRow
from store.sources.base.protocol import RunningSession
from store.sources.registry import programs
from store.sync.locking import transaction
from store.sync.writer import log_changes, trim_changes
from store.system.clock import Clock, system_clock
from store.system.processes import Process, is_alive, lock_is_held, process_of, this_process

Row = tuple[str, int, str]
"""State, since, and the process as JSON."""
Change = tuple[str, str | None]
"""A session's id and its state now; None if its process has ended."""
LOOK_EVERY_MS = 2_000
"""Interval of the search for the process of a session that has none yet."""


@dataclass(slots=True)
class ActivityBoard:
    """Writes the ``live_activity`` rows of some roots.

    Attributes:
        alive: Returns whether a process runs; None if that is unknown.
    """

    database: Database
    clock: Clock = system_clock
    alive: Callable[[dict[str, object]], bool | None] = is_alive
    _watcher: Process = field(default_factory=this_process)
    _shown: dict[tuple[str, str], dict[str, Row]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no session is known to have a running process."""
        return all(
            state == GONE for rows in self._shown.values() for state, _, _ in rows.values()
        )

    def clear(self) -> None:
        """Delete the rows of this watcher and of watchers that have ended."""
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

    def show(self, kind: str, root: Path, said: Iterable[RunningSession]) -> list[Change]:
        """Store the running sessions that a source reports.

        Args:
            kind: The source's kind.
            root: The source's root.
            said: Its running sessions.

        Returns:
            The sessions whose activity changed.
        """
        before = self._shown.get((kind, str(root)), {})
        rows: dict[str, Row] = {}
        for session in said:
            process = Process(
                session.pid, self._watcher.host, session.started, self._watcher.boot
            ).as_json()
            lives = self.alive(process) is not False
            if not lives and session.state == "idle":
                continue
            name = derived_session_id(kind, session.source_id)
            text = orjson.dumps(process).decode()
            if lives or name not in rows:
                rows[name] = (session.state if lives else GONE, session.since, text)
        return self._put(kind, root, before | self._left(before, rows) | rows, rows)

    def _left(self, before: dict[str, Row], rows: dict[str, Row]) -> dict[str, Row]:
        """Return rows for sessions that are no longer reported: as gone, unless idle."""
        return {
            name: (GONE, since, process)
            for name, (state, since, process) in before.items()
            if name not in rows and state != "idle"
        }

    def _put(
        self, kind: str, root: Path, rows: dict[str, Row], said: dict[str, Row]
    ) -> list[Change]:
        before = self._shown.get((kind, str(root)), {})
        rested = [name for name, row in before.items() if row[0] == "idle" and name not in said]
        rows = {name: row for name, row in rows.items() if name not in rested}
        changed = {name: row for name, row in rows.items() if before.get(name) != row}
        if changed or rested:
            self.write(kind, root, changed, rested)
        self._shown[kind, str(root)] = rows
        told: list[Change] = [
            (name, None if row[0] == GONE else row[0])
            for name, row in changed.items()
            if row[0] != GONE or name in before
        ]
        return told + [(name, None) for name in rested]

    def write(
        self, kind: str, root: Path | str, rows: dict[str, Row], gone: Iterable[str] = ()
    ) -> None:
        """Write some rows and delete others.

        Args:
            kind: The source's kind.
            root: Its root.
            rows: The rows by session id.
            gone: Ids of the sessions whose rows are deleted.
        """
        connection, now = self.database.connection, self.clock()
        watcher, gone = orjson.dumps(self._watcher.as_json()).decode(), list(gone)
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


@dataclass(slots=True)
class ProcessFinder:
    """Finds the processes of sessions whose agents do not record them.

    Attributes:
        processes: Returns the running processes.
    """

    board: ActivityBoard
    processes: Callable[[], Processes] = running_processes
    _open: dict[str, None] = field(default_factory=dict)
    _found: dict[str, Row] = field(default_factory=dict)
    _unseen: set[str] = field(default_factory=set)
    """Sessions that changed without a visible process: it may run in a container."""
    _looked_at: int = 0

    def __post_init__(self) -> None:
        """Let only this watcher search processes; others then rely on ``live_activity``."""
        leave_to_watcher(self.board.database.path)

    def start(self) -> None:
        """Look for the processes of all sessions that seem to be running."""
        database, now = self.board.database, self.board.clock()
        found = activities.recently_active(database, now)
        self.moved(row.id for row in found if row.activity in OPEN_STATES)

    def moved(self, sessions: Iterable[str]) -> None:
        """Look for the processes of sessions that were just written."""
        self._open |= dict.fromkeys(sessions)

    def look(self) -> list[Change]:
        """Update the known processes.

        Returns:
            The sessions whose process has ended.
        """
        wanted: list[SessionRow] = []
        now, found = self.board.clock(), dict[str, tuple[str, Row]]()
        for name in list(self._open):
            row = get(self.board.database, name)
            if row is None or not self._seems_open(row, now):
                del self._open[name]
            elif not self._has_process(name):
                wanted.append(row)
        lost = any(self._state(row.id) == ALIVE for row in wanted)
        if wanted and (lost or now - self._looked_at >= LOOK_EVERY_MS):
            self._looked_at, processes = now, self.processes()
            for row in wanted:
                process = self._look_for(row, processes, now)
                if process is not None:
                    found[row.id] = str(_source(row).get("kind")), process
        for name, (kind, process) in found.items():
            self.board.write(kind, "", {name: process})
            self._found[name] = process
        return [(name, None) for name, (_, process) in found.items() if process[0] == GONE]

    def _state(self, name: str) -> str | None:
        found = self._found.get(name)
        return found[0] if found is not None else None

    def _seems_open(self, row: SessionRow, now: int) -> bool:
        """Return whether a session seems to be running and its process is otherwise unknown."""
        database, mine = self.board.database, self._found.get(row.id)
        live = live_activities(database, [row.id]).get(row.id)
        if _source(row).get("kind") not in programs() or (live is not None and mine is None):
            return False
        if mine is not None and mine[0] == GONE and row.updated_at <= mine[1]:
            return False
        known = known_of(row)
        lock = known.said.get("lock") if known.said is not None else None
        if isinstance(lock, str) and lock_is_held(lock) is not None:
            return False
        if mine is not None and mine[0] == ALIVE:
            # A session with a living process may be quiet for any length of time.
            known = known._replace(live={"state": ALIVE} | this_process().as_json())
        return judged_all(database, [known], now)[row.id][0].state in OPEN_STATES

    def _has_process(self, name: str) -> bool:
        found = self._found.get(name)
        return (
            found is not None and found[0] == ALIVE
            and self.board.alive(orjson.loads(found[2])) is not False
        )

    def _look_for(self, row: SessionRow, processes: Processes, now: int) -> Row | None:
        """Return a row with a session's process, or as gone; None if that is unknown."""
        source = _source(row)
        kind, path = str(source.get("kind")), str(source.get("path"))
        before = self._found.get(row.id)
        was_alive = before is not None and before[0] == ALIVE
        newer = newer_beside(self.board.database, kind, row.workspace_root, row.updated_at)
        for one in processes.of_session(kind, row.workspace_root, [path], (), newer):
            if one.is_sure or not was_alive:
                return ALIVE, now, orjson.dumps(process_of(one.pid).as_json()).decode()
        if before is not None and was_alive:
            return GONE, now, before[2]
        if before is not None and row.updated_at > before[1]:
            self._unseen.add(row.id)
        if row.id in self._unseen:
            return None
        quiet = now - row.updated_at
        over = processes.is_over(kind, row.workspace_root, path, quiet, (), newer)
        return (GONE, now, "{}") if over else None


def _source(row: SessionRow) -> dict[str, object]:
    found = decoded(row.metadata_json).get("source")
    return found if isinstance(found, dict) else {}
