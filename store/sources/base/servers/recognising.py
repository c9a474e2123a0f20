"""Tells what a database on a server is, by its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from store.engine.server_url import ServerTrouble, ServerUrl
from store.sources.base.protocol import ServerSource, Source
from store.sources.base.servers.connection import PostgresRows, Servers
from store.text.neutral import neutral

_STORE = frozenset(("chat_sessions", "chat_messages", "chat_parts"))
_NAMED = 5
"""So many tables are named of a database that nobody knows."""


def recognised(url: ServerUrl, sources: Iterable[Source]) -> Source:
    """Return the source that a database is of.

    Raises:
        ServerTrouble: It cannot be read, or is of none; the message says what it is.
    """
    servers, labels = Servers(), []
    try:
        with servers.reading(url) as reader:
            for source in sources:
                if isinstance(source, ServerSource):
                    labels.append(source.label)
                    if source.knows(reader):
                        return source
            raise ServerTrouble(url, _what_it_is(reader, labels))
    finally:
        servers.close_all()


def _what_it_is(reader: PostgresRows, labels: Sequence[str]) -> str:
    tables = sorted(reader.tables())
    if set(tables) >= _STORE:
        return (
            "is a three-table store on PostgreSQL, which this version cannot open: "
            f"it opens stores in SQLite files, and reads {' and '.join(labels)} from PostgreSQL"
        )
    known = " or ".join(labels)
    if not tables:
        return f"has no tables on its search path: no database of {known}"
    named = ", ".join(neutral(name) for name in tables[:_NAMED])
    more = f" and {len(tables) - _NAMED} more" if len(tables) > _NAMED else ""
    return f"is no database of {known}: it has the tables {named}{more}"
