"""The tables of counts, in the sidecar file or in memory.

``session``: what a session is grouped by. ``name``: texts, each once. ``charge``: what answers
have in common that are priced alike; prices are laid over when statistics are read, so that
other prices need no new count. ``spent``, ``called``, ``turned`` and ``longest``: the rows of
``facts``. ``shares``: which sessions hold answers of which others.
``about``: the format, which store it is, and how far the counts are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from store.stats.facts import Charge, SessionFacts, SessionInfo

FORMAT = 1
"""Counts of another format are made again."""
COUNTS = ("spent", "called", "turned", "longest")
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
CREATE TABLE turned (
    session INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    model   INTEGER NOT NULL,
    turns   INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
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


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, within the caller's transaction."""
    for statement in TABLES.split(";\n"):
        connection.execute(statement)


class Names:
    """The numbers of texts and charges; what is new is written.

    Attributes:
        texts: The known texts.
        charges: The known charges.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take the connection with the tables."""
        self._connection = connection
        self.texts: dict[str, int] = {}
        self.charges: dict[Charge, int] = {}

    def know(self, schema: str) -> None:
        """Take over all numbers of an attached database; new ones follow them.

        Args:
            schema: The name of the database.
        """
        read = self._connection.execute
        texts = dict(read(f"SELECT number, text FROM {schema}.name").fetchall())
        self.texts = {text: number for number, text in texts.items()}
        for number, model, provider, tier, *rest in read(f"SELECT * FROM {schema}.charge"):
            self.charges[Charge(texts[model], texts[provider], texts[tier], *rest)] = number
        for table, known in (("name", self.texts), ("charge", self.charges)):
            last = max(known.values(), default=0)
            columns = 6 if table == "charge" else 1
            read(f"INSERT INTO {table} VALUES (?{', -1' * columns})", (last + 1,))

    def of(self, text: str) -> int:
        """Return the number of a text."""
        known = self.texts.get(text)
        if known is None:
            known = self.texts[text] = self._number("name", ("text",), (_harmless(text),))
        return known

    def charge(self, charge: Charge) -> int:
        """Return the number of a charge."""
        known = self.charges.get(charge)
        if known is None:
            values = (*map(self.of, charge[:3]), *charge[3:])
            known = self.charges[charge] = self._number("charge", Charge._fields, values)
        return known

    def _number(
        self, table: str, columns: tuple[str, ...], values: tuple[str | int, ...]
    ) -> int:
        fits = " AND ".join(f"{column} = ?" for column in columns)
        row = self._connection.execute(
            f"SELECT number FROM {table} WHERE {fits}", values
        ).fetchone()
        if row is not None:
            return int(row[0])
        marks = ", ".join("?" * len(columns))
        made = self._connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", values
        )
        assert made.lastrowid is not None
        return made.lastrowid


def session_number(connection: sqlite3.Connection, session_id: str) -> int | None:
    """Return the number of a session; None if it is not counted."""
    row = connection.execute("SELECT number FROM session WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else int(row[0])


def remove_session(connection: sqlite3.Connection, number: int, *, known: bool = False) -> None:
    """Remove the counts of a session.

    Args:
        connection: With the tables, in a transaction.
        number: The session's number.
        known: Whether the session itself remains, to be counted again.
    """
    for table in COUNTS:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
    if not known:
        connection.execute("DELETE FROM session WHERE number = ?", (number,))
        connection.execute("DELETE FROM shares WHERE session = ? OR other = ?", (number, number))


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
    number = known_number(connection, info.id)
    remove_session(connection, number, known=True)
    connection.execute(
        "UPDATE session SET agent = ?, source = ?, workspace = ?, branch = ?, parent = ?,"
        " updated_at = ?, counted = 1 WHERE number = ?",
        (*map(names.of, (info.agent, info.source, info.workspace, info.branch)),
         _harmless(info.parent), info.updated_at, number),
    )  # fmt: skip
    for table, rows in rows_of(names, number, facts):
        connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)


def known_number(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the number of a session, which it is given if it has none."""
    number = session_number(connection, session_id)
    if number is None:
        made = connection.execute(
            "INSERT INTO session (id, agent, source, workspace, branch, parent, updated_at,"
            " counted) VALUES (?, 0, 0, 0, 0, '', 0, 0)", (session_id,)
        )  # fmt: skip
        assert made.lastrowid is not None
        number = made.lastrowid
    return number


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
        "turned": (
            (number, quarter, names.of(model), row.turns, row.active_ms)
            for (quarter, model), row in facts.turned.items()
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
