"""The tables of counts, in the sidecar file or in memory.

``session``: what a session is grouped by. ``name``: texts, each once. ``charge``: what answers
have in common that are priced alike; prices are laid over when statistics are read, so that
other prices need no new count. ``spent``, ``called`` and ``longest``: the rows of
``facts``. ``worked``: its turns, and the calls of all tools together. ``shares``: which sessions
hold answers of which others.
``about``: the format, which store it is, and how far the counts are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from store.engine.sidecars import Sidecar
from store.errors import StoreError
from store.stats.facts import Charge, SessionFacts, SessionInfo

COUNTS = ("spent", "called", "worked", "longest")
"""The tables of counts; each has a column ``session``."""

TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE name (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE session (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    agent      INTEGER NOT NULL,
    source     INTEGER NOT NULL,
    workspace  INTEGER NOT NULL,
    branch     INTEGER NOT NULL,
    parent     TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    counted    INTEGER NOT NULL
);
CREATE TABLE charge (
    number   INTEGER PRIMARY KEY,
    model    INTEGER NOT NULL,
    provider INTEGER NOT NULL,
    tier     INTEGER NOT NULL,
    told     INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    present  INTEGER NOT NULL,
    UNIQUE (model, provider, tier, told, size, present)
);
CREATE TABLE spent (
    session INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    charge  INTEGER NOT NULL,
    model   INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    copies  INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (session, quarter, charge)
) WITHOUT ROWID;
CREATE TABLE called (
    session INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    tool    INTEGER NOT NULL,
    model   INTEGER NOT NULL,
    calls   INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    denied  INTEGER NOT NULL,
    timed   INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    PRIMARY KEY (session, quarter, tool, model)
) WITHOUT ROWID;
CREATE TABLE worked (
    session INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    model   INTEGER NOT NULL,
    turns   INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    calls   INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    denied  INTEGER NOT NULL,
    timed   INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    PRIMARY KEY (session, quarter, model)
) WITHOUT ROWID;
CREATE TABLE longest (
    session INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    message TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (session, place)
) WITHOUT ROWID;
CREATE TABLE shares (
    session INTEGER NOT NULL,
    other   INTEGER NOT NULL,
    PRIMARY KEY (session, other)
) WITHOUT ROWID;
"""


class StatisticsUnusable(StoreError):
    """The file of statistics is damaged, locked or on a full disk; the message says which."""


STATISTICS = Sidecar(
    ".stats", "2", TABLES,
    ("about", "name", "session", "charge", "spent", "called", "worked", "longest", "shares"),
    "file of statistics", StatisticsUnusable,
)  # fmt: skip
"""The file that keeps the counts of a store."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in a database in memory."""
    for statement in TABLES.split(";\n"):
        connection.execute(statement)


class Names:
    """The numbers of texts and charges; what is new is written.

    Here and below, what is read may come from an attached database too; what is written is in
    the connection's own.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Read the known numbers.

        Args:
            connection: With the tables.
        """
        self._write = connection.execute
        texts: dict[int, str] = dict(connection.execute("SELECT number, text FROM name").fetchall())
        self._texts = {text: number for number, text in texts.items()}
        self._charges = {
            Charge(texts[model], texts[provider], texts[tier], *rest): number
            for number, model, provider, tier, *rest in connection.execute("SELECT * FROM charge")
        }
        self._last = max(texts, default=0)
        self._last_charge = max(self._charges.values(), default=0)

    def of(self, text: str) -> int:
        """Return the number of a text."""
        known = self._texts.get(text)
        if known is None:
            harmless = _harmless(text)
            known = self._texts.get(harmless)
            if known is None:
                self._last = known = self._last + 1
                self._write("INSERT INTO main.name VALUES (?, ?)", (known, harmless))
                self._texts[harmless] = known
            self._texts[text] = known
        return known

    def charge(self, charge: Charge) -> int:
        """Return the number of a charge."""
        known = self._charges.get(charge)
        if known is None:
            plain = charge._replace(
                model=_harmless(charge.model), provider=_harmless(charge.provider),
                tier=_harmless(charge.tier),
            )  # fmt: skip
            known = self._charges.get(plain)
            if known is None:
                self._last_charge = known = self._last_charge + 1
                self._write(
                    "INSERT INTO main.charge VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (known, *map(self.of, plain[:3]), *plain[3:]),
                )
                self._charges[plain] = known
            self._charges[charge] = known
        return known


