"""Opens a database on a PostgreSQL server as a store."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from store.engine import schema
from store.engine.database import READING, SERVERS, Database
from store.engine.dialect import quoted
from store.engine.form import Form
from store.engine.server.connection import ServerConnection
from store.engine.server.dialect import Postgres
from store.engine.server.errors import ServerError
from store.engine.server.event_log import ServerEvents
from store.engine.server.host_columns import Column, host_tables, unheld
from store.engine.server.login import schemas_of, url_address
from store.engine.server.rights import question, why_only_read
from store.engine.server.schema import migrate, names, side_schema, version_in
from store.engine.server.searched import HAS_ICU, make_indexes
from store.engine.server_url import ServerTrouble, ServerUrl
from store.system.locations import data_dir

if TYPE_CHECKING:
    from store.engine.form import FormName

_TABLES = (
    "SELECT n.nspname, c.relname, a.attname,"
    " CASE WHEN coalesce(y.typtype, x.typtype, t.typtype) = 'e' THEN 'enum'"
    " ELSE coalesce(y.typname, x.typname, t.typname) END AS kind,"
    " pg_catalog.format_type(a.atttypid, a.atttypmod) AS shown,"
    " coalesce(k.collname, '') AS collation,"
    " has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE') AS readable,"
    " pg_catalog.pg_table_is_visible(c.oid) AS visible,"
    " has_schema_privilege(n.oid, 'USAGE') AS usable"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    # A domain, and one that is made of a domain.
    " LEFT JOIN pg_catalog.pg_type x ON x.oid = t.typbasetype"
    " LEFT JOIN pg_catalog.pg_type y ON y.oid = x.typbasetype"
    " LEFT JOIN pg_catalog.pg_collation k ON k.oid = a.attcollation"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped"
    f" AND c.relname IN ({', '.join(repr(name) for name in schema.REQUIRED_COLUMNS)})"
    " ORDER BY n.nspname, c.relname, a.attnum"
)
_ENCODINGS = ("UTF8", "SQL_ASCII")
"""Of databases that take any text; the second takes bytes as they come."""
_OLDER = (
    "{} has the older version {} of a store (known: {}), so it is opened read only;"
    " `backscroll --store URL`, by a role that owns the tables, migrates it")


class _Tables(NamedTuple):
    """The contract's tables in a schema.

    Attributes:
        schema: The schema.
        columns: Of each table, the names of its columns and their types.
        ids: The collation of the sessions' ids; empty where it is the database's own.
        unreadable: A right that this login lacks to read it, or None.
    """

    schema: str
    columns: Mapping[str, Mapping[str, Column]]
    ids: str
    unreadable: str | None


def open_server(
    url: ServerUrl, *, create: bool = False, write: bool = True, migrate_older: bool = False
) -> Database:
    """Return an open store on a server.

    One of an older version is read as a host's database, without our tables.

    Args:
        url: The database.
        create: Make a store's tables where there are none, and migrate older ones.
        write: False opens it read only.
        migrate_older: Migrate an older store where the login may, and make none.

    Raises:
        ServerTrouble: The server cannot be reached, or has no store; the message says which.
    """
    connection = ServerConnection(url)
    try:
        return _opened(connection, create=create, write=write, migrate_older=migrate_older)
    except BaseException as error:
        connection.close()
        if isinstance(error, ServerError):
            raise ServerTrouble(url, error.words) from None
        raise


def _opened(
    connection: ServerConnection, *, create: bool, write: bool, migrate_older: bool
) -> Database:
    url = connection.url
    tables = _tables(connection)
    contract = tables.schema if tables is not None else _home(connection)
    if tables is None:
        _require_schema(connection, contract)
    version = version_in(connection, side_schema(contract))
    if migrate_older and tables is not None and _migrated(connection, contract, version):
        tables, version = _tables(connection), schema.CURRENT_VERSION
    if create and (tables is None or version is not None) and (
        version is None or version < schema.CURRENT_VERSION
    ):
        if tables is None:
            _require_empty(connection, contract)
            _require_encoding(connection)
        migrate(connection, contract, version)
        tables, version = _tables(connection), schema.CURRENT_VERSION
    if tables is None and version is not None:
        raise ServerTrouble(url, (
            f"has only Backscroll's own tables, without the sessions in the schema {contract};"
            f" restore both from a dump, or begin anew: DROP SCHEMA"
            f" {quoted(side_schema(contract))} CASCADE"))
    if tables is None:
        raise ServerTrouble(url, f"has no store: {_where_else(connection)}")
    _require(url, tables)
    older = None
    if version is not None and version < schema.CURRENT_VERSION:
        # What reads our tables knows them as they are now.
        older, version = version, None
    connection.schemas = names(tables.schema, ours=version is not None)
    odd: tuple[str, ...] = ()
    if version is None:
        readings, odd = host_tables(tables.columns, connection.schemas)
        connection.read_host(readings, unheld(tables.columns))
    if create and write and version is not None:
        make_indexes(connection)
    form = _form(connection, tables, version)._replace(older=older)
    connection.sql = form.sql
    _take_rights(connection, tables.schema)
    refusal = _OLDER.format(url, older, schema.CURRENT_VERSION) if older is not None else (
        _why_read_only(connection, form) or _why_types(url, odd))
    reason = refusal or (None if write else READING)
    if reason is None and form.name == "own":
        ServerEvents(connection).renew()
    path = _local(connection, tables.schema)
    SERVERS[str(path)] = partial(open_server, url)
    return Database(str(path), connection, form, reason, refusal, server=url)


def _migrated(connection: ServerConnection, contract: str, version: int | None) -> bool:
    """Migrate a store of an older version; return False where it is none, or may not be changed."""
    if version is None or version >= schema.CURRENT_VERSION:
        return False
    try:
        migrate(connection, contract, version)
    except ServerError as error:
        if error.sqlite_errorcode not in (sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY):
            raise
        return False
    return True


def _tables(connection: ServerConnection) -> _Tables | None:
    """Return the contract's tables on the search path; None where there are none."""
    path = schemas_of(connection.search_path)
    found: dict[str, dict[str, dict[str, Column]]] = {}
    collations: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for place, table, column, kind, shown, collation, may_read, visible, usable in (
        connection.execute(_TABLES).fetchall()
    ):
        if (path and place not in path) or (not path and not visible):
            continue
        found.setdefault(place, {}).setdefault(table, {})[column] = Column(kind, shown)
        if (table, column) == ("chat_sessions", "id"):
            collations[place] = "" if collation == "default" else collation
        if not may_read:
            unreadable[place] = f"SELECT on the table {table}" if usable else (
                f"USAGE on the schema {place}")
    if not found:
        return None
    place = next((one for one in path if one in found), next(iter(found)))
    return _Tables(
        place, found[place], collations.get(place, ""), unreadable.get(place))


