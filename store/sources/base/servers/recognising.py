"""Tells what a database on a server is, by its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    servers, readers = Servers(), list[ServerSource]()
    try:
        with servers.reading(url) as reader:
            for source in sources:
                if isinstance(source, ServerSource):
                    readers.append(source)
                    if source.knows(reader):
                        return source
            left_out = f" ({url.left_out})" if url.left_out else ""
            raise ServerTrouble(url, _what_it_is(reader, readers) + left_out)
    finally:
        servers.close_all()


def _what_it_is(reader: PostgresRows, sources: Sequence[ServerSource]) -> str:
    tables, labels = sorted(reader.tables()), [source.label for source in sources]
    if set(tables) >= _STORE:
        return (
            f"is a store, not a database of {' or '.join(labels)}: `backscroll URL` opens it, and"
            " `backscroll copy URL library` brings its sessions to your library"
        )
    known, hidden = " or ".join(labels), _off_the_path(reader, sources)
    if not tables:
        return f"has no tables on its search path: {hidden or f'no database of {known}'}"
    named = ", ".join(neutral(name) for name in tables[:_NAMED])
    more = f" and {len(tables) - _NAMED} more" if len(tables) > _NAMED else ""
    return f"is no database of {known}: " + (hidden or f"it has the tables {named}{more}")


class _Schema:
    """The tables of a schema that is off the search path."""

    def __init__(self, tables: Mapping[str, frozenset[str]]) -> None:
        self._tables = tables

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where the table is missing."""
        return self._tables.get(table, frozenset())


def _off_the_path(reader: PostgresRows, sources: Sequence[ServerSource]) -> str:
    """Return which schemas have the tables of a source, and the way to them."""
    found = [
        (schema, source.label) for schema, tables in reader.elsewhere().items()
        for source in sources if source.knows(_Schema(tables))
    ]  # fmt: skip
    if not found:
        return ""
    words = [f"the tables of {label} are in the schema {neutral(name)}" for name, label in found]
    usable = reader.usable_schemas()
    name = next((neutral(one) for one, _ in found if one in usable), None)
    way = f"add schema={name} to the URL to read it" if name is not None else (
        "this user may not use it (GRANT USAGE ON SCHEMA)")
    return f"{', and '.join(words)}; {way}"