def session_number(connection: sqlite3.Connection, session_id: str) -> int | None:
    """Return the number of a session; None if it is not counted."""
    row = connection.execute("SELECT number FROM session WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else int(row[0])


def remove_session(connection: sqlite3.Connection, number: int) -> None:
    """Remove all about a session.

    Args:
        connection: With the tables, in a transaction.
        number: The session's number.
    """
    _remove_counts(connection, number)
    connection.execute("DELETE FROM main.session WHERE number = ?", (number,))
    connection.execute("DELETE FROM main.shares WHERE session = ? OR other = ?", (number, number))


def _remove_counts(connection: sqlite3.Connection, number: int) -> None:
    for table in COUNTS:
        connection.execute(f"DELETE FROM main.{table} WHERE session = ?", (number,))


def write_session(
    connection: sqlite3.Connection, names: Names, info: SessionInfo, facts: SessionFacts
) -> None:
    """Write the counts of a session in place of earlier ones, within a transaction.

    Args:
        connection: With the tables.
        names: Of the same connection.
        info: What the session is grouped by.
        facts: What was counted of it.
    """
    number = session_number(connection, info.id) or next_number(connection)
    _remove_counts(connection, number)
    connection.execute(
        "INSERT OR REPLACE INTO main.session VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
        (number, _harmless(info.id), *map(names.of, (info.agent, info.source, info.workspace,
         info.branch)), _harmless(info.parent), info.updated_at),
    )  # fmt: skip
    for table, rows in rows_of(names, number, facts):
        connection.executemany(
            f"INSERT INTO main.{table} VALUES ({','.join('?' * len(rows[0]))})", rows)


def known_number(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the number of a session, which it is given if it has none."""
    number = session_number(connection, session_id)
    if number is None:
        number = next_number(connection)
        connection.execute(
            "INSERT INTO main.session VALUES (?, ?, 0, 0, 0, 0, '', 0, 0)", (number, session_id)
        )
    return number


def next_number(connection: sqlite3.Connection) -> int:
    """Return a number for a new session."""
    (last,) = connection.execute("SELECT max(number) FROM session").fetchone()
    return int(last or 0) + 1


def _harmless(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def rows_of(
    names: Names, number: int, facts: SessionFacts
) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table with the rows that a session has in it, where it has any.

    Args:
        names: Where texts get their numbers.
        number: That of the session.
        facts: What was counted of it.
    """
    tables: dict[str, Iterable[tuple[object, ...]]] = {
        "spent": (
            (number, quarter, names.charge(charge), names.of(charge.model), row.answers,
             row.copies, *row.tokens, row.cache_write_1h, row.usd)
            for (quarter, charge), row in facts.spent.items()
        ),
        "called": (
            (number, quarter, names.of(tool), names.of(model), row.calls, row.failed, row.denied,
             row.timed, row.milliseconds)
            for (quarter, tool, model), row in facts.called.items()
        ),
        "worked": (
            (number, quarter, names.of(model), *row) for (quarter, model), row in
            _worked(facts).items()
        ),
        "longest": (
            (number, place, turn.milliseconds, _harmless(turn.message_id), turn.at)
            for place, turn in enumerate(facts.longest)
        ),
    }  # fmt: skip
    for table, found in tables.items():
        rows = list(found)
        if rows:
            yield table, rows


def _worked(facts: SessionFacts) -> dict[tuple[int, str], list[int]]:
    """Return turns, active time, and calls of all tools, by quarter hour and model."""
    found: dict[tuple[int, str], list[int]] = {}
    for (quarter, model), turned in facts.turned.items():
        found[quarter, model] = [turned.turns, turned.active_ms, 0, 0, 0, 0, 0]
    for (quarter, _, model), called in facts.called.items():
        row = found.setdefault((quarter, model), [0] * 7)
        for place, value in enumerate(
            (called.calls, called.failed, called.denied, called.timed, called.milliseconds), 2
        ):
            row[place] += value
    return found
