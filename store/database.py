"""A SQLite file that holds the three tables: which form it has, and how it is opened.

Everything here is synchronous and light, so that the first page of sessions can be read
before aiosqlite is imported; ``store.store`` runs the same functions on its threads.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from store import schema
from store.errors import StoreError

FormName = Literal["own", "contract", "grida"]


@dataclass(frozen=True, slots=True)
class Form:
    """Which columns a file has, and the SQL that reads a fact whatever the form is.

    Attributes:
        name: ``own`` carries our application id; ``contract`` has the contract's tables;
            ``grida`` has Grida's extra columns.
        version: ``PRAGMA user_version``.
        title_column: Whether ``chat_sessions.title`` exists.
        hidden_column: Whether ``chat_messages.hidden_at`` exists.
    """

    name: FormName
    version: int
    title_column: bool
    hidden_column: bool

    def fact(self, table: str, path: str) -> str:
        """Return the SQL expression for a value in ``metadata_json`` (NULL when unset).

        Rows of others may hold what is no JSON, on which SQLite's JSON functions fail.

        Args:
            table: The table's alias.
            path: As in ``user.title``.
        """
        column = f"{table}.metadata_json"
        return f"CASE WHEN json_valid({column}) THEN json_extract({column}, '$.{path}') END"

    def rare_fact(self, table: str, path: str) -> str:
        """Return the same for a key that few rows have: the others are not parsed at all."""
        column, key = f"{table}.metadata_json", path.rsplit(".", 1)[-1]
        return (
            f"CASE WHEN instr({column}, '\"{key}\"') AND json_valid({column})"
            f" THEN json_extract({column}, '$.{path}') END"
        )

    def title(self, table: str) -> str:
        """Return the SQL expression for a session's title (NULL when unset).

        The user's own wins, then the title column, then ``metadata_json.title``.
        """
        column = f"{table}.metadata_json"
        users = (
            f"CASE WHEN instr({column}, '\"user\"') AND json_valid({column})"
            f" THEN nullif(json_extract({column}, '$.user.title'), '') END"
        )
        given = f"{table}.title, " if self.title_column else ""
        return f"coalesce({users}, {given}{self.fact(table, 'title')})"

    def source_kind(self, table: str) -> str:
        """Return the SQL expression for where a session came from (NULL when unknown)."""
        return self.fact(table, "source.kind")

    def source_id(self, table: str) -> str:
        """Return the SQL expression for a session's id at its source."""
        return self.fact(table, "source.id")

    def hidden_at(self, table: str) -> str:
        """Return the SQL expression for a message's ``hidden_at`` (NULL when visible)."""
        in_metadata = self.rare_fact(table, "hidden_at")
        return f"coalesce({table}.hidden_at, {in_metadata})" if self.hidden_column else in_metadata

    def queued(self, table: str) -> str:
        """Return the SQL condition for a message that waits and is no transcript yet."""
        queued_at = self.rare_fact(table, "queued_at")
        return f"coalesce(typeof({queued_at}) IN ('integer', 'real'), 0)"

    def cancelled(self, table: str) -> str:
        """Return the SQL condition for a message that was cancelled while it waited."""
        return f"({self.rare_fact(table, 'queue_canceled_at')} IS NOT NULL)"

    def shown(self, table: str) -> str:
        """Return the SQL condition for a message of the visible transcript."""
        return (
            f"({self.hidden_at(table)} IS NULL AND NOT {self.queued(table)}"
            f" AND NOT {self.cancelled(table)})"
        )


@dataclass(slots=True)
class Database:
    """One open connection with the form of its file.

    Attributes:
        read_only: Why nothing may be written, or None when it may.
    """

    path: Path
    connection: sqlite3.Connection
    form: Form
    read_only: str | None = None

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def detect_form(connection: sqlite3.Connection, path: Path) -> Form:
    """Return the form of an open file.

    Raises:
        StoreError: The file has not the three tables.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    columns = {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table in ("chat_sessions", "chat_messages", "chat_parts")
    }
    missing = [table for table, names in columns.items() if not names]
    if missing:
        raise StoreError(f"{path} is no session store: it has no table {', '.join(missing)}")
    title, hidden = "title" in columns["chat_sessions"], "hidden_at" in columns["chat_messages"]
    name: FormName = (
        "own" if application_id == schema.APPLICATION_ID else "grida" if title else "contract"
    )
    return Form(name, version, title, hidden)


def open_database(path: Path, *, create: bool = False, write: bool = True) -> Database:
    """Open a store file.

    Args:
        path: The SQLite file.
        create: Make the file (0600, its folder 0700) with our schema where it is missing.
        write: False opens it for reading alone.

    Raises:
        StoreError: The file is missing, or is no store; the message says which.
    """
    if not path.exists() and not create:
        raise StoreError(f"{path} does not exist")
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
    mode = "rw" if write else "ro"
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None,
        check_same_thread=False,
    )
    try:
        schema.apply_pragmas(connection)
        if write and create:
            schema.migrate(connection)
        form = detect_form(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreError(f"{path} cannot be opened as a store: {error}") from error
    except BaseException:
        connection.close()
        raise
    return Database(path, connection, form, None if write else "opened for reading only")
