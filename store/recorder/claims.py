"""One recorder for each session of a store on a server, whichever machine it runs on.

A connection of its own holds an advisory lock as long as it lasts. A pooler gives each transaction
another connection: there a row says which recorder has the session and for how long, and each
batch renews it in its own transaction. Either way the other kind is seen too.
"""

from __future__ import annotations

import json
import sqlite3
import uuid

from store.engine.database import Database
from store.engine.transactions import primary_code
from store.errors import Refused
from store.system.processes import Process, is_alive

LEASE_MS = 600_000
"""How long a session stays its recorder's behind a pooler after the last batch."""
_LEFT_MS = 86_400_000
"""Rows of recorders that ended without deleting theirs are deleted after so long."""
_KEY = "hashtextextended(CAST($name AS text), 0)"
_HOLDER = "hashtextextended(CAST($holder AS text), 0)"
_END_OWN = (
    "WITH held AS (SELECT pid, (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) AS key"
    " FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND database ="
    " (SELECT oid FROM pg_database WHERE datname = current_database()))"
    " SELECT pg_terminate_backend(own.pid) FROM held AS own JOIN held AS other"
    f" ON other.pid = own.pid WHERE own.key = {_HOLDER} AND other.key = {_KEY}"
)
"""Ends a connection of a recorder that the server has not missed yet: the network was gone."""
_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_RENEW = (
    "INSERT INTO recorder_leases(session_id, holder_json, ends_at)"
    f" SELECT CAST($session AS text), CAST($holder AS text), {_NOW} + {LEASE_MS}"
    " WHERE {condition}"
    " ON CONFLICT (session_id) DO UPDATE"
    " SET holder_json = excluded.holder_json, ends_at = excluded.ends_at"
    " WHERE recorder_leases.holder_json = excluded.holder_json"
    f" OR recorder_leases.ends_at < {_NOW} RETURNING 1"
)
_OTHERS = (
    "SELECT holder_json FROM recorder_leases WHERE session_id = $session"
    " AND holder_json <> $holder"
    f" AND ends_at >= {_NOW}"
)
_DELETE = "DELETE FROM recorder_leases WHERE session_id = $session AND holder_json = $holder"


def new_holder(process: Process) -> str:
    """Return what names a recorder of a process, as JSON.

    Args:
        process: The process.
    """
    return json.dumps(process.as_json() | {"recorder": uuid.uuid4().hex})


def renewal(condition: str) -> str:
    """Return the SQL that renews a lease, for a statement that does more; a row says that it did.

    Args:
        condition: When it does, besides that nobody else may have the session. ``$name`` is that
            of ``values``, ``$session`` the session's id and ``$holder`` the recorder.
    """
    return _RENEW.format(condition=f"{condition} AND pg_try_advisory_xact_lock({_KEY})")


def may_write(db: Database, session_id: str) -> bool:
    """Return whether a recorder has its session, or ``renewal`` finds out.

    Args:
        db: A writing connection to a server.
        session_id: The session's id.
    """
    return session_id in db.remote.claimed


def values(db: Database, session_id: str, holder: str) -> dict[str, str]:
    """Return the values of ``renewal`` beside the session's id.

    Args:
        db: A writing connection to a server.
        session_id: The session's id.
        holder: The recorder.
    """
    return {"name": _name(db, session_id), "holder": holder}


def claim(db: Database, session_id: str, holder: str) -> bool:
    """Take a session of a store on a server for a recorder, or make sure that it still has it.

    Args:
        db: A writing connection, in a transaction.
        session_id: The session's id.
        holder: The recorder, of ``new_holder``.

    Returns:
        Whether it is on a server; a recorder on a file is known by its process.

    Raises:
        Refused: Another recorder has the session, on this or another machine.
    """
    if db.server is None:
        return False
    claimed, pooled = db.remote.claimed, db.remote.is_pooled
    if session_id in claimed and not pooled:
        return True
    # Behind a pooler the lock ends with the transaction; it only shows that nobody has it.
    lock = "pg_try_advisory_xact_lock" if pooled else "pg_try_advisory_lock"
    (taken,) = db.connection.execute(
        f"SELECT {lock}({_KEY})", {"name": _name(db, session_id)}).fetchone()
    if not taken and (pooled or not _taken_back(db, session_id, holder)):
        raise _refused(db, session_id)
    if not pooled:
        db.connection.execute(f"SELECT pg_advisory_lock({_HOLDER})", {"holder": holder})
    if db.form.name == "own":
        if session_id not in claimed:
            db.connection.execute(
                f"DELETE FROM recorder_leases WHERE ends_at < {_NOW} - {_LEFT_MS}")
        try:
            _be_alone(db, session_id, holder, renew=pooled)
        except Refused:
            if not pooled:
                _unlock(db, session_id, holder)
            raise
    claimed.add(session_id)
    return True


def _taken_back(db: Database, session_id: str, holder: str) -> bool:
    """Take the lock of a recorder's lost connection; return False where another one has it.

    Args:
        db: A writing connection, in a transaction.
        session_id: The session's id.
        holder: The recorder.
    """
    # A login that acts as its team may end its connections by its own name alone.
    db.remote.script("SAVEPOINT ending; SET LOCAL ROLE NONE")
    try:
        ended = db.connection.execute(_END_OWN, values(db, session_id, holder)).fetchall()
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_PERM:
            raise
        ended = []
    db.remote.script("ROLLBACK TO SAVEPOINT ending; RELEASE SAVEPOINT ending")
    if not ended:
        return False
    # It ends in a moment; this waits as long as for any other lock.
    db.connection.execute(f"SELECT pg_advisory_lock({_KEY})", {"name": _name(db, session_id)})
    return True


def _be_alone(db: Database, session_id: str, holder: str, *, renew: bool) -> None:
    """Refuse where another recorder has the lease of a session; that of a dead one is taken.

    Args:
        db: A writing connection, in a transaction.
        session_id: The session's id.
        holder: The recorder.
        renew: Whether this one takes the lease.
    """
    values = {"session": session_id, "holder": holder}
    for (other,) in db.connection.execute(_OTHERS, values).fetchall():
        if is_alive(json.loads(other)) is not False:
            raise _refused(db, session_id)
        db.connection.execute(_DELETE, {"session": session_id, "holder": other})
    if renew and db.connection.execute(
        _RENEW.format(condition="TRUE"), values
    ).fetchone() is None:
        raise _refused(db, session_id)


def _refused(db: Database, session_id: str) -> Refused:
    return Refused(
        f"session {session_id} is being recorded by another connection to {db.name};"
        " close that recorder first")


def release(db: Database, session_id: str, holder: str) -> None:
    """Let others record a session of a store on a server.

    Args:
        db: A writing connection.
        session_id: The session's id.
        holder: The recorder that had it.
    """
    claimed = db.remote.claimed
    if db.remote.is_pooled:
        if db.form.name == "own":
            db.connection.execute(_DELETE, {"session": session_id, "holder": holder})
    elif session_id in claimed:
        _unlock(db, session_id, holder)
    claimed.discard(session_id)


def _unlock(db: Database, session_id: str, holder: str) -> None:
    db.connection.execute(
        f"SELECT pg_advisory_unlock({_KEY}), pg_advisory_unlock({_HOLDER})",
        values(db, session_id, holder))


def _name(db: Database, session_id: str) -> str:
    return f"{db.remote.schemas.get('chat_sessions', '')}/{session_id}"
