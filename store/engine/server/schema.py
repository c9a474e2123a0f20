"""The schema of a store on PostgreSQL, made of that of library files, and its migrations.

The contract's tables are in a schema of the user's choice, all others in a schema of their own
beside it. Versions have the numbers of ``store.engine.schema``: script ``n`` is the same
step here, in PostgreSQL's words, and what the server needs beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from store.engine import schema
from store.engine.dialect import quoted
from store.engine.server.dialect import Postgres

if TYPE_CHECKING:
    from store.engine.server.connection import ServerConnection

OURS = "backscroll"
"""The schema of our tables, for a store in the schema ``public``."""
CHANNEL = "backscroll_changes"
"""Channel of LISTEN and NOTIFY: the id of each session that changed."""
VERSION_TABLE = "store_version"
_MIGRATING = 0x42534D47
"""Key of the advisory lock of a migration."""
_OWN = Postgres()
_JSON = ("model_json", "permissions_json", "metadata_json", "data_json")
_CONTRACT_TABLES = tuple(schema.REQUIRED_COLUMNS)
_CREATED = re.compile(r"CREATE TABLE (\w+)")

SIDE_TABLES: tuple[str, ...] = tuple(
    name for script in schema.MIGRATIONS for name in _CREATED.findall(script)
    if name not in _CONTRACT_TABLES
)
"""Names of the tables beside the contract's."""

_VERSION = f"""
CREATE TABLE {VERSION_TABLE} (version BIGINT NOT NULL);
INSERT INTO {VERSION_TABLE} VALUES (0);
"""

_BEGINNING = f"""
CREATE INDEX chat_sessions_number ON chat_sessions ({_OWN.rowid()});
ALTER TABLE changes ADD COLUMN written_by xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX changes_written ON changes(written_by);
CREATE FUNCTION tell_of_change() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM pg_notify('{CHANNEL}', NEW.session_id);
    RETURN NULL;
END
$body$;
CREATE TRIGGER changes_told AFTER INSERT ON changes
    FOR EACH ROW EXECUTE FUNCTION tell_of_change();
"""
"""What the server needs beside the first script.

Sessions have no rowid there, so a list knows them by a hash of their id. Numbers of ``changes``
are given before the commit, so a poller asks by the transaction that wrote them.
"""
KEPT_TABLES = tuple(
    f"{kept}_{table}" for kept in ("undone", "deleted")
    for table in (*_CONTRACT_TABLES, "attachments")
)
"""Tables of rows that undo can bring back; in a file each is made with its first row."""
EVENT_TABLES = ("events", "event_log")
"""Tables of the event log, which are made when it is switched on."""
_KEPT = "".join(
    f"CREATE TABLE {name} (verb_seq BIGINT NOT NULL, LIKE {name.partition('_')[2]});\n"
    f"CREATE INDEX {name}_verb ON {name}(verb_seq);\n"
    for name in KEPT_TABLES
)
_MORE = {0: _BEGINNING + _KEPT}


def side_schema(contract: str) -> str:
    """Return the schema of our tables, for that of the contract's."""
    return OURS if contract == "public" else f"{contract}_{OURS}"


def names(contract: str, *, ours: bool) -> dict[str, str]:
    """Return what the store's tables are called on a server, by their names in statements.

    Args:
        contract: The schema of the contract's tables.
        ours: Whether our tables are beside them.
    """
    found = {table: f"{quoted(contract)}.{table}" for table in _CONTRACT_TABLES}
    if ours:
        side = quoted(side_schema(contract))
        ours_too = (*SIDE_TABLES, *KEPT_TABLES, *EVENT_TABLES, VERSION_TABLE)
        found |= {table: f"{side}.{table}" for table in ours_too}
    return found


def tables_there(connection: ServerConnection) -> dict[str, str]:
    """Return what the store's tables are called on the server, without those of no event log.

    Args:
        connection: The store.
    """
    there = dict(connection.schemas)
    for name in EVENT_TABLES:
        ((found,),) = connection.execute(
            "SELECT to_regclass(CAST(? AS text)) IS NOT NULL", (there.get(name, name),)).fetchall()
        if not found:
            there.pop(name, None)
    return there


