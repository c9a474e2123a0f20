"""Watches sources while agents write to them: syncs once, then after every change.

Watching starts before the first sync lists anything, so no change is missed. Where a source
supports it, only appended bytes are read. The result is the same as that of one sync of the
finished files. As a safeguard, everything is also listed from time to time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from store.config import PollFiles
from store.engine.database import Database
from store.engine.server_url import ServerUrl
from store.errors import StoreError
from store.sources.base.protocol import ActivitySource, Problem, Unit
from store.sync import depending, problems, units
from store.sync.engine import Sync, each_target_once
from store.sync.locking import watcher_lock
from store.sync.progress import Progress
from store.sync.roots import units_at, watched_paths
from store.sync.server_places import is_settled
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.units import Job
from store.sync.wanted import nothing_wanted
from store.sync.watch_activity import ActivityBoard, ProcessFinder
from store.sync.watch_events import Events
from store.sync.watch_pace import Pace
from store.sync.watch_paths import WatchedPaths
from store.sync.watch_readers import Followers
from store.sync.watch_recent import LOOK_S, RecentFiles
from store.sync.watch_servers import Answer, ServerPolls
from store.system.clock import Clock, system_clock
from store.system.stopping import Stop

TICK_S = 1.0
"""Seconds between checks for what has no events: killed processes, new places."""
COMING_S = 0.4
"""Seconds between checks for files that were missing, such as the log of a database."""
NEW_FOLDER_S = 0.3
"""A new folder is checked again after this: files may be older than its watch."""
RETRY_S = 3.0
QUIET_PRAGMAS = ("PRAGMA cache_size = -8192", "PRAGMA wal_autocheckpoint = 1000",
                 "PRAGMA shrink_memory")  # fmt: skip

Say = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Watch:
    """A watcher of a store.

    Attributes:
        targets: Returns what to watch; called repeatedly, as places may appear.
        stop: Ends the watcher.
        say: Receives events: ``{"event": "standby" | "watching"}``, ``summary`` with the
            result of the first sync, ``{"event": "synced", "synced": number of sessions,
            "session": the id of one, "at": epoch ms}``, ``{"event": "activity", "session",
            "state", "at"}`` with a null state when a session's process has ended, and
            ``{"event": "trouble", "message"}``, and ``{"event": "server", "server": its URL,
            "reason", "since": epoch ms}`` when a server cannot be read or lets wait, with a
            null reason once it is read again.
        on_progress: Receives the progress of the first sync.
        wanted: As in ``Sync``.
        scope: Name of the targets if they are not the default places.
        poll: Which files to poll beside the system's events: ``auto`` (recently changed
            ones), ``always`` (also new files in all folders), or ``never``.
    """

    database: Database
    settings: Settings
    targets: Callable[[], list[Target]]
    stop: Stop
    say: Say = lambda event: None  # noqa: E731
    on_progress: Callable[[Progress], None] = lambda progress: None
    clock: Clock = system_clock
    wanted: Callable[[], str | None] = nothing_wanted
    scope: str = ""
    poll: PollFiles = "auto"
    followers: Followers = field(default_factory=Followers)
    _pace: Pace = field(default_factory=Pace)
    _polls: ServerPolls = field(default_factory=ServerPolls)
    _silent: dict[Target, str] = field(default_factory=dict)
    _since: dict[Target, int] = field(default_factory=dict)
    _looked_into: dict[str, float] = field(default_factory=dict)
    _process_finder: ProcessFinder | None = None
    _recent: RecentFiles = field(default_factory=RecentFiles)
    _paths: WatchedPaths = field(default_factory=WatchedPaths)
    _first: bool = True
    _anew: bool = False
    _named: list[Target] = field(default_factory=list)
    _targets: list[Target] = field(default_factory=list)
    _file: tuple[int, int] | None = None

    def run(self) -> None:
        """Watch until ``stop`` is set; wait first while another watcher runs.

        Raises:
            StoreError: The store cannot be used, or its file was removed.
        """
        path, self._file = self.database.path, _identity(self.database)
        standby = lambda: self.say({"event": "standby"})  # noqa: E731
        with watcher_lock(path, self.scope, self.stop, standby) as mine:
            if not mine:
                return
            board = ActivityBoard(self.database, self.clock)
            board.clear()
            self._process_finder = ProcessFinder(board)
            try:
                while not self.stop.is_set():
                    self._follow(board)
            finally:
                with contextlib.suppress(StoreError):
                    board.clear()

    def _follow(self, board: ActivityBoard) -> None:
        """Watch the current folders; return when the set of folders has changed."""
        self._named, self._anew = self.targets(), False
        targets = self._targets = each_target_once(self.database, self._named)
        folders = folders_of(targets)
        events, self._paths = Events(folders, self.stop), WatchedPaths(folders)
        self._recent.eager = self._recent.eager or self.poll == "always"
        self._recent.start(folders)
        try:
            self._catch_up(targets)
            self._pace.start(targets, [one for one in targets if _is_polled(one, events)])
            self._polls = ServerPolls(targets)
            for target in targets:
                self._show_activity(board, target)
            self._find_processes(start=True)
            self.say({"event": "watching"})
            ticked = looked = time.monotonic()
            while not self.stop.is_set():
                now = time.monotonic()
                if now - ticked >= TICK_S or events.has_come():
                    ticked = now
                    if not self._tick(board, targets, events):
                        return
                step = COMING_S if events.waits_for_files else TICK_S
                due = min([min(ticked + TICK_S, now + step), looked + LOOK_S, self._pace.due(),
                           self._polls.due(), *self._looked_into.values()])  # fmt: skip
                seen = events.wait(max(0.001, due - now))
                if not seen.ended:
                    self._take(board, targets, self._reported(seen.paths))
                if time.monotonic() - looked >= LOOK_S and self.poll != "never":
                    looked = time.monotonic()
                    self._take(board, targets, self._recent.look())
        finally:
            events.close()
            self._polls.close()

    def _reported(self, paths: frozenset[str]) -> frozenset[str]:
        """Return the paths of events, below the watched folders' own paths."""
        if not paths:
            return paths
        found = self._paths.as_watched(paths)
        self._recent.note_reported(found)
        return found

    def _catch_up(self, targets: Sequence[Target]) -> None:
        sync = self._sync()
        if self._first:
            sync.on_progress = self.on_progress
        summary = sync.run(targets)
        for target in targets:
            for unit in sync.listed(target):
                self._recent.take(unit.stamps)
        if self._first:
            self._first = False
            self.say({"event": "summary", **summary.as_dict()})
        elif sync.changed:
            self._say_changed(sync.changed)
        for pragma in QUIET_PRAGMAS:
            self.database.connection.execute(pragma)

    def _sync(self) -> Sync:
        return Sync(
            self.database, self.settings, self.clock, stopped=self.stop.is_set, wanted=self.wanted,
            reading=self.followers.reading, targets=self._targets,
        )  # fmt: skip

    def _tick(self, board: ActivityBoard, targets: Sequence[Target], events: Events) -> bool:
        """Check what has no events; return whether the folders to watch are unchanged."""
        if _identity(self.database) != self._file:
            raise StoreError(f"{self.database.path} was removed or replaced; the watcher has ended")
        self.followers.drop_idle()
        with self._tried_again(targets):
            if not board.is_empty:
                for target in targets:
                    self._show_activity(board, target)
            self._find_processes()
        same = self.targets() == self._named and not self._anew
        return same and events.are_current(folders_of(targets))

    def _take(
        self, board: ActivityBoard, targets: Sequence[Target], paths: frozenset[str]
    ) -> None:
        """Sync changed paths, and list the roots that are due."""
        now = time.monotonic()
        again = [path for path, at in self._looked_into.items() if at <= now]
        for path in again:
            del self._looked_into[path]
        with self._tried_again(targets):
            for target in targets:
                mine = _below(target, {*paths, *again})
                if mine:
                    self._bring_in(target, mine)
                    self._show_activity(board, target)
                if self._pace.is_due(target):
                    self._list(target)
                    self._show_activity(board, target)
            for answer in self._polls.answers():
                self._take_answer(answer)
        for path in paths:
            if os.path.isdir(path):
                self._looked_into[path] = now + NEW_FOLDER_S

    @contextlib.contextmanager
    def _tried_again(self, targets: Sequence[Target]) -> Iterator[None]:
        """Report errors of the store, such as a full disk, and list everything later."""
        try:
            yield
        except (StoreError, sqlite3.OperationalError) as error:
            self.say({"event": "trouble", "message": str(error)})
            for target in targets:
                self._pace.wanted(target, RETRY_S)

    def _bring_in(self, target: Target, paths: set[str]) -> None:
        source, root = target.source, target.root
        found = units_at(source, root, paths)
        beside = depending.read_with(self.database, source.kind, root, paths)
        went = not self.settings.keep_deleted and not all(map(os.path.lexists, paths))
        if found is None or went or not beside <= {units.key_of(unit) for unit in found}:
            self._pace.wanted(target)
        self._bring_in_moved(target, found or ())

    def _take_answer(self, answer: Answer) -> None:
        """Sync a server's changes, or report that it cannot be read or lets wait."""
        target = answer.target
        if answer.waits is not None:
            self._say_server(target, answer.waits)
            return
        if answer.trouble is not None:
            message = str(answer.trouble)
            if self._silent.get(target) != message:
                found = [Problem(str(target.root), 0, answer.trouble.reason)]
                self._sync().note(target, found)
                self._silent[target] = message
                self.say({"event": "trouble", "message": message})
                seen = problems.first_seen(self.database, target.source.kind, target.root, found)
                self._say_server(target, answer.trouble.reason, seen)
            return
        was_silent = self._silent.pop(target, None) is not None
        if target in self._since:
            self._say_server(target, None)
            del self._since[target]
        if was_silent:
            root = target.root
            if isinstance(root, ServerUrl):
                # It may be another database now, or one that never answered before.
                self._anew = not is_settled(self.database, target.source, root)
            self._list(target)
            self.say({"event": "watching"})
        elif answer.moved is None:
            self._list(target)
        else:
            self._bring_in_moved(target, answer.moved)

    def _say_server(self, target: Target, reason: str | None, seen: int | None = None) -> None:
        """Report that a server cannot be read, lets wait, or is read again.

        Args:
            target: The server.
            reason: Why; None once it is read again.
            seen: When it was first seen, where that is known; else it is now.
        """
        root = target.root
        since = self._since.setdefault(target, self.clock() if seen is None else seen)
        named = root.named if isinstance(root, ServerUrl) else None
        self.say({
            "event": "server", "server": named or str(root), "reason": reason, "since": since,
        })  # fmt: skip

    def _bring_in_moved(self, target: Target, found: Sequence[Unit]) -> None:
        jobs = []
        for unit in found:
            self._recent.take(unit.stamps)
            job = Job(target.source, target.root, unit, None)
            job.stored = units.stored_unit(self.database, job)
            if units.moved(target.source, unit, job.stored, self.settings.excludes):
                jobs.append(job)
        if jobs:
            sync = self._sync()
            # Those that grow are kept in this process; helpers would read each of them whole.
            sync.settings = replace(self.settings, helpers=0)
            sync.bring_in(jobs)
            self._say_changed(sync.changed)

    def _list(self, target: Target) -> None:
        """List a whole root and sync what changed."""
        if target in self._silent:
            with self._pace.measured(target):
                return
        sync = self._sync()
        with self._pace.measured(target):
            jobs = sync.list_moved(target)
        for unit in sync.listed(target):
            self._recent.take(unit.stamps)
        jobs.sort(key=lambda job: (-job.unit.changed_at, job.unit.key))
        sync.bring_in(jobs)
        if jobs:
            self._pace.moved(target)
        self._say_changed(sync.changed)

    def _show_activity(self, board: ActivityBoard, target: Target) -> None:
        source, root = target.source, target.root
        if isinstance(source, ActivitySource) and isinstance(root, Path):
            for session, state in board.show(source.kind, root, source.running(root)):
                self._say_activity(session, state)

    def _find_processes(self, *, start: bool = False) -> None:
        """Look for the processes of sessions that seem to be running."""
        if self._process_finder is not None:
            if start:
                self._process_finder.start()
            for session, state in self._process_finder.look():
                self._say_activity(session, state)

    def _say_activity(self, session: str, state: str | None) -> None:
        self.say({"event": "activity", "session": session, "state": state, "at": self.clock()})

    def _say_changed(self, changed: Sequence[str]) -> None:
        if changed:
            names = list(dict.fromkeys(changed))
            if self._process_finder is not None:
                self._process_finder.moved(names)
            self.say(
                {"event": "synced", "synced": len(names), "session": names[-1], "at": self.clock()}
            )


def folders_of(targets: Iterable[Target]) -> list[Path]:
    """Return the folders to watch, each once, absolute."""
    return list(dict.fromkeys(
        path for target in targets for path in watched_paths(target.source, target.root)
    ))  # fmt: skip


def _is_polled(target: Target, events: Events) -> bool:
    return any(path in events.polled for path in watched_paths(target.source, target.root))


def _below(target: Target, paths: set[str]) -> set[str]:
    tops = [f"{folder}{os.sep}" for folder in watched_paths(target.source, target.root)]
    return {path for path in paths if any((path + os.sep).startswith(top) for top in tops)}


def _identity(database: Database) -> tuple[int, int] | None:
    try:
        stat = database.path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
