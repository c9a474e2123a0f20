"""Opens the counts of a store for reading."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from store.engine import changes, sidecars
from store.engine.database import Database
from store.engine.sidecars import value_of
from store.engine.values import number, text
from store.errors import StoreError
from store.language.query import Query
from store.prices.estimating import AnswerUsage, estimate
from store.prices.table import REQUEST_SIZES, PriceTable, tier_of
from store.stats import counting, tables
from store.stats.facts import COVERED, TOLD, Charge, count_session
from store.stats.forgetting import forgotten_elsewhere
from store.stats.narrowing import Narrowed, narrowed
from store.stats.selecting import Selection, Span
from store.stats.tables import STATISTICS

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a store is counted.

    Attributes:
        counted: Sessions that are.
        total: Sessions in the store.
    """

    counted: int
    total: int

    @property
    def whole(self) -> bool:
        """Whether all sessions are counted."""
        return self.counted >= self.total


class Rollups:
    """The counts of a store, and the prices of what they leave untold.

    Attributes:
        connection: A database in memory with the tables, to which others may be attached.
        coverage: How much is counted.
        prices: Of models; None estimates nothing.
    """

    def __init__(
        self, connection: sqlite3.Connection, coverage: Coverage, prices: PriceTable | None = None
    ) -> None:
        """Take tables that are filled.

        Args:
            connection: A database with them.
            coverage: How much is counted in them.
            prices: Of models.
        """
        self.connection, self.coverage, self.prices = connection, coverage, prices
        self._texts: dict[int, str] = {}
        self._charges: dict[int, Charge] = {}
        self._narrowed: tuple[tuple[object, ...], Narrowed] | None = None
        self._selection: tuple[tuple[object, ...], Selection] | None = None

    def select(
        self, db: Database, span: Span, query: Query, sessions: Collection[str] | None
    ) -> Selection:
        """Return what a query and a span select; the last one is kept, for the next question.

        Args:
            db: The store.
            span: The time that is counted.
            query: What narrows it.
            sessions: Only these, by id; None for all.
        """
        among = None if sessions is None else frozenset(sessions)
        key = span, query.terms, query.filters, among
        if self._selection is None or self._selection[0] != key:
            if self._selection is not None:
                self._selection[1].close()
                self._selection = None
            self._selection = key, Selection(db, self, span, query, among)
        return self._selection[1]

    def narrowed(self, db: Database, query: Query) -> Narrowed:
        """Return what a query selects; the last one is kept, as words are searched for.

        Args:
            db: The store.
            query: What narrows it.
        """
        key = query.terms, query.filters
        if self._narrowed is None or self._narrowed[0] != key:
            self._narrowed = key, narrowed(db, query)
        return self._narrowed[1]

    def text(self, number: int) -> str:
        """Return a text by its number; "" if there is none."""
        if number not in self._texts:
            self._texts = dict(self.connection.execute("SELECT number, text FROM name").fetchall())
        return self._texts.get(number, "")

    def session_id(self, number: int) -> str:
        """Return the id of a session."""
        (session_id,) = self.connection.execute(
            "SELECT id FROM session WHERE number = ?", (number,)
        ).fetchone()
        return str(session_id)

    def charge(self, number: int) -> Charge:
        """Return what answers of a number have in common."""
        if number not in self._charges:
            for place, model, provider, tier, told, size, present in self.connection.execute(
                "SELECT * FROM charge"
            ):
                self._charges[place] = Charge(
                    self.text(model), self.text(provider), self.text(tier), told, size, present
                )
        return self._charges[number]

    def rates(self, number: int) -> tuple[int, int, int, float, float, float, float, float]:
        """Return how the answers of a charge are priced.

        Returns:
            Whether their cost was recorded, can be estimated, or is unknown; and dollars per token
            of input, output, cache read, cache written, and cache written for an hour.
        """
        charge = self.charge(number)
        if charge.told in (TOLD, COVERED):
            return 1, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0
        found = self._priced(charge)
        return (0, 0, 1, 0.0, 0.0, 0.0, 0.0, 0.0) if found is None else (0, 1, 0, *found)

    def _priced(self, charge: Charge) -> tuple[float, float, float, float, float] | None:
        """Return dollars per token; None where a price that these answers need is unknown."""
        if self.prices is None or not charge.present:
            return None
        tier = tier_of(charge.tier)
        price = self.prices.price(charge.model, charge.provider or None, tier)
        asked = REQUEST_SIZES[charge.size - 1] + 1 if charge.size else 0
        rates = []
        for bit, usage in enumerate((
            AnswerUsage(input=_MILLION, tier=tier), AnswerUsage(output=_MILLION, tier=tier),
            AnswerUsage(cache_read=_MILLION, tier=tier),
            AnswerUsage(cache_write=_MILLION, tier=tier),
            AnswerUsage(cache_write=_MILLION, cache_write_1h=_MILLION, tier=tier),
        )):  # fmt: skip
            dollars = estimate(usage, price, asked)
            if dollars is None and charge.present & 1 << bit:
                return None
            rates.append((dollars or 0.0) / _MILLION)
        fresh, output, read, written, written_1h = rates
        return fresh, output, read, written, written_1h

    def make_families(self) -> None:
        """Make the temporary table that has the first session of each one's family."""
        read = self.connection.execute
        if read("SELECT 1 FROM temp.sqlite_master WHERE name = 'family'").fetchone():
            return
        rows = read("SELECT number, id, parent FROM session").fetchall()
        numbers = {session_id: number for number, session_id, _ in rows}
        parents = {number: numbers.get(parent) for number, _, parent in rows}
        read("CREATE TEMP TABLE family (session INTEGER PRIMARY KEY, root INTEGER NOT NULL)")
        self.connection.executemany(
            "INSERT INTO temp.family VALUES (?, ?)",
            [(number, _root(parents, number)) for number in parents],
        )


