"""Keeps the index of a store up to date: builds it, newest first, and follows changes.

A *walk* goes over all messages, the newest first, and indexes those that are not in the index
as they are. The first walk builds the index; later ones, at a slow pace, find what a host's
file has no log of. Between the steps of a walk, changes are followed: in a library by its
``changes`` log, in a host's file by new rows and by the tails of the sessions in use.

Each step is a transaction on the index file. A killed indexer goes on where it was.
"""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from store.engine import changes
from store.engine.changes import Moved
from store.engine.sidecar_follower import HOT_SESSIONS, SidecarFollower
from store.engine.values import text
from store.search.index import blocks, sidecar, term_blocks
from store.search.index.blocks import NewBlock
from store.search.index.documents import (
    TITLE,
    MessageKey,
    at_rowid,
    fingerprint,
    message_of,
    message_texts,
    newest_first,
    title_of,
)
from store.search.index.postings import CAPACITY
from store.search.index.sidecar import (
    EVERYTHING,
    INDEX,
    LARGE_BACKLOG,
    NOTHING,
    number_of,
    set_values,
    value_of,
)

BLOCK_CHARACTERS = 24_000_000
"""A block ends with the message that takes it to so many characters."""
FIRST_DOCUMENTS = 512
"""The first block of a walk is small, so that the newest sessions are found at once."""
FOLLOWED_AT_ONCE_S = 0.5
"""Seconds of work on changes before they are committed."""
RESTED_FROM_S, RESTS = 0.1, 4
"""A session whose changes took longer to index rests so many times as long before the next."""
RECHECK_SLICE_S, RECHECK_REST_S = 0.05, 0.5
CLEARED_EVERY_S = 30.0
"""Seconds between two times that earlier versions of changed messages are overwritten."""
HOT_MESSAGES = 20
"""Newest messages that are looked at of each of the newest sessions of a host's file."""


class _Overtaken(Exception):
    """The index was written while a block was prepared: what was forgotten may be in it."""


@dataclass(slots=True)
class Progress:
    """How far the index is.

    Attributes:
        messages: Messages in the index.
        total: Messages in the store.
        characters: What was indexed since the start of the process.
        whole: Whether the walk has ended, and few changes wait.
    """

    messages: int
    total: int
    characters: int
    whole: bool


@dataclass(slots=True)
class _Walk:
    """A walk over all messages and titles.

    Attributes:
        rowids: As ``newest_first`` returns them.
        building: Whether it fills the index; otherwise it looks for changes, at a slow pace.
        at: How many are done.
        resumes_s: When it may go on.
    """

    rowids: array[int]
    building: bool
    at: int = 0
    resumes_s: float = 0.0


@dataclass(slots=True)
class _Waiting:
    """Changes that are not in the index yet.

    Attributes:
        moved: By session the messages that changed; None where it may be any.
        seqs: By session, the number of the last change in the log before those.
        ready_s: By session, when it may be indexed again.
    """

    moved: Moved = field(default_factory=Moved)
    seqs: dict[str, int] = field(default_factory=dict)
    ready_s: dict[str, float] = field(default_factory=dict)

    def add(self, moved: Moved, seq: int) -> None:
        """Add changes that follow a number in the log."""
        self.moved.merge(moved)
        for session in moved.sessions:
            self.seqs.setdefault(session, seq)

    def ready(self, now: float) -> list[str]:
        """Return the sessions that may be indexed; what changed last comes first."""
        self.ready_s = {each: at for each, at in self.ready_s.items() if at > now}
        return [each for each in reversed(self.moved.sessions) if each not in self.ready_s]


