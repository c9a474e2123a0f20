"""Stores on both engines for tests: a SQLite file, and a database of a real server."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Literal

from store.engine import schema
from store.engine.connection import Connection
from store.engine.database import Database, in_transaction, open_database
from store.engine.opening import open_target
from store.engine.server.schema import SIDE_TABLES
from store.errors import StoreError
from store.verbs.marks import rename
from tests.sources.postgres_server import Server
from tests.store.talks import Talk

ENGINES = ("sqlite", "postgresql")
Form = Literal["own", "contract"]
Fresh = Callable[[], contextlib.AbstractContextManager[Database]]
"""Lends an empty library."""
_TEMPLATE = "store_template"
_made: set[Server] = set()
_SHAPE = (
    "SELECT oid, concat(relname, relnamespace, relnatts, relkind, relacl, relowner, relrowsecurity)"
    " FROM pg_class WHERE oid >= 16384"
    " UNION ALL SELECT oid, concat(tgname, tgenabled) FROM pg_trigger"
    " UNION ALL SELECT oid, conname FROM pg_constraint WHERE oid >= 16384"
    " UNION ALL SELECT oid, concat(proname, prosrc) FROM pg_proc WHERE oid >= 16384"
    " UNION ALL SELECT oid, concat(nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_'"
    " UNION ALL SELECT setdatabase, concat(setrole, setconfig) FROM pg_db_role_setting"
    " UNION ALL SELECT oid, extname FROM pg_extension ORDER BY 1, 2")
_TABLES = (
    "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid >= 16384 AND relkind = 'r'"
    " AND n.nspname IN ('public', 'backscroll') AND relname <> 'store_version'")
_OTHERS_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()")
_NUMBERS_BEGIN = (
    "SELECT setval(CAST(c.oid AS regclass), 1, false) FROM pg_class c WHERE relkind = 'S'")


def server_store_that_says(server: Server, text: str) -> str:
    """Return the URL of a new store with one message."""
    url = new_server_store(server)
    with contextlib.closing(open_target(url, write=True)) as database:
        talk = Talk(database)
        talk.message(talk.session("Retry loop"), text=text)
    return url


def name_another(url: str, now: int) -> None:
    """Add a session to a store on a server, and name it by a verb."""
    with contextlib.closing(open_target(url, write=True)) as database:
        session = Talk(database).session("Since then")
        in_transaction(database, rename, session, "Named", now=now)


def new_server_store(server: Server) -> str:
    """Return the URL of a new empty store on a server."""
    if server not in _made:
        server.admin.execute(f"CREATE DATABASE {_TEMPLATE}")
        url = server.admin.url.replace("/postgres?", f"/{_TEMPLATE}?")
        open_target(url, create=True, write=True).close()
        _made.add(server)
    return server.database(_TEMPLATE).url


def host_tables(kind: str) -> str:
    """Return the contract's tables as a host may make them, with JSON columns of a type."""
    lines = schema.CONTRACT_TABLES.replace("INTEGER", "bigint").replace(" REAL", " float8")
    return "\n".join(
        line.replace("TEXT", kind, 1) if "_json" in line else line for line in lines.splitlines())


def new_host_database(server: Server) -> str:
    """Return the URL of a new database with a host's three tables alone."""
    database = server.database()
    database.execute(host_tables("text"))
    return database.url


class ServerStores:
    """Empty stores on a server, lent to one test after the other.

    To delete the rows of a test takes a hundredth of the time of a new database.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._spare: dict[Form, list[_Kept]] = {"own": [], "contract": []}

    @contextlib.contextmanager
    def lent(self, form: Form = "own") -> Iterator[str]:
        """Lend a store, or a host's database; yields its URL.

        Args:
            form: Whose tables it has.
        """
        spare = self._spare[form]
        make = new_server_store if form == "own" else new_host_database
        kept = spare.pop() if spare else _Kept(make(self._server))
        try:
            yield kept.url
        finally:
            if kept.is_empty_again():
                spare.append(kept)
            else:
                kept.close()

    def close(self) -> None:
        """Close all that are not lent."""
        for kept in chain(*self._spare.values()):
            kept.close()


class _Kept:
    """A store with a connection of its own, which empties it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._database = open_target(url, write=True)
        self._shape = self._rows(_SHAPE)
        self._tables = [table for (table,) in self._rows(_TABLES)]

    def is_empty_again(self) -> bool:
        """Delete all rows; return False where a test changed the tables or cut the connection."""
        try:
            self._rows(_OTHERS_END)
            if self._rows(_SHAPE) != self._shape:
                return False
            # Without the triggers, which note each change.
            self._database.remote.script(
                "SET session_replication_role = replica;"
                + "".join(f"DELETE FROM {table};" for table in self._tables) + _NUMBERS_BEGIN)
        except (StoreError, sqlite3.Error):
            return False
        return True

    def close(self) -> None:
        self._database.close()

    def _rows(self, sql: str) -> list[tuple[object, ...]]:
        return self._database.connection.execute(sql).fetchall()


def opened_again(database: Database) -> Database:
    """Return another connection to a store, open for writing."""
    if database.server is None:
        return open_database(database.path)
    return open_target(database.server.dsn, write=True)


def fill(target: Database, source: Database) -> None:
    """Copy every row of a library into another one, whatever their engines.

    Args:
        target: An empty store, open for writing.
        source: A SQLite library.
    """
    for table in (*schema.REQUIRED_COLUMNS, *SIDE_TABLES):
        fill_table(target.connection, source, table)


def fill_table(target: Connection | sqlite3.Connection, source: Database, table: str) -> None:
    """Copy the rows of a library's table into the one of that name, on any engine.

    Args:
        target: Where it is empty.
        source: A SQLite library.
        table: The table.
    """
    cursor = source.connection.execute(f"SELECT * FROM {table}")
    names = [f'"{column[0]}"' for column in cursor.description]
    target.executemany(
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        cursor.fetchall())
