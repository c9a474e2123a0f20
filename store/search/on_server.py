"""Which messages a search looks at in a store on a server, newest first.

The server leaves out what cannot have the words. It goes through all messages in windows, as many
in one statement as it does in a moment. Where its index of words is there, and the first window
says that the words are rare, the index finds the rest in one statement.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from store.engine.database import Database
from store.engine.server.searched import (
    LONG_ENOUGH,
    folded,
    grows,
    indexes_of,
    odd,
    pieces,
    unindexed,
)
from store.engine.values import number, text
from store.language.matching import fold, index_form
from store.queries.messages import LAST_CODE_POINT
from store.search.hits import Place
from store.search.index.reading import Candidate
from store.search.verifying import Verifier
from store.search.walking import NEWEST, Pause, scan
from store.text.stored_json import array_of

NO_INDEX = (
    "the server has no index of words: it needs the extension pg_trgm (CREATE EXTENSION pg_trgm);"
    " the next `backscroll sync` by a role that owns the tables makes the index then"
)
FEW_SESSIONS = 200
"""So many sessions are read one by one."""
_MOST_BOUND = 5_000
"""So many sessions are named to the server; else all messages are looked at."""
FIRST_WINDOW, LARGEST_WINDOW = 100, 20_000
_WINDOW_S = 0.15
"""How long a statement should take: a search that is left ends with it."""
_RARE = 20_000
"""Messages with the words, up to which the index is asked."""
_INDEX_S = 20
"""How long the index may take; then all messages are gone through."""


class OnServer:
    """What a search looks at in a store on a server.

    Attributes:
        looked: Messages that were looked at so far.
        helps: Whether an index of words is used.
        why_slow: Why a search that takes too long does.
    """

    def __init__(self, db: Database, verifier: Verifier, texts: Sequence[str]) -> None:
        """Prepare to look.

        Args:
            db: The store.
            verifier: What is asked.
            texts: Words, phrases and names that each message with a hit holds.
        """
        self._db, self._verifier = db, verifier
        there = indexes_of(db.remote)
        self._newest = there.newest
        self._piece = _longest(texts) if there.folds else ""
        self.looked = 0
        self.helps = there.words and len(self._piece) >= LONG_ENOUGH and (
            there.letters or self._piece.isascii())
        if not self._piece:
            self.why_slow = "no word of the query can be looked up on the server"
        else:
            self.why_slow = "it took too long" if there.words else NO_INDEX

    def candidates(self, before: Place | None) -> Iterator[Candidate]:
        """Yield messages that may have hits, and titles, newest first.

        Args:
            before: Where to start; None for the newest.
        """
        asks, wanted = self._verifier.asks, self._verifier.wanted
        newest = min(NEWEST if before is None else before.created_at, asks.before - 1)
        rows = self._db.connection.execute(
            f"SELECT s.id FROM chat_sessions s WHERE {wanted.condition} LIMIT {_MOST_BOUND}",
            wanted.values).fetchall()
        (every,) = self._db.connection.execute(
            "SELECT count(*) FROM"
            f" (SELECT 1 FROM chat_sessions LIMIT {_MOST_BOUND}) AS few").fetchone()
        ids = [text(row[0]) or "" for row in rows]
        if asks.parts and (len(ids) <= FEW_SESSIONS < every or not self._newest):
            return self._counted(scan(
                self._db, wanted.condition, wanted.values, newest=newest, titles=asks.titles,
                test=self._may_hold("m.id"), values_of_test=self._needles))
        titles = scan(
            self._db, wanted.condition, wanted.values, newest=newest, parts=False,
            titles=asks.titles)
        if not asks.parts:
            return titles
        named = ids if len(ids) < every else None
        return heapq.merge(titles, self._messages(newest, named), key=lambda one: -one.created_at)

    def _counted(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        for candidate in candidates:
            self.looked += candidate.message_id is not None
            yield candidate

    def _messages(self, newest: int, sessions: list[str] | None) -> Iterator[Candidate]:
        place: tuple[int, str] = newest, LAST_CODE_POINT
        size, asked = FIRST_WINDOW, not self.helps
        while True:
            started = time.monotonic()
            rows = self._window(place, sessions, size)
            took = time.monotonic() - started
            found = [row for row in rows if row[3]]
            yield from map(_candidate, found)
            self.looked += len(rows)
            if len(rows) < size:
                return
            place = number(rows[-1][2]), text(rows[-1][1]) or ""
            yield Pause("", None, place[0])
            if not asked and len(found) * self._total <= _RARE * len(rows):
                asked = True
                rest = self._indexed(place, sessions)
                if rest is not None:
                    yield from map(_candidate, rest)
                    return
            fitting = int(size * _WINDOW_S / max(took, 0.001))
            size = min(max(fitting, size // 2, 1), 2 * size, LARGEST_WINDOW)

    @cached_property
    def _total(self) -> int:
        """About how many messages there are; to count them takes longer than the search."""
        (plan,) = self._db.connection.execute(
            "EXPLAIN (FORMAT JSON) SELECT 1 FROM chat_messages").fetchone()
        return int(json.loads(plan)[0]["Plan"]["Plan Rows"])

    def _window(
        self, place: tuple[int, str], sessions: list[str] | None, size: int
    ) -> list[tuple[Any, ...]]:
        """Return the next messages, each with whether it may have a hit."""
        of_sessions, ids = self._of_sessions("w", sessions)
        return self._db.connection.execute(
            "WITH w AS MATERIALIZED (SELECT m.session_id, m.id, m.created_at FROM chat_messages m"
            " WHERE (m.created_at, m.id) < (?, ?) AND m.created_at >= ?"
            " ORDER BY m.created_at DESC, m.id DESC LIMIT ?)"
            f" SELECT w.session_id, w.id, w.created_at, {of_sessions} AND {self._may_hold('w.id')}"
            " FROM w ORDER BY w.created_at DESC, w.id DESC",
            (*place, self._oldest, size, *ids, *self._needles),
        ).fetchall()

    def _indexed(
        self, place: tuple[int, str], sessions: list[str] | None
    ) -> list[tuple[Any, ...]] | None:
        """Return all further messages that may have hits; None where that takes too long."""
        from store.engine.server.errors import ServerError

        of_sessions, ids = self._of_sessions("m", sessions)
        connection = self._db.connection
        connection.execute(f"BEGIN; SET LOCAL statement_timeout = '{_INDEX_S}s'")
        try:
            return connection.execute(
                "WITH found AS MATERIALIZED (SELECT p.message_id FROM chat_parts p"
                f" WHERE {folded('p.data_json')} LIKE ? AND NOT {grows('p.data_json')}"
                f" UNION SELECT p.message_id FROM chat_parts p WHERE {unindexed('p.data_json')})"
                " SELECT m.session_id, m.id, m.created_at FROM found"
                " JOIN chat_messages m ON m.id = found.message_id"
                f" WHERE (m.created_at, m.id) < (?, ?) AND m.created_at >= ? AND {of_sessions}"
                " ORDER BY m.created_at DESC, m.id DESC",
                (*self._needles, *place, self._oldest, *ids),
            ).fetchall()
        except ServerError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return None
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @property
    def _oldest(self) -> int:
        return self._verifier.asks.after

    @property
    def _needles(self) -> list[str]:
        return [f"%{self._piece}%"] if self._piece else []

    def _may_hold(self, message_id: str) -> str:
        """Return the condition that a part of a message may hold the word."""
        if not self._piece:
            return "TRUE"
        return (
            f"EXISTS (SELECT 1 FROM chat_parts p WHERE p.message_id = {message_id}"
            f" AND ({folded('p.data_json')} LIKE ? OR {odd('p.data_json')}))"
        )

    def _of_sessions(self, table: str, sessions: list[str] | None) -> tuple[str, list[str]]:
        if sessions is None:
            return "TRUE", []
        listed = f"SELECT value FROM {self._db.sql.texts('?', 'wanted')}"
        return f"{table}.session_id IN ({listed})", [array_of(sessions)]


def _candidate(row: tuple[Any, ...]) -> Candidate:
    return Candidate(text(row[0]) or "", text(row[1]) or "", number(row[2]))


def _longest(texts: Sequence[str]) -> str:
    """Return the longest piece of some texts that is in the folded JSON of a part; or ""."""
    found = (
        piece for each in texts for word in fold(each).split() for piece in pieces(index_form(word))
    )
    return max(found, key=len, default="")
