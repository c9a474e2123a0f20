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
_USAGE, _RIGHT = "has_schema_privilege(n.oid, 'USAGE')", "has_any_column_privilege(c.oid, '{}')"

_SETTINGS = (
    "coalesce((SELECT string_agg(CAST(s.setconfig AS text), ' ' ORDER BY s.setdatabase, s.setrole)"
    " FROM pg_catalog.pg_db_role_setting s"
    " WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d"
    " WHERE d.datname = current_database()))"
    " AND s.setrole IN (0, to_regrole(quote_ident(session_user)))), '')")
_NONE = "''"


class Rights(NamedTuple):
    """What a server lets a login do; each as a text of the server.

    Attributes:
        is_standby: ``true`` on a server that follows another one.
        only_reads: ``on`` where transactions cannot write.
        tables: The tables with a store's names in the schemas of the contract's and ours, each
            with its rights: ``contract chat_sessions SELECT``, with a semicolon between two.
        settings: What a role or a database gives its next connections; empty where the login may
            not read that.
    """

    is_standby: str
    only_reads: str
    tables: str
    settings: str

    def lacking(self, *, ours: bool) -> str | None:
        """Return the first right that is missing to write, such as ``UPDATE on chat_sessions``.

        Args:
            ours: Whether our tables were found beside the contract's.
        """
        had = {(place, table): rights for place, table, *rights in map(
            str.split, filter(None, self.tables.split(";")))}
        if not ours and ("ours", VERSION_TABLE) in had:
            # They are there, but were not found: what is written without them is in no log.
            return "rights on Backscroll's own tables"
        needed: list[tuple[str, str, tuple[str, ...]]] = [
            ("contract", table, _CONTRACT) for table in schema.REQUIRED_COLUMNS]
        needed += [("ours", table, _OURS) for table in _WRITTEN if ours]
        return next((
            f"{right} on {table}" for place, table, rights in needed for right in rights
            if right not in had.get((place, table), ())), None)


def question(contract: str, *, with_settings: bool = True) -> str:
    """Return a statement that finds the rights, as one text.

    Args:
        contract: The schema of the contract's tables.
        with_settings: Whether to ask for ``Rights.settings``, which needs SELECT on
            ``pg_database`` and ``pg_db_role_setting``; all roles have that by default.
    """
    names = ", ".join(map(quoted_text, (*schema.REQUIRED_COLUMNS, *_WRITTEN, VERSION_TABLE)))
    own, side = quoted_text(contract), quoted_text(side_schema(contract))
    rights = ", ".join(
        f"CASE WHEN {_USAGE} AND {_RIGHT.format(right)} THEN '{right}' END" for right in _CONTRACT)
    return (
        "SELECT concat_ws(chr(10), CAST(pg_is_in_recovery() AS text),"
        " current_setting('transaction_read_only'), coalesce((SELECT string_agg(concat_ws(' ',"
        f" CASE WHEN n.nspname = {own} THEN 'contract' ELSE 'ours' END, c.relname, {rights}),"
        " ';' ORDER BY c.relname, n.nspname) FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE c.relname IN ({names}) AND n.nspname IN ({own}, {side})), ''),"
        f" {_SETTINGS if with_settings else _NONE})")


def why_only_read(url: ServerUrl, found: str, *, ours: bool) -> str | None:
    """Return why a store cannot be written; None where it can.

    Args:
        url: The store, for the words.
        found: What ``question`` found.
        ours: Whether our tables are beside the contract's.
    """
    rights = Rights(*found.split("\n", 3))
    if rights.is_standby == "true":
        return f"{url} is a standby server, so it is {READING}"
    if rights.only_reads == "on":
        return f"{url} lets this role only read (default_transaction_read_only), so it is {READING}"
    if (lacking := rights.lacking(ours=ours)) is not None:
        return f"your role may only read {url} (no {lacking}), so it is {READING}"
    return None
