"""Stores on both engines for tests: a SQLite file, and a database of a real server."""

from __future__ import annotations

from store.engine import schema
from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.engine.server.schema import SIDE_TABLES
from tests.sources.postgres_server import Server

ENGINES = ("sqlite", "postgresql")
_TEMPLATE = "store_template"
_made: set[Server] = set()


def new_server_store(server: Server) -> str:
    """Return the URL of a new empty store on a server."""
    if server not in _made:
        server.admin.execute(f"CREATE DATABASE {_TEMPLATE}")
        url = server.admin.url.replace("/postgres?", f"/{_TEMPLATE}?")
        open_target(url, create=True, write=True).close()
        _made.add(server)
    return server.database(_TEMPLATE).url


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
    connection = target.connection
    for table in (*schema.REQUIRED_COLUMNS, *SIDE_TABLES):
        cursor = source.connection.execute(f"SELECT * FROM {table}")
        names = [f'"{column[0]}"' for column in cursor.description]
        connection.executemany(
            f"INSERT INTO {table} ({', '.join(names)})"
            f" VALUES ({', '.join('?' * len(names))})", cursor.fetchall())

