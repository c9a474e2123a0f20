"""Examines a store on a server: its rows, its indexes, and what its role may do.

The server examines its own files (pg_amcheck) and keeps its own space free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from store.engine.opening import open_target
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.server.schema import EVENT_TABLES, tables_there
from store.engine.server.searched import indexes_of, make_indexes, trigrams
from store.engine.server_url import ServerUrl
from store.system.clock import Clock, system_clock
from store.text.figures import count_of
from store.upkeep import doctor
from store.upkeep.doctor import Check, Examined, Finding, Name, Patient

_NEEDED = "SELECT, INSERT, UPDATE, DELETE"
"""What a role that writes needs on each table."""


def examine_server(
    url: ServerUrl, *, fix: bool = False, quick: bool = False, clock: Clock = system_clock,
    telling: Callable[[Name], None] = lambda check: None,
) -> Examined:
    """Return what is not as it should be with a store on a server, and what is kept of it here.

    Args:
        url: The store.
        fix: Whether to mend what can be mended without loss.
        quick: Whether to leave out what reads every row.
        clock: Gives the present.
        telling: Takes the check that begins.

    Raises:
        StoreError: The server cannot be reached, or has no store.
    """
    with contextlib.closing(open_target(url.dsn, write=fix)) as database:
        return doctor.examine(
            database, fix=fix and database.read_only is None, quick=quick, clock=clock,
            telling=telling, checks=CHECKS)


def _tables(patient: Patient) -> list[str]:
    """Return the names of the store's tables on the server."""
    return list(tables_there(patient.database.remote).values())


def _integrity(patient: Patient) -> Iterator[Finding]:
    """Yield indexes that the server does not use, as after a crash while one was made."""
    broken = [name for table in _tables(patient) for (name,) in patient.rows(
        "SELECT CAST(i.indexrelid AS regclass)::text FROM pg_catalog.pg_index i"
        " WHERE i.indrelid = to_regclass(?) AND NOT i.indisvalid", table)]
    if broken:
        yield Finding(
            "integrity", f"{len(broken):,} indexes were not finished, and are not used"
            f" ({', '.join(broken[:3])})",
            f"`REINDEX INDEX CONCURRENTLY {broken[0]}` in psql makes it again; the server's own"
            " files are examined by pg_amcheck", len(broken), is_note=True)


def _foreign_keys(patient: Patient) -> Iterator[Finding]:
    if patient.quick:
        return
    for table, column, parent in (
        ("chat_messages", "session_id", "chat_sessions"),
        ("chat_parts", "message_id", "chat_messages"),
        ("chat_parts", "session_id", "chat_sessions"),
    ):
        ((count,),) = patient.rows(
            f"SELECT count(*) FROM {table} r WHERE NOT EXISTS"
            f" (SELECT 1 FROM {parent} p WHERE p.id = r.{column})")
        if count:
            yield Finding(
                "foreign keys", f"{count_of(count, 'row')} of {table} without a row of {parent}",
                "somebody deleted rows without foreign keys; restore a dump, or keep them: they"
                " are not shown", count)


def _index(patient: Patient) -> Iterator[Finding]:
    """Yield what makes searches slow."""
    connection = patient.database.remote
    there = indexes_of(connection)
    if not patient.is_own:
        return
    if not there.folds:
        yield Finding(
            "search index", "the server cannot fold texts, so a search reads every row",
            "use a server of version 13 or newer, built with ICU, and a database in UTF8",
            is_note=True)
    lacking = [words for has, words in (
        (there.newest, "of the newest messages"), (there.words or not there.folds, "of words"))
        if not has]
    if not lacking:
        return
    if there.folds and not there.words and trigrams(connection) is None:
        way_out = "`CREATE EXTENSION pg_trgm` in psql, by an administrator; then --fix"
    else:
        way_out = patient.fixes("makes it, by the role that owns the tables")
    yield Finding(
        "search index", f"the index {' and that '.join(lacking)} is missing, so searches take"
        " longer", way_out, len(lacking), lambda: make_indexes(connection), is_note=True)


def _permissions(patient: Patient) -> Iterator[Finding]:
    """Yield what the role lacks, and what everybody has."""
    # Whoever may write rows writes their events, by the functions of who switched the log on.
    needed = [place for name, place in tables_there(patient.database.remote).items()
              if name not in EVENT_TABLES]
    lacking = [table for table in needed for (has,) in patient.rows(
        "SELECT " + " AND ".join(f"has_table_privilege(to_regclass(?), '{one}')"
                                 for one in _NEEDED.split(", ")),
        *[table] * len(_NEEDED.split(", "))) if not has]
    contract = {patient.database.remote.schemas[name] for name in REQUIRED_COLUMNS}
    ((role, standby),) = patient.rows("SELECT quote_ident(current_user), pg_is_in_recovery()")
    if standby:
        yield Finding("permissions", "it is a standby server, which can only be read",
                      "name the primary server to change anything", is_note=True)
    elif lacking and contract & set(lacking):
        yield Finding("permissions", f"the role {role} may only read the sessions",
                      "if that is not intended, grant it the rights in docs/teams.md",
                      len(lacking), is_note=True)
    elif lacking:
        yield Finding(
            "permissions", f"the role {role} may change sessions, but not all that a change writes"
            f" ({', '.join(lacking[:3])})",
            f"`GRANT {_NEEDED} ON {lacking[0]} TO {role}` in psql, by the role that owns it",
            len(lacking))
    public = [table for table in _tables(patient) for (has,) in patient.rows(
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN LATERAL"
        " aclexplode(c.relacl) a ON a.grantee = 0 WHERE c.oid = to_regclass(?))", table) if has]
    if public:
        yield Finding(
            "permissions", f"{len(public):,} tables are open to every role ({public[0]})",
            f"`REVOKE ALL ON {public[0]} FROM PUBLIC` in psql, if that is not intended",
            len(public), is_note=True)


CHECKS: dict[Name, Check] = {
    "integrity": _integrity, "foreign keys": _foreign_keys, "orphans": doctor.orphans,
    "rollups": doctor.sums, "search index": _index, "statistics": doctor.kept_statistics,
    "permissions": _permissions, "running sessions": doctor.running,
    "event log": doctor.event_log, "json": doctor.damaged_json,
}  # fmt: skip