class Indexer(SidecarFollower):
    """Builds and follows the index of one store; ``step`` does some of the work that is due.

    Attributes:
        characters: What was indexed so far.
        unchanged_since_progress: Whether nothing was written since ``progress`` was called.
    """

    def __init__(self, store: Path, *, stopped: Callable[[], bool] = lambda: False) -> None:
        """Open the store and its index.

        Args:
            store: The store's file.
            stopped: Called between messages; True ends a step early, before its commit.

        Raises:
            StoreError: One of them cannot be opened.
        """
        super().__init__(INDEX, store, stopped)
        self._waiting = _Waiting()
        self._walk: _Walk | None = None
        self._total = 0
        self._merged = -1
        self._cleared_until_s = 0.0
        self.characters = 0
        self.unchanged_since_progress = False
        self._start()

    # What is known of the store

    def _start(self) -> None:
        """Begin where the last indexer ended."""
        self._waiting = _Waiting()
        identity = self._identity()
        since = number_of(self.file, "since", NOTHING)
        if value_of(self.file, "store") != identity:
            since = NOTHING
            with sidecar.transaction(self.file):
                set_values(self.file, store=identity, since=NOTHING, seq=0, backlog=0,
                           message_rowid=0, part_rowid=0)  # fmt: skip
        self._seq = number_of(self.file, "seq")
        self._rowids = number_of(self.file, "message_rowid"), number_of(self.file, "part_rowid")
        if since == NOTHING:
            self._note_place()
        elif self._own:
            self._read_log(starting=True)
        else:
            self._look_for_new_rows()
            self._unlogged = True
        if since != EVERYTHING:
            self._walk = self._new_walk(since)
        self._version = self._data_version()

    def _note_place(self) -> None:
        """Have a walk that begins now find all that was written before."""
        self._seq = changes.newest(self.database)
        self._rowids = self._newest_rowids()
        self._settle()

    def _settle(self) -> None:
        """Note up to where changes are in the index."""
        place = {"seq": min(self._waiting.seqs.values(), default=self._seq),
                 "backlog": self.backlog, "total": self._total}  # fmt: skip
        if not self.backlog:
            place["message_rowid"], place["part_rowid"] = self._rowids
        if any(number_of(self.file, name, -1) != value for name, value in place.items()):
            with sidecar.transaction(self.file):
                set_values(self.file, **place)

    def _new_walk(self, since: int) -> _Walk:
        """Return a walk over what was created up to a time."""
        count = self.database.connection.execute("SELECT count(*) FROM chat_messages")
        (self._total,) = count.fetchone()
        building = number_of(self.file, "since", NOTHING) != EVERYTHING
        return _Walk(newest_first(self.database, since), building)

    # Noticing changes

    def _take(self, moved: Moved, seq: int) -> None:
        self._waiting.add(Moved(sessions=moved.sessions), seq)

    def _look_for_new_rows(self) -> None:
        read = self.database.connection.execute
        moved = Moved()
        messages, parts = self._rowids
        for rowid, message, session in read(
            "SELECT rowid, id, session_id FROM chat_messages WHERE rowid > ?", (messages,)
        ):
            moved.add(text(session) or "", text(message) or "")
            messages = max(messages, rowid)
        for rowid, message, session in read(
            "SELECT rowid, message_id, session_id FROM chat_parts WHERE rowid > ?", (parts,)
        ):
            moved.add(text(session) or "", text(message) or "")
            parts = max(parts, rowid)
        self._rowids = messages, parts
        self._waiting.add(moved, self._seq)

    def _look_at_hot_sessions(self) -> None:
        read = self.database.connection.execute
        hot = read("SELECT id FROM chat_sessions ORDER BY updated_at DESC LIMIT ?", (HOT_SESSIONS,))
        sessions = dict.fromkeys(text(row[0]) or "" for row in hot.fetchall())
        moved = Moved()
        for session in [*sessions, *self._waiting.moved.sessions]:
            moved.sessions.setdefault(session, set())
            for (message,) in read(
                "SELECT id FROM chat_messages WHERE session_id = ?"
                " ORDER BY created_at DESC LIMIT ?", (session, HOT_MESSAGES)
            ).fetchall():  # fmt: skip
                moved.add(session, text(message) or "")
        self._waiting.add(moved, self._seq)

    # Working

    def step(self) -> bool:
        """Do some of the work that is due; return whether more is due at once.

        Raises:
            sqlite3.Error: The store or the index cannot be used now.
        """
        try:
            if self._follow():
                return True
            now = time.monotonic()
            if self._walk is None and self._is_recheck_due(now):
                self._unlogged = self._rarely_unlogged = False
                self._walk = self._new_walk(NOTHING)
            if self._walk is not None and now >= self._walk.resumes_s:
                building = self._walk.building
                self._advance(self._walk)
                return building  # Its blocks may be merged next.
            return self._merge()
        except _Overtaken:
            return True

    def _follow(self) -> bool:
        """Index changed messages; return whether some of them are left that need not wait."""
        waiting, now = self._waiting, time.monotonic()
        ready = waiting.ready(now)
        if not ready:
            self._settle()
            return False
        taken = {each: waiting.moved.sessions.pop(each) for each in ready}
        seqs = {each: waiting.seqs.pop(each, self._seq) for each in ready}
        try:
            left = self._index_changes(taken)
        except BaseException:
            left = Moved(sessions=taken)
            raise
        finally:
            waiting.moved.merge(left)
            for session in left.sessions:
                waiting.seqs[session] = min(seqs[session], waiting.seqs.get(session, self._seq))
        self._settle()
        return bool(left)

    def _index_changes(self, taken: dict[str, set[str] | None]) -> Moved:
        """Index messages for a short while, and return what is left of them."""
        started = time.monotonic()
        pass_ = _Pass(self)
        left = Moved()
        wanted: list[MessageKey] = []
        for session, messages in taken.items():
            if self._stopped() or time.monotonic() - started > FOLLOWED_AT_ONCE_S:
                left.sessions[session] = messages
            else:
                wanted += pass_.wanted(session, messages)
        took: dict[str, float] = defaultdict(float)
        wanted.sort(key=lambda each: (each.created_at, each.id), reverse=True)
        for message in wanted:
            begun = time.monotonic()
            if pass_.is_full or self._stopped() or begun - started > FOLLOWED_AT_ONCE_S:
                left.add(message.session_id, message.id)
                continue
            pass_.add(message)
            took[message.session_id] += time.monotonic() - begun
        pass_.commit()
        for session, seconds in took.items():
            if seconds > RESTED_FROM_S:
                self._waiting.ready_s[session] = time.monotonic() + RESTS * seconds
        return left

    def _advance(self, walk: _Walk) -> None:
        """Take a walk one block further, or a short while if it only looks for changes."""
        started = time.monotonic()
        pass_ = _Pass(self)
        at, reached = walk.at, NOTHING
        while at < len(walk.rowids) and not pass_.is_full:
            if self._stopped() or (
                not walk.building and time.monotonic() - started > RECHECK_SLICE_S
            ):
                break
            if walk.building and not walk.at and pass_.block.size >= FIRST_DOCUMENTS:
                break
            found = at_rowid(self.database, walk.rowids[at])
            at += 1
            if found is not None:
                reached = found.created_at
                pass_.add(found)
        ended = at >= len(walk.rowids)
        if ended:
            self._add_vanished(pass_)
        if walk.building and (ended or reached != NOTHING):
            pass_.values["since"] = EVERYTHING if ended else reached
        pass_.commit()
        walk.at = at
        if ended:
            self._walk, self._walked_s = None, time.monotonic()
        elif not walk.building:
            walk.resumes_s = time.monotonic() + RECHECK_REST_S

    def _add_vanished(self, pass_: _Pass) -> None:
        """Have what the store does not have any more removed."""
        last = (-1, -1)
        while True:
            rows = self.file.execute(
                "SELECT m.block, m.place, m.id, s.id FROM message m"
                " JOIN session s ON s.number = m.session"
                " WHERE (m.block, m.place) > (?, ?) ORDER BY m.block, m.place LIMIT 500", last
            ).fetchall()  # fmt: skip
            if not rows:
                return
            last = rows[-1][:2]
            there = set(self._titles_and_messages([row[2:] for row in rows]))
            pass_.gone += [(session, message) for _, _, message, session in rows
                           if (message, session) not in there]  # fmt: skip

    def _titles_and_messages(self, some: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield those of some messages and titles, each with its session, that are there."""
        read = self.database.connection.execute
        messages = [message for message, _ in some if message != TITLE]
        marks = ",".join("?" * len(messages))
        for message, session in read(
            f"SELECT id, session_id FROM chat_messages WHERE id IN ({marks})", messages
        ):
            yield text(message) or "", text(session) or ""
        for message, session in some:
            if message == TITLE and title_of(self.database, session) is not None:
                yield message, session

    def _merge(self) -> bool:
        """Merge blocks if that is due; return whether more of them may be."""
        generation = number_of(self.file, "generation")
        chosen = [] if generation == self._merged else blocks.blocks_to_merge(self.file)
        if not chosen:
            if generation != self._merged and self._give_slots(generation):
                return True
            self._merged = generation
            if self._clear_replaced(generation):
                return True
            self._empty_log()
            return False
        done = blocks.merged(self.file, chosen)
        with sidecar.transaction(self.file):
            self.refuse_if_overtaken(generation)
            blocks.write_merged(self.file, done)
        return True

    def _give_slots(self, generation: int) -> bool:
        """Note the terms of full blocks where all blocks are looked up at once, if that is due."""
        done = term_blocks.added(self.file, blocks.FULL)
        if done is None:
            return False
        with sidecar.transaction(self.file):
            self.refuse_if_overtaken(generation)
            term_blocks.write_added(self.file, done)
        return True

    def _clear_replaced(self, generation: int) -> bool:
        """Overwrite earlier versions of messages in a block, if that is due; whether it was.

        What was edited away may be a secret.
        """
        block = None
        if time.monotonic() >= self._cleared_until_s:
            block = blocks.block_with_replaced(self.file)
            if block is None:
                self._cleared_until_s = time.monotonic() + CLEARED_EVERY_S
        if block is None:
            return False
        with sidecar.transaction(self.file):
            self.refuse_if_overtaken(generation)
            blocks.clear_replaced(self.file, block)
        return True

    def _empty_log(self) -> None:
        """Remove what the write-ahead log of the index still holds of earlier content."""
        log = self.path.with_name(self.path.name + "-wal")
        if log.exists() and log.stat().st_size:
            sidecar.empty_log(self.file)

    def refuse_if_overtaken(self, generation: int) -> None:
        """Raise ``_Overtaken`` if the index was written since a generation was read.

        Otherwise begin the next one; called in the transaction that writes.
        """
        if number_of(self.file, "generation") != generation:
            raise _Overtaken
        set_values(self.file, generation=generation + 1)

    def progress(self) -> Progress:
        """Return how far the index is."""
        self.unchanged_since_progress = True
        (messages,) = self.file.execute("SELECT count(*) FROM message").fetchone()
        since = number_of(self.file, "since", NOTHING)
        return Progress(messages, max(self._total, messages), self.characters,
                        since == EVERYTHING and self.backlog <= LARGE_BACKLOG)  # fmt: skip

    @property
    def backlog(self) -> int:
        """Number of sessions with changes that are not in the index."""
        return len(self._waiting.moved.sessions)

    @property
    def idle(self) -> bool:
        """Whether everything known of is in the index."""
        return not self.backlog and (self._walk is None) and not self._unlogged

    def resume(self) -> None:
        """Have nothing wait for its time any more; a test does not wait."""
        self._waiting.ready_s.clear()
        self._cleared_until_s = 0.0
        self._walked_s, self._unlogged = 0.0, self._unlogged or self._rarely_unlogged
        if self._walk is not None:
            self._walk.resumes_s = 0.0



class _Pass:
    """Messages that are read and then written in one transaction."""

    def __init__(self, indexer: Indexer) -> None:
        self.indexer = indexer
        self.block = NewBlock()
        self.gone: list[tuple[str, str]] = []
        self.values: dict[str, int] = {}
        self.generation = number_of(indexer.file, "generation")

    @property
    def is_full(self) -> bool:
        """Whether what was added is enough for a block."""
        return self.block.size >= CAPACITY or self.block.characters >= BLOCK_CHARACTERS

    def wanted(self, session_id: str, messages: set[str] | None) -> list[MessageKey]:
        """Return which messages of a session to look at; what is gone is noted.

        Args:
            session_id: The session.
            messages: Those that changed; None if it may be any.
        """
        db, index = self.indexer.database, self.indexer.file
        session = blocks.session_number(index, session_id)
        if messages is None:
            read = db.connection.execute
            messages = {text(row[0]) or "" for row in read(
                "SELECT id FROM chat_messages WHERE session_id = ?", (session_id,)
            )}  # fmt: skip
            if session is not None:
                messages.update(message for (message,) in index.execute(
                    "SELECT id FROM message WHERE session = ?", (session,)
                ))  # fmt: skip
        found = []
        for message_id in messages | {TITLE}:
            title = message_id == TITLE
            key = title_of(db, session_id) if title else message_of(db, message_id)
            if key is not None and key.session_id == session_id:
                found.append(key)
            elif session is not None:
                self.gone.append((session_id, message_id))
        return found

    def add(self, message: MessageKey) -> None:
        """Add a message unless the index has it as it is."""
        db, index = self.indexer.database, self.indexer.file
        session = blocks.session_number(index, message.session_id)
        if session is not None:
            entry = blocks.entry_of(index, session, message.id)
            if (
                entry is not None and entry.created_at == message.created_at
                and entry.fingerprint == fingerprint(db, message)
            ):  # fmt: skip
                return
        texts = message_texts(db, message)
        self.block.add(message, texts)
        self.indexer.characters += texts.size

    def commit(self) -> None:
        """Write what was added, in one transaction."""
        index, block = self.indexer.file, self.block
        if not block.size and not self.gone and not self.values:
            return
        postings = block.postings()
        gone: dict[str, list[str]] = defaultdict(list)
        for session_id, message in self.gone:
            gone[session_id].append(message)
        with sidecar.transaction(index):
            self.indexer.refuse_if_overtaken(self.generation)
            for session_id, messages in gone.items():
                session = blocks.session_number(index, session_id)
                if session is not None:
                    blocks.remove_messages(index, session, messages)
            if block.size:
                blocks.write_block(index, block, postings)
            set_values(index, **self.values)
        self.indexer.unchanged_since_progress = False
