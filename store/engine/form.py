"""The form of a store file: its columns, and SQL expressions for facts in any form."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType

from store.conversation.turns import NO_TURN
from store.engine import schema
from store.engine.dialect import SQLITE, Dialect
from store.errors import StoreError
from store.system.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    FormName = Literal["own", "contract", "grida"]


GRIDA_VERSION = 3
"""The newest supported ``user_version`` of Grida's form."""



class Form(NamedTuple):
    """The form of a store file, and SQL expressions for facts in that form.

    Attributes:
        name: ``own`` is a library, by its application id; ``contract`` has the contract's
            tables; ``grida`` has Grida's extra columns.
        version: ``PRAGMA user_version``.
        title_column: Whether ``chat_sessions.title`` exists.
        hidden_column: Whether ``chat_messages.hidden_at`` exists.
        columns: The column names of each of the three tables, in order.
        sql: The words of its engine.
        older: Which version our tables on a server have, where they are left aside; else None.
    """

    name: FormName
    version: int
    title_column: bool
    hidden_column: bool
    columns: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    sql: Dialect = SQLITE
    older: int | None = None

    @property
    def newest_known(self) -> int | None:
        """The newest supported version; None if the form has no known versions."""
        known: dict[FormName, int] = {"own": schema.CURRENT_VERSION, "grida": GRIDA_VERSION}
        return known.get(self.name)

    @property
    def is_newer(self) -> bool:
        """Whether the file's version is newer than the supported one."""
        return self.newest_known is not None and self.version > self.newest_known

    def fact(self, table: str, path: str) -> str:
        """Return the SQL expression for a value in ``metadata_json`` (NULL when unset).

        A host's rows may contain invalid JSON, on which SQLite's JSON functions fail.

        Args:
            table: The table's alias.
            path: The path of keys, such as ``user.title``.
        """
        return self.sql.fact(f"{table}.metadata_json", path)

    def rare_fact(self, table: str, path: str) -> str:
        """Return the same as ``fact``, for a key that few rows have."""
        return self.sql.rare_fact(f"{table}.metadata_json", path)

    def of_session(self, table: str, session_id: str) -> str:
        """Return a further condition for rows that are named by the id of their message.

        With it a server reads one partition. It is empty where the tables are another
        program's, or in a file, whose index of messages knows no session.

        Args:
            table: The name of ``chat_messages`` or ``chat_parts`` in the statement.
            session_id: An expression for the session that the rows are of anyway.
        """
        if self.name != "own" or not self.sql.partitions:
            return ""
        return f" AND {table}.session_id = {session_id}"

    def title(self, table: str) -> str:
        """Return the SQL expression for a session's title (NULL when unset).

        The user's title comes first, then the title column, then ``metadata_json.title``.
        """
        users = f"nullif({self.fact(table, 'user.title')}, '')"
        given = f"{table}.title, " if self.title_column else ""
        return f"coalesce({users}, {given}{self.fact(table, 'title')})"

    def source_kind(self, table: str) -> str:
        """Return the SQL expression for a session's source kind (NULL when unknown)."""
        return self.fact(table, "source.kind")

    def source_id(self, table: str) -> str:
        """Return the SQL expression for a session's source id."""
        return self.fact(table, "source.id")

    def starred(self, table: str) -> str:
        """Return the SQL condition for a session with a star: the user's word, else its agent's.

        The rule is the one of ``store.queries.user_marks.is_starred``.
        """
        return self.sql.first_is_true(
            f"{table}.metadata_json", "user.star", "backscroll.is_starred")

    def answer_name(self, table: str) -> str:
        """Return the SQL expression for an answer's name, equal in all copies of the answer.

        That is the name from sync, else the message it was copied from, else NULL.
        """
        return self.sql.first_fact(f"{table}.metadata_json", "source.answer[0]", "inherited_from")

    def hidden_at(self, table: str) -> str:
        """Return the SQL expression for a message's ``hidden_at`` (NULL when visible)."""
        in_metadata = self.sql.number(f"{table}.metadata_json", "hidden_at")
        return f"coalesce({table}.hidden_at, {in_metadata})" if self.hidden_column else in_metadata

    def queued(self, table: str) -> str:
        """Return the SQL condition for a queued message, which was not sent yet."""
        return self.sql.is_number(f"{table}.metadata_json", "queued_at")

    def cancelled(self, table: str) -> str:
        """Return the SQL condition for a message that was cancelled while queued."""
        return self.sql.is_set(f"{table}.metadata_json", "queue_canceled_at")

    def starts_turn(self, table: str) -> str:
        """Return the SQL condition for a shown message that starts a turn.

        The rule is the one of ``store.conversation.turns``.
        """
        origin = f"coalesce({self.rare_fact(table, 'origin')}, '')"
        return f"({table}.role = 'user' AND {origin} NOT IN {NO_TURN})"

    def shown(self, table: str) -> str:
        """Return the SQL condition for a message of the visible transcript."""
        return self.sql.usual(
            f"({self.hidden_at(table)} IS NULL AND NOT {self.queued(table)}"
            f" AND NOT {self.cancelled(table)})"
        )


def detect_form(connection: sqlite3.Connection, path: str | Path) -> Form:
    """Return the form of an open file.

    Raises:
        StoreError: The file lacks tables or columns of the contract; the message names them.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id == schema.APPLICATION_ID and version == schema.CURRENT_VERSION:
        return _own_form(connection, path)
    columns = {
        table: tuple(str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})"))
        for table in schema.REQUIRED_COLUMNS
    }
    _require_tables(connection, path, columns)
    for table, required in schema.REQUIRED_COLUMNS.items():
        if missing := [name for name in required if name not in columns[table]]:
            raise StoreError(
                f"{path} is not a session store: its table {table} has no {', '.join(missing)};"
                " if an agent wrote it, open it as a source"
            )
    title, hidden = "title" in columns["chat_sessions"], "hidden_at" in columns["chat_messages"]
    name: FormName = (
        "own" if application_id == schema.APPLICATION_ID else "grida" if title else "contract"
    )
    return Form(name, version, title, hidden, columns)


def _own_form(connection: sqlite3.Connection, path: str | Path) -> Form:
    """Return the form of a library file, whose columns are known."""
    columns = schema.REQUIRED_COLUMNS
    found = connection.execute(
        f"SELECT name FROM sqlite_master WHERE type = 'table' AND name IN {tuple(columns)}"
    ).fetchall()
    there = {row[0] for row in found}
    _require_tables(
        connection, path, {name: columns[name] if name in there else () for name in columns}
    )
    return Form("own", schema.CURRENT_VERSION, False, False, columns)


def _require_tables(
    connection: sqlite3.Connection, path: str | Path, columns: Mapping[str, tuple[str, ...]]
) -> None:
    missing = [table for table, names in columns.items() if not names]
    if not missing:
        return
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    there = [str(row[0]) for row in connection.execute(query).fetchall()]
    shown = ", ".join(there[:6]) + (", ..." if len(there) > 6 else "")
    raise StoreError(
        f"{path} is a SQLite file, not a session store: it has no table {', '.join(missing)}"
        + (f" (it has {shown}); open it as a source if a known agent wrote it" if there else
           " and no other; delete it, or let `backscroll sync --store` make a store there")
    )  # fmt: skip