def columns_now(connection: ServerConnection, table: str) -> dict[str, str]:
    """Return the types of a table's columns by their names, in order.

    Another program may have added or dropped some since the store was opened.

    Args:
        connection: The store.
        table: The table, as in statements.
    """
    return dict(connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
        " WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (connection.schemas.get(table, table),)).fetchall())


def computed_columns(connection: ServerConnection, table: str) -> dict[str, bool]:
    """Return which columns of a table the server fills in itself, and whether it numbers rows.

    It takes no value for others, and a row's number only by ``OVERRIDING SYSTEM VALUE``.

    Args:
        connection: The store.
        table: The table, as in statements.
    """
    return {name: bool(numbers) for name, numbers in connection.execute(
        "SELECT attname, attidentity <> '' FROM pg_catalog.pg_attribute"
        " WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
        " AND (attgenerated <> '' OR attidentity <> '')",
        (connection.schemas.get(table, table),)).fetchall()}


def script(version: int) -> str:
    """Return the script that migrates a store from a version to the next."""
    turned = schema.MIGRATIONS[version]
    turned = turned.replace(schema.ANSWER_NAME, f"({_answer()})")
    turned = turned.replace(schema.SOURCE_KIND, _fact("source.kind"))
    turned = turned.replace(schema.SOURCE_ID, _fact("source.id"))
    for pattern, word in _TYPES:
        turned = pattern.sub(word, turned)
    return turned + _MORE.get(version, "")


def _fact(path: str) -> str:
    return f"({_OWN.fact('metadata_json', path)})"


def _answer() -> str:
    return _OWN.first_fact("metadata_json", "source.answer[0]", "inherited_from")


_TYPES = [(re.compile(pattern), word) for pattern, word in (
    (r"INTEGER PRIMARY KEY( AUTOINCREMENT)?",
     "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    (r"\bINTEGER\b", "BIGINT"), (r"\bREAL\b", "DOUBLE PRECISION"), (r"\bBLOB\b", "BYTEA"),
    (rf"\b({'|'.join(_JSON)})(\s+)TEXT\b", r"\1\2JSON"),
    (r"\bTEXT\b", 'TEXT COLLATE "C"'), (r"\) WITHOUT ROWID", ")"),
)]  # fmt: skip
"""What SQLite's words of a table are on PostgreSQL; its texts are in the order of bytes."""


def migrate(connection: ServerConnection, contract: str, version: int | None) -> None:
    """Make a store, or migrate one to the current version.

    Everything is one transaction under a lock, so that several clients may do it at once and
    a killed one leaves the store as it was.

    Args:
        connection: Open for writing.
        contract: The schema of the contract's tables.
        version: The store's version; None where there is none yet.
    """
    side = side_schema(contract)
    connection.script(
        f"BEGIN; SELECT pg_advisory_xact_lock({_MIGRATING});"
        f" SET LOCAL search_path = {quoted(contract)}, {quoted(side)}")
    try:
        found = version_in(connection, side)
        if found is None:
            connection.script(
                f"CREATE SCHEMA IF NOT EXISTS {quoted(side)};"
                f" SET LOCAL search_path = {quoted(side)};{_VERSION}"
                f" SET LOCAL search_path = {quoted(contract)}, {quoted(side)}")
            found = 0
        for step in range(found, schema.CURRENT_VERSION):
            for part in _by_schema(script(step), contract, side):
                # An index of a large store takes longer than any answer.
                connection.script(part, patient=True)
        connection.script(
            f"UPDATE {quoted(side)}.{VERSION_TABLE} SET version = {schema.CURRENT_VERSION};"
            " COMMIT")
    except BaseException:
        if not connection.is_closed and connection.in_transaction:
            connection.script("ROLLBACK")
        raise


def _by_schema(text: str, contract: str, side: str) -> list[str]:
    """Return a script in parts, each creating its tables in the schema of theirs."""
    parts = re.split(r"(?=CREATE TABLE )", text)
    found = []
    for part in parts:
        made = _CREATED.match(part)
        own = made is None or made[1] not in _CONTRACT_TABLES
        path = (side, contract) if own else (contract, side)
        found.append(f"SET LOCAL search_path = {', '.join(map(quoted, path))}; {part}")
    return found


def version_in(connection: ServerConnection, side: str) -> int | None:
    """Return the version of the store whose side tables are in a schema; None without any.

    Args:
        connection: The server.
        side: The schema.
    """
    there = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2"
        " AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')",
        {"1": side, "2": VERSION_TABLE},
    ).fetchone()
    if there is None:
        return None
    row = connection.execute(f'SELECT version FROM {quoted(side)}."{VERSION_TABLE}"').fetchone()
    return None if row is None else int(row[0])