def _where_else(connection: ServerConnection) -> str:
    """Return what to say where no store is on the search path: which schema has one, or what to do.

    A new one is made on the search path.
    """
    found: dict[str, bool] = {}
    for place, table, *_, usable in connection.execute(_TABLES).fetchall():
        if table == "chat_sessions":
            found[place] = bool(usable)
    absent = "it has no table chat_sessions on its search path"
    place = next((one for one, usable in found.items() if usable), None)
    if place is not None:
        return f"{absent}, but in the schema {place}; add schema={place} to the URL to open it"
    if found:
        return (f"{absent}, but in the schema {next(iter(found))}, which this user may not use"
                " (GRANT USAGE ON SCHEMA)")
    return f"{absent}; `backscroll sync --store URL` makes one"


def _home(connection: ServerConnection) -> str:
    """Return the schema in which new tables are made."""
    if path := schemas_of(connection.search_path):
        return path[0]
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] is None:
        raise ServerTrouble(
            connection.url, "has no schema on its search path; add schema=NAME to the URL")
    return str(row[0])


def _require_schema(connection: ServerConnection, place: str) -> None:
    """Raise where there is no schema of a name; its tables would be made in another one."""
    found = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", {"1": place}).fetchone()
    if found is None:
        raise ServerTrouble(
            connection.url, f"has no schema {place}; CREATE SCHEMA {quoted(place)} makes it")


