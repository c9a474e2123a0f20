"""Whether a login may write to a store on a server, which may change while the store is open.

A standby is promoted, rights are granted and revoked, and transactions that only read are switched
on and off. Whoever keeps a connection compares what the server says now with what it said when the
connection was made, and opens the store again where that differs.
"""

from __future__ import annotations

from typing import NamedTuple

from store.engine import schema
from store.engine.database import READING
from store.engine.dialect import quoted_text
from store.engine.server.schema import VERSION_TABLE, side_schema
from store.engine.server_url import ServerUrl

ASKED_EVERY_S = 2.0
_CONTRACT, _OURS = ("SELECT", "INSERT", "UPDATE"), ("INSERT",)
"""What a role needs on each table that every change writes."""
_WRITTEN = ("changes",)
"""Side tables that every change writes; a recorder needs no others."""


class Rights(NamedTuple):
    """What a server lets a login do; each as a text of the server.

    Attributes:
        is_standby: ``true`` on a server that follows another one.
        only_reads: ``on`` where transactions cannot write.
        lacking: The first right that is missing to write, such as ``UPDATE on chat_sessions``;
            empty where none is.
        has_ours: ``true`` where it may use our tables, which are beside the contract's.
        settings: What a role or a database gives its next connections.
    """

    is_standby: str
    only_reads: str
    lacking: str
    has_ours: str
    settings: str


def question(contract: str, *, ours: bool) -> str:
    """Return a statement that finds the rights, as one text.

    Args:
        contract: The schema of the contract's tables.
        ours: Whether our tables are beside them.
    """
    needed = [(contract, table, right)
              for table in schema.REQUIRED_COLUMNS for right in _CONTRACT]
    side = side_schema(contract)
    if ours:
        needed += [(side, table, right) for table in _WRITTEN for right in _OURS]
    rows = ", ".join(
        f"({place}, {', '.join(map(quoted_text, each))})" for place, each in enumerate(needed))
    return (
        "SELECT concat_ws(chr(10), CAST(pg_is_in_recovery() AS text),"
        " current_setting('transaction_read_only'), coalesce((SELECT w.needed || ' on ' || w.name"
        f" FROM (VALUES {rows}) AS w (place, home, name, needed)"
        " LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = w.home"
        " LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name"
        " WHERE (has_schema_privilege(n.oid, 'USAGE')"
        " AND has_any_column_privilege(c.oid, w.needed)) IS NOT TRUE"
        " ORDER BY w.place LIMIT 1), ''), CAST(EXISTS (SELECT 1 FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE"
        f" n.nspname = {quoted_text(side)} AND c.relname = {quoted_text(VERSION_TABLE)}"
        " AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))"
        " AS text), coalesce((SELECT string_agg(CAST(s.setconfig AS text),"
        " ' ' ORDER BY s.setdatabase, s.setrole) FROM pg_catalog.pg_db_role_setting s"
        " WHERE (s.setdatabase = 0 OR s.setdatabase ="
        " (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))"
        " AND (s.setrole = 0 OR s.setrole ="
        " (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = session_user))), ''))")


def why_only_read(url: ServerUrl, found: str) -> str | None:
    """Return why a store cannot be written; None where it can.

    Args:
        url: The store, for the words.
        found: What ``question`` found.
    """
    rights = Rights(*found.split("\n", 4))
    if rights.is_standby == "true":
        return f"{url} is a standby server, so it is {READING}"
    if rights.only_reads == "on":
        return f"{url} lets this role only read (default_transaction_read_only), so it is {READING}"
    if rights.lacking:
        return f"your role may only read {url} (no {rights.lacking}), so it is {READING}"
    return None
