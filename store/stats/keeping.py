"""Keeps the statistics of a store up to date: counts all sessions, and follows changes.

The first time, every session is counted, the newest first. From then on, sessions that changed
are counted again, with those that hold the same answers: in a library by its ``changes`` log. A
host's file has none; there new rows and the newest sessions tell of changes at once, and a
*walk* that counts every session again at a slow pace finds the rest.

Each step is a transaction on the file of statistics. A killed keeper goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from store.engine import changes, sidecars
from store.engine.changes import Moved
from store.engine.companions import beside, size_of
from store.engine.sidecar_follower import HOT_SESSIONS, SidecarFollower
from store.engine.sidecars import number_of, set_values, transaction, value_of
from store.engine.values import number, text
from store.queries.shared_answers import SharedAnswers, shared_answers
from store.stats import counting, tables
from store.stats.facts import SessionFacts, SessionInfo, count_session, session_infos
from store.stats.forgetting import forgotten_elsewhere, take_out
from store.stats.tables import STATISTICS

BUILD_S = 0.3
"""Seconds of counting before the counts are committed."""
RESTED_FROM_S, RESTS = 0.05, 10
"""A session that took longer to count rests so many times as long before the next time."""
RECHECK_SLICE_S, RECHECK_REST_S = 0.05, 1.0


class _Overtaken(Exception):
    """The file was written while sessions were counted: one of them may be forgotten."""


_Counts = tuple[str, SessionInfo | None, SessionFacts | None]
"""A session with what was counted of it; None where it is gone."""


@dataclass(slots=True)
class _Walk:
    """A walk over all sessions, the newest first.

    Attributes:
        sessions: Their ids.
        shared: How answers are shared; None while the counts are built, when each session
            is looked up.
        at: How many are done.
        resumes_s: When it may go on.
    """

    sessions: list[str]
    shared: SharedAnswers | None
    at: int = 0
    resumes_s: float = 0.0


class Counter(SidecarFollower):
    """Counts and follows one store; ``step`` does some of the work that is due.

    Attributes:
        counted: Sessions that were counted by this process.
    """

    def __init__(self, store: Path, *, stopped: Callable[[], bool] = lambda: False) -> None:
        """Open the store and its file of statistics.

        Args:
            store: The store's file.
            stopped: Called between sessions; True ends a step early.

        Raises:
            StoreError: One of them cannot be opened.
        """
        super().__init__(STATISTICS, store, stopped)
        self._changed: dict[str, int] = {}
        self._ready_s: dict[str, float] = {}
        self._walk: _Walk | None = None
        self.counted = 0
        self._start()

    # What is known of the store

    def _start(self) -> None:
        """Begin where the last one ended."""
        self._changed, self._walk = {}, None
        identity = self._identity()
        if value_of(self.file, "store") != identity:
            with transaction(self.file):
                for table in (*tables.COUNTS, "session", "shares", "charge", "name"):
                    self.file.execute(f"DELETE FROM {table}")
                set_values(self.file, store=identity, whole=0, begun=0)
        self._generation = number_of(self.file, "generation")
        self._names = tables.Names(self.file)
        self._seq = number_of(self.file, "seq")
        self._rowids = number_of(self.file, "message_rowid"), number_of(self.file, "part_rowid")
        self._version = self._data_version()
        if not number_of(self.file, "begun"):
            self._begin()
        elif self._own:
            self._read_log(starting=True)
        else:
            self._look_for_new_rows()
            self._unlogged = True
        if not number_of(self.file, "whole"):
            self._walk = _Walk(self._newest_first(), None)
        self._change_uncounted()
        self._take_forgotten_out()

    def _begin(self) -> None:
        """Note up to where changes are counted by what is counted from now on."""
        self._seq = changes.newest(self.database)
        self._rowids = self._newest_rowids()
        shared = shared_answers(self.database)
        with transaction(self.file):
            counting.write_shares(self.file, shared.together)
            set_values(self.file, begun=1)
            self._note_place()

    def _change_uncounted(self) -> None:
        """Have sessions counted that another program left to be counted again."""
        if number_of(self.file, "whole"):
            for (session,) in self.file.execute("SELECT id FROM session WHERE counted = 0"):
                self._changed.setdefault(session, self._seq)

    def _newest_first(self) -> list[str]:
        rows = self.database.connection.execute(
            "SELECT id FROM chat_sessions ORDER BY updated_at DESC, id DESC")
        return [text(row[0]) or "" for row in rows.fetchall()]

    def _note_place(self) -> None:
        """Write up to where changes are counted, within a transaction."""
        set_values(self.file, seq=min(self._changed.values(), default=self._seq))
        if not self._changed:
            messages, parts = self._rowids
            set_values(self.file, message_rowid=messages, part_rowid=parts)

    def _settle(self) -> None:
        if number_of(self.file, "seq") != min(self._changed.values(), default=self._seq) or (
            not self._changed and number_of(self.file, "part_rowid") != self._rowids[1]
        ):
            with transaction(self.file):
                self._note_place()

    # Noticing changes

    def _take(self, moved: Moved, seq: int) -> None:
        self._change(moved.sessions, seq)
        if moved:
            self._take_forgotten_out()

    def _take_forgotten_out(self) -> None:
        """Remove what another machine has deleted from the server for good."""
        found = [session for session in forgotten_elsewhere(self.database)
                 if tables.session_number(self.file, session) is not None]
        if found:
            # ``step`` sees by the generation that the file was written, and goes on with it.
            take_out(self.file, found)

    def _change(self, sessions: Iterable[str], seq: int) -> None:
        for session in sessions:
            self._changed.setdefault(session, seq)

    def _look_for_new_rows(self) -> None:
        if self.database.server is not None:
            return
        read, newest = self.database.connection.execute, self._newest_rowids()
        for table, after in zip(("chat_messages", "chat_parts"), self._rowids, strict=True):
            rows = read(f"SELECT DISTINCT session_id FROM {table} WHERE rowid > ?", (after,))
            self._change([text(row[0]) or "" for row in rows.fetchall()], self._seq)
        self._rowids = newest

    def _look_at_hot_sessions(self) -> None:
        rows = self.database.connection.execute(
            "SELECT id, updated_at FROM chat_sessions ORDER BY updated_at DESC LIMIT ?",
            (HOT_SESSIONS,),
        ).fetchall()
        for session, updated_at in rows:
            known = self.file.execute(
                "SELECT updated_at FROM session WHERE id = ?", (text(session),)).fetchone()
            if known is None or known[0] != number(updated_at):
                self._change([text(session) or ""], self._seq)

    # Working

    def step(self) -> bool:
        """Do some of the work that is due; return whether more is due at once.

        Raises:
            sqlite3.Error: The store or the file cannot be used now.
        """
        try:
            if number_of(self.file, "generation") != self._generation:
                raise _Overtaken
            if self._follow():
                return True
            now = time.monotonic()
            if self._walk is None and self._is_recheck_due(now):
                self._unlogged = self._rarely_unlogged = False
                self._walk = _Walk(self._newest_first(), shared_answers(self.database))
            if self._walk is not None and now >= self._walk.resumes_s:
                self._advance(self._walk)
                return self._walk is not None and not self._walk.resumes_s
            self._settle()
            log = beside(self.path, "-wal")
            if self._walk is None and size_of(log) > 0:
                sidecars.empty_log(self.file)
            return False
        except _Overtaken:
            self._generation = number_of(self.file, "generation")
            self._names = tables.Names(self.file)
            self._change_uncounted()
            return True
        except BaseException:
            # What a transaction that failed has written is not there.
            self._names = tables.Names(self.file)
            raise

    def _follow(self) -> bool:
        """Count sessions that changed, for a short while; return whether some are left."""
        started = time.monotonic()
        self._ready_s = {each: at for each, at in self._ready_s.items() if at > started}
        for session in reversed(list(self._changed)):
            if self._stopped():
                return True
            if session in self._changed and session not in self._ready_s:
                self._recount([session])
                if time.monotonic() - started > BUILD_S:
                    return True
        return False

    def _recount(self, session_ids: list[str]) -> None:
        """Count sessions again, with those that share answers with them."""
        started = time.monotonic()
        # What changes from here on has a later place in the log.
        sessions, shared = counting.shared_around(self.database, self.file, session_ids)
        counts = [
            (session, info, count_session(self.database, info, shared) if info else None)
            for session, info in counting.infos_of(self.database, sorted(sessions))
        ]
        with self._writing():
            self._forget_shares(sessions)
            counting.write_shares(self.file, shared.together)
            for session, info, facts in counts:
                self._write(session, info, facts)
                self._changed.pop(session, None)
            self._note_place()
        took = time.monotonic() - started
        if took > RESTED_FROM_S:
            self._ready_s.update(dict.fromkeys(sessions, time.monotonic() + RESTS * took))

    def _forget_shares(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            place = tables.session_number(self.file, session)
            if place is not None:
                self.file.execute(
                    "DELETE FROM shares WHERE session = ? OR other = ?", (place, place))

    def _write(
        self, session: str, info: SessionInfo | None, facts: SessionFacts | None
    ) -> None:
        if info is not None and facts is not None:
            tables.write_session(self.file, self._names, info, facts)
            self.counted += 1
            return
        place = tables.session_number(self.file, session)
        if place is not None:
            tables.remove_session(self.file, place)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run the block in a transaction, unless another program took sessions out of the file."""
        with transaction(self.file):
            if number_of(self.file, "generation") != self._generation:
                raise _Overtaken
            yield

    def _advance(self, walk: _Walk) -> None:
        """Take a walk a short while further."""
        started, begun = time.monotonic(), walk.at
        limit = BUILD_S if walk.shared is None or self._own else RECHECK_SLICE_S
        counts: list[_Counts] = []
        while walk.at < len(walk.sessions) and not self._stopped():
            if walk.at > begun and time.monotonic() - started > limit:
                break
            session = walk.sessions[walk.at]
            walk.at += 1
            if walk.shared is None and self._is_counted(session):
                continue
            if walk.shared is None and len(counting.connected(self.file, [session])) > 1:
                self._recount([session])
                continue
            for info in session_infos(self.database, [session]):
                facts = count_session(self.database, info, walk.shared or SharedAnswers())
                counts.append((session, info, facts))
        ended = walk.at >= len(walk.sessions)
        try:
            self._write_walked(walk, counts, ended=ended)
        except _Overtaken:
            walk.at = begun
            raise
        if ended:
            self._walk, self._walked_s = None, time.monotonic()
            self._change_uncounted()
        elif walk.shared is not None and not self._own:
            walk.resumes_s = time.monotonic() + RECHECK_REST_S

    def _write_walked(
        self, walk: _Walk, counts: list[_Counts],
        *, ended: bool,
    ) -> None:  # fmt: skip
        with self._writing():
            for each in counts:
                self._write(*each)
            if not ended:
                return
            if walk.shared is not None:
                self._write_all_shares(walk.shared)
            for session in self._vanished():
                self._write(session, None, None)
            set_values(self.file, whole=1)

    def _is_counted(self, session: str) -> bool:
        row = self.file.execute("SELECT counted FROM session WHERE id = ?", (session,)).fetchone()
        return row is not None and bool(row[0])

    def _write_all_shares(self, shared: SharedAnswers) -> None:
        self.file.execute("DELETE FROM shares")
        counting.write_shares(self.file, shared.together)

    def _vanished(self) -> Iterator[str]:
        """Yield the sessions of the file that the store does not have any more."""
        there = set(self._newest_first())
        for (session,) in self.file.execute("SELECT id FROM session").fetchall():
            if session not in there:
                yield session

    @property
    def idle(self) -> bool:
        """Whether everything known of is counted."""
        return not self._changed and self._walk is None and not self._unlogged

    def resume(self) -> None:
        """Have nothing wait for its time any more; a test does not wait."""
        self._ready_s.clear()
        self._walked_s, self._unlogged = 0.0, self._unlogged or self._rarely_unlogged
        if self._walk is not None:
            self._walk.resumes_s = 0.0