def _require_empty(connection: ServerConnection, place: str) -> None:
    """Raise where a schema holds anything, which is another program's; extensions' do not count."""
    found = [row[0] for row in connection.execute(
        "SELECT c.relname FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS"
        " (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')"
        " ORDER BY c.relname LIMIT 4", {"1": place}).fetchall()]
    if found:
        shown = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        raise ServerTrouble(connection.url, (
            f"has no store, and its schema {place} is in use ({shown}): nothing is made there;"
            " name a database of its own, or an empty schema with ?schema=NAME"))


def _require_encoding(connection: ServerConnection) -> None:
    """Raise where a new store could not hold every text."""
    ((encoding,),) = connection.execute("SELECT current_setting('server_encoding')").fetchall()
    if encoding not in _ENCODINGS:
        raise ServerTrouble(connection.url, (
            f"cannot hold every text: its encoding is {encoding}; make it with"
            " CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"))


def _require(url: ServerUrl, tables: _Tables) -> None:
    """Raise unless all of the contract's tables and columns are there."""
    if absent := [table for table in schema.REQUIRED_COLUMNS if table not in tables.columns]:
        raise ServerTrouble(url, f"has no store: it has no table {', '.join(absent)}")
    for table, required in schema.REQUIRED_COLUMNS.items():
        missing = [name for name in required if name not in tables.columns[table]]
        if missing:
            raise ServerTrouble(url, f"has no store: its table {table} has no {', '.join(missing)}")
    if tables.unreadable is not None:
        raise ServerTrouble(
            url, f"may not be read by this user: no {tables.unreadable}")


def _form(connection: ServerConnection, tables: _Tables, version: int | None) -> Form:
    kinds = [(name, column.kind) for table in tables.columns.values()
             for name, column in table.items()]
    ((icu,),) = connection.execute(f"SELECT {HAS_ICU}").fetchall()
    dialect = Postgres(
        texts=frozenset(name for name, kind in kinds
                        if name.endswith("_json") and kind not in ("json", "jsonb")),
        rewritten=frozenset(name for name, kind in kinds if kind == "jsonb"),
        version=connection.version, ids=tables.ids, icu=bool(icu),
    )  # fmt: skip
    title = "title" in tables.columns["chat_sessions"]
    hidden = "hidden_at" in tables.columns["chat_messages"]
    own = version is not None
    name: FormName = "own" if own else "grida" if title else "contract"
    columns = {table: tuple(found) for table, found in tables.columns.items()}
    return Form(name, version or 0, title and not own, hidden and not own, columns, dialect)


def _take_rights(connection: ServerConnection, contract: str) -> None:
    try:
        connection.take_rights(question(contract))
    except ServerError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_PERM:
            raise
        # Where several share a server, a role may not be shown the other databases.
        connection.take_rights(question(contract, with_settings=False))


def _why_read_only(connection: ServerConnection, form: Form) -> str | None:
    url = connection.url
    if form.is_newer and form.name == "own":
        return (
            f"{url} was written by a newer Backscroll (version {form.version}, known up to"
            f" {form.newest_known}), so it is {READING}; update Backscroll to write to it")
    return why_only_read(url, connection.rights, ours=form.name == "own")


def _why_types(url: ServerUrl, odd: tuple[str, ...]) -> str | None:
    """Return why a host's database is only read whose columns have other types; None if none has.

    Args:
        url: The database.
        odd: The columns.
    """
    if not odd:
        return None
    more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
    return (f"{url} has columns of other types than the contract's ({odd[0]}{more}),"
            f" so it is {READING}")


def _local(connection: ServerConnection, place: str) -> Path:
    """Return the path whose neighbours are kept here for a store on a server.

    There is no file at the path itself. It is the same for all URLs of a database.
    """
    try:
        (cluster,) = connection.execute(
            "SELECT CAST(system_identifier AS text) FROM pg_control_system()").fetchone()
    except Exception:
        # Some hosts forbid it: what the URL names tells servers apart then.
        cluster = url_address(connection.url)
    (database,) = connection.execute("SELECT current_database()").fetchone()
    name = blake2b(f"{cluster}/{database}/{quoted(place)}".encode(), digest_size=16).hexdigest()
    return data_dir() / "servers" / f"{name}.db"


