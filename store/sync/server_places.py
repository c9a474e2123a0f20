"""Which database the URL of a server leads to, as the library knows it.

Two spellings of a URL (another name of the host, another user, a socket) are one place, and a
URL that leads to another database than before is another one. A database is identified
by the identifier of its cluster, its name, and the schema of its tables.
"""

from __future__ import annotations

import os

from store.engine.connection import Connection
from store.engine.database import Database
from store.engine.server_url import MARK, ServerTrouble, ServerUrl, server_url
from store.sources.base.one_file import is_one_file
from store.sources.base.protocol import ServerSource, Source
from store.sync.jsontext import clean
from store.sync.locking import transaction

_OF_A_ROOT = (
    "source_units", "source_problems", "unit_files", "unit_facts", "unit_wants", "unit_news",
)
"""Tables with the state of what was read from a root."""


def known_place(
    database: Database, source: Source, url: ServerUrl, *, write: bool = True
) -> ServerUrl:
    """Return a URL under the name by which the library knows its database.

    A server that does not answer is taken for what it was the last time.

    Args:
        database: The library.
        source: Reads the server.
        url: The URL as it is named.
        write: Whether a database that is new is noted.
    """
    if database.form.name != "own" or not _has_table(database.connection):
        return url
    row, identity = _last(database, url), _identity(source, url)
    if identity is None or (row is not None and row[0] == identity):
        return url if row is None else url.known_as(row[1])
    place = _place_of(database.connection, identity, url)
    if write:
        _note(database, source.kind, url, identity, place)
    return url.known_as(place)


def last_place(database: Database, url: ServerUrl) -> ServerUrl:
    """Return a URL under the name by which the library knew its database the last time."""
    row = _last(database, url) if _has_table(database.connection) else None
    return url if row is None else url.known_as(row[1])


def _last(database: Database, url: ServerUrl) -> tuple[str, str] | None:
    """Return the identity and the place of the database that a URL led to the last time."""
    row: tuple[str, str] | None = database.connection.execute(
        "SELECT identity, place FROM source_servers WHERE root = ? ORDER BY rowid DESC", (url.text,)
    ).fetchone()
    return row


def is_settled(database: Database, source: Source, url: ServerUrl) -> bool:
    """Return whether the library knows a URL's database by the name that the URL has.

    Args:
        database: The library.
        source: Reads the server.
        url: The URL.
    """
    return known_place(database, source, url, write=False).text == url.text and (
        database.connection.execute(
            "SELECT 1 FROM source_servers WHERE place = ?", (url.text,)
        ).fetchone() is not None
    )  # fmt: skip


def is_there(connection: Connection, path: str) -> bool:
    """Return whether a session's file exists, or the library knows the server of its place."""
    if server_url(path) is None:
        return os.path.exists(path)
    return _identity_of(connection, path) is not None


def is_one_place(connection: Connection, one: str, other: str) -> bool:
    """Return whether two paths lead to one file, or two URLs to one database.

    Args:
        connection: The library's.
        one: A path or URL.
        other: Another one.
    """
    identity = _identity_of(connection, one)
    if identity is not None:
        return identity == _identity_of(connection, other)
    return is_one_file(one, other)


def _identity(source: Source, url: ServerUrl) -> str | None:
    if not isinstance(source, ServerSource):
        return None
    try:
        return source.identity_on(url)
    except ServerTrouble:
        # Its listing says why.
        return None


def _place_of(connection: Connection, identity: str, url: ServerUrl) -> str:
    """Return the name of a database that the URL leads to."""
    row = connection.execute(
        "SELECT place FROM source_servers WHERE identity = ? ORDER BY rowid LIMIT 1", (identity,)
    ).fetchone()
    if row is not None:
        return str(row[0])
    text = url.text.partition(MARK)[0]
    taken = connection.execute("SELECT 1 FROM source_servers WHERE place = ?", (text,)).fetchone()
    return text if taken is None else f"{text}{MARK}{identity}"


def _note(database: Database, kind: str, url: ServerUrl, identity: str, place: str) -> None:
    """Note where a URL leads; what was read by another spelling is the place's from now on."""
    connection = database.connection
    with transaction(connection, database.path):
        known = connection.execute(
            "SELECT 1 FROM source_servers WHERE root = ?", (url.text,)
        ).fetchone()
        connection.execute(
            "DELETE FROM source_servers WHERE root = ? AND identity = ?", (url.text, identity)
        )
        connection.execute(
            "INSERT INTO source_servers(root, identity, place) VALUES (?, ?, ?)",
            (url.text, identity, place),
        )
        if known is None and place != url.text:
            for table in _OF_A_ROOT:
                connection.execute(
                    f"DELETE FROM {table} WHERE kind = ? AND root = ?", (kind, clean(url.text))
                )


def _has_table(connection: Connection) -> bool:
    """Return whether a library has the table; one of an older version has not."""
    return connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'source_servers'"
    ).fetchone() is not None  # fmt: skip


def _identity_of(connection: Connection, path: str) -> str | None:
    if server_url(path) is None:
        return None
    row = connection.execute(
        "SELECT identity FROM source_servers WHERE place = $1 OR root = $1"
        " ORDER BY place = $1 DESC, rowid DESC LIMIT 1", {"1": path},
    ).fetchone()  # fmt: skip
    return None if row is None else str(row[0])