def _root(parents: dict[int, int | None], number: int) -> int:
    """Return the first session of a family; in damaged lineage that leads in a circle, the least.

    Args:
        parents: By number, that of each session's parent.
        number: The session.
    """
    path = [number]
    while (above := parents.get(path[-1])) is not None:
        if above in path:
            return min(path[path.index(above):])
        path.append(above)
    return path[-1]


@contextmanager
def open_rollups(
    db: Database, prices: PriceTable | None = None, *, seconds: float | None = None,
    since: int | None = None, sessions: Collection[str] | None = None,
    progress: counting.Progress = counting.no_progress,
) -> Iterator[Rollups]:  # fmt: skip
    """Open the counts of a store for a block of reads.

    What the file of statistics has is taken from there; what changed since, or is not in it, is
    counted now.

    Args:
        db: The store, open for reading.
        prices: What models cost, where an agent does not tell; None estimates nothing.
        seconds: For how long to count what is not counted yet; None counts all. What is left
            is missing in the figures, and ``Rollups.coverage`` says how many sessions that is.
        since: Where there is no file, count only sessions that changed since this moment, epoch
            ms: enough for what happened since then, and quick.
        sessions: Those that are asked for; others may not be counted. None for all.
        progress: Called before each session that is counted now.

    Raises:
        StatisticsUnusable: The file is damaged, which came out while it was read, here or in the
            block. It was removed: opened again, all is counted.
    """
    connection = sqlite3.connect(":memory:", uri=True, isolation_level=None,
                                 check_same_thread=False)  # fmt: skip
    ends = None if seconds is None else time.monotonic() + seconds
    try:
        tables.make_tables(connection)
        if _attach(db, connection):
            _leave_forgotten_out(db, connection)
            changed = dict.fromkeys(_changed(db, connection))
            if sessions is not None:
                changed = {each: None for each in changed if each in sessions}
            left = _count(db, connection, changed, ends, progress)
            _look_through(connection)
        elif since is not None:
            recent = db.connection.execute(
                "SELECT id FROM chat_sessions WHERE updated_at >= ? ORDER BY updated_at DESC, id",
                (since,),
            ).fetchall()
            waiting = dict.fromkeys(row[0] for row in recent)
            left = _count(db, connection, waiting, ends, progress)
        elif sessions is not None:
            left = _count(db, connection, dict.fromkeys(sessions), ends, progress)
        else:
            left = counting.count_all(
                db, connection, stopped=lambda: ends is not None and time.monotonic() > ends,
                progress=progress)
        (total,) = db.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
        yield Rollups(connection, Coverage(max(0, total - left), total), prices)
    except sqlite3.DatabaseError as error:
        if not sidecars.is_damage(error) or not _is_attached(connection):
            raise
        path = STATISTICS.path(db.path)
        if not STATISTICS.is_damaged(path):
            raise
        with suppress(OSError):
            sidecars.remove_files(path)
        raise STATISTICS.unusable(path, error) from error
    finally:
        connection.close()


def _is_attached(connection: sqlite3.Connection) -> bool:
    return any(name == "kept" for _, name, _ in connection.execute("PRAGMA database_list"))


