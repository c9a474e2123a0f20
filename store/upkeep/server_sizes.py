"""What a store takes on a server, and how the server is set up for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from store.engine.database import Database
from store.engine.server.schema import tables_there
from store.engine.server.searched import indexes_of
from store.engine.snapshots import Progress, no_progress

SETTINGS = (
    "server_version", "server_encoding", "max_connections", "statement_timeout",
    "idle_in_transaction_session_timeout", "default_transaction_isolation",
    "default_transaction_read_only", "synchronous_commit", "fsync", "full_page_writes",
    "autovacuum", "wal_level", "shared_buffers", "work_mem",
)  # fmt: skip
COUNTED_UP_TO = 5_000_000
"""A table with more rows by the server's estimate is not counted."""
_PARTS = (
    "SELECT to_regclass($1) AS relid UNION SELECT relid FROM pg_partition_tree(to_regclass($1))"
)
_SIZES = (
    "SELECT coalesce(sum(pg_total_relation_size(r.relid)), 0),"
    " coalesce(sum(pg_indexes_size(r.relid)), 0), coalesce(sum(greatest(c.reltuples, 0)), 0)"
    f" FROM ({_PARTS}) r JOIN pg_catalog.pg_class c ON c.oid = r.relid AND c.relkind <> 'p'"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a store on a server.

    Attributes:
        name: Its name in the store.
        place: Its name on the server, with its schema.
        size: Bytes with indexes and long values.
        indexes: Bytes of these that are indexes.
        rows: How many it has.
        is_estimate: Whether that is the server's estimate.
    """

    name: str
    place: str
    size: int
    indexes: int
    rows: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class ServerSizes:
    """What a store takes on a server.

    Attributes:
        tables: All of its tables.
        database: Bytes of the whole database; None where the role may not know.
        settings: Values of the server by name.
        search: What searches have there: "words", "newest".
    """

    tables: list[Table]
    database: int | None
    settings: Mapping[str, str]
    search: Mapping[str, bool]

    @property
    def total(self) -> int:
        """Bytes of all tables."""
        return sum(table.size for table in self.tables)


def server_sizes(database: Database, progress: Progress = no_progress) -> ServerSizes:
    """Return what an open store takes on its server.

    Args:
        database: The store.
        progress: Told while rows are counted.
    """
    connection = database.remote
    tables = []
    there = tables_there(connection)
    for done, (name, place) in enumerate(there.items()):
        progress("checking", done, len(there))
        size, indexes, about = connection.execute(_SIZES, {"1": place}).fetchone()
        rows, large = int(about), about > COUNTED_UP_TO
        if not large:
            (rows,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
        tables.append(Table(name, place, int(size), int(indexes), rows, large))
    (whole,) = connection.execute(
        "SELECT CASE WHEN has_database_privilege(current_database(), 'CONNECT')"
        " THEN pg_database_size(current_database()) END").fetchone()
    settings = {name: value for name in SETTINGS for (value,) in connection.execute(
        "SELECT current_setting(?, true)", (name,)) if value is not None}
    (role,) = connection.execute("SELECT current_user").fetchone()
    indexed = indexes_of(connection)
    return ServerSizes(
        tables, whole, settings | {"role": role},
        {"words": indexed.words, "newest": indexed.newest})