def _attach(db: Database, connection: sqlite3.Connection) -> bool:
    """Attach the file of statistics, if there is one of this store that can be used."""
    try:
        path = STATISTICS.path(db.path)
        file = STATISTICS.open_for_reading(path)
        if file is None:
            return False
        try:
            identity = sidecars.store_identity(db.path)
            if value_of(file, "store") != identity or not value_of(file, "begun"):
                return False
            if not STATISTICS.has_tables(file):
                return False
        finally:
            file.close()
        connection.execute("ATTACH ? AS kept", (f"{path.absolute().as_uri()}?mode=ro",))
        connection.execute("PRAGMA busy_timeout = 1000").fetchall()
        # One state of the file until the end: what is counted here takes the next numbers of its
        # names and charges, which its keeper may give to others meanwhile.
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM kept.about").fetchone()
        for table in ("session", "name", "charge", "shares"):
            only = " WHERE number NOT IN (SELECT number FROM main.session)" * (table == "session")
            connection.execute(
                f"CREATE TEMP VIEW {table} AS SELECT * FROM kept.{table}{only}"
                f" UNION ALL SELECT * FROM main.{table}"
            )
        return True
    except (sqlite3.Error, OSError, StoreError):
        # Its keeper mends it; until then all is counted here.
        return False


def _count(
    db: Database, connection: sqlite3.Connection, waiting: dict[str, None], ends: float | None,
    progress: counting.Progress,
) -> int:  # fmt: skip
    """Count sessions as they are now; return how many are left.

    Args:
        db: The store.
        connection: A database in memory with the tables.
        waiting: The sessions.
        ends: When to stop, by the monotonic clock.
        progress: Called before each session.
    """
    names, total = None, len(waiting)
    while waiting:
        if ends is not None and time.monotonic() > ends:
            return len(waiting)
        progress(total - len(waiting), total)
        session = next(iter(waiting))
        sessions, shared = counting.shared_around(db, connection, [session])
        names = names or tables.Names(connection)
        for session_id, info in counting.infos_of(db, sorted(sessions)):
            waiting.pop(session_id, None)
            number = tables.session_number(connection, session_id)
            if info is not None:
                facts = count_session(db, info, shared)
                tables.write_session(connection, names, info, facts)
            elif number is not None:
                _hide(connection, number, session_id)
        waiting.pop(session, None)
    return 0


def _leave_forgotten_out(db: Database, connection: sqlite3.Connection) -> None:
    """Leave sessions out that another machine has deleted for good, before anything is counted."""
    for session_id in forgotten_elsewhere(db):
        number = tables.session_number(connection, session_id)
        if number is not None:
            _hide(connection, number, session_id)


def _hide(connection: sqlite3.Connection, number: int, session_id: str) -> None:
    """Write a row that nothing is counted of; it hides those in the file."""
    connection.execute(
        "INSERT OR REPLACE INTO main.session VALUES (?, ?, 0, 0, 0, 0, '', 0, 0)",
        (number, session_id))


def _changed(db: Database, connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the sessions that changed since they were counted, the newest change first."""
    (seq,) = connection.execute("SELECT value FROM kept.about WHERE name = 'seq'").fetchone()
    (whole,) = connection.execute("SELECT value FROM kept.about WHERE name = 'whole'").fetchone()
    reaches = False
    if db.form.name == "own":
        last, moved = changes.since(db, seq)
        # A log that does not reach back to the counts says nothing of what has not changed.
        reaches = bool(moved.sessions) or last == seq
        if db.server is not None:
            reaches = not moved.vague
        yield from reversed(list(moved.sessions))
    if reaches and whole:
        for (session_id,) in connection.execute("SELECT id FROM kept.session WHERE counted = 0"):
            yield session_id
        return
    known = dict(connection.execute(
        "SELECT id, updated_at FROM kept.session WHERE counted = 1").fetchall())
    if db.form.name == "own" and not reaches:
        known = dict.fromkeys(known)
    for session_id, updated_at in db.connection.execute(
        "SELECT id, updated_at FROM chat_sessions ORDER BY updated_at DESC, id DESC"
    ).fetchall():
        if known.pop(text(session_id), None) != number(updated_at):
            yield text(session_id) or ""
    yield from known


def _look_through(connection: sqlite3.Connection) -> None:
    """Make views of the file with what was counted now in place of what it has of that."""
    (recounted,) = connection.execute("SELECT count(*) FROM main.session").fetchone()
    for table in tables.COUNTS:
        view = f"CREATE TEMP VIEW {table} AS SELECT * FROM kept.{table}"
        if recounted:
            view += (" WHERE session NOT IN (SELECT number FROM main.session)"
                     f" UNION ALL SELECT * FROM main.{table}")  # fmt: skip
        connection.execute(view)
    if not recounted:
        for table in ("session", "name", "charge"):
            connection.execute(f"DROP VIEW temp.{table}")
            connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM kept.{table}")
