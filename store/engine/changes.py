"""Changes in a store since a poller last read them.

In a library file, writers log them in ``changes``, in the transaction of the write itself. A
host's file has no such log, so everything shown has to be read again.
"""

from __future__ import annotations

from store.engine.database import Database
from store.system.records import field, record


@record
class Moved:
    """A set of changes.

    Attributes:
        vague: Whether there was a write without a log entry: anything may have changed.
        sessions: By session id the messages that changed; None if it is the session's own
            row or possibly any of its rows.
    """

    vague: bool = False
    sessions: dict[str, set[str] | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return self.vague or bool(self.sessions)

    def add(self, session_id: str, message_id: str | None) -> None:
        """Add a change."""
        known = self.sessions.get(session_id, set())
        if message_id is None or known is None:
            self.sessions[session_id] = None
        else:
            self.sessions[session_id] = known | {message_id}

    def merge(self, other: Moved) -> None:
        """Add all changes of another set."""
        self.vague = self.vague or other.vague
        for session_id, messages in other.sessions.items():
            for message_id in [None] if messages is None else messages:
                self.add(session_id, message_id)

    def touches(self, session_id: str) -> bool:
        """Return whether a session may have changed."""
        return self.vague or session_id in self.sessions


_OLDEST = "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
"""On a server: the oldest transaction that may still write; all before it are seen or undone."""


_NEVER_TRIMMED = 1_000
"""Writers keep more entries than this."""


def newest(db: Database) -> int:
    """Return the number of the newest entry in ``changes``; 0 if there is none.

    On a server, where entries are seen in another order than that of their numbers, it is the
    number of a transaction.
    """
    if db.form.name != "own":
        return 0
    if db.server is not None:
        return oldest_writer(db)
    (seq,) = db.connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()
    return int(seq)


def oldest_writer(db: Database) -> int:
    """Return the number of the oldest transaction on a server that may still write."""
    return int(db.connection.execute(f"SELECT {_OLDEST}").fetchone()[0])


def since(db: Database, seq: int) -> tuple[int, Moved]:
    """Return the newest entry's number and the changes since an earlier one.

    Call it when ``PRAGMA data_version`` has changed: without a log entry, the write came from
    a program that does not log. The result is vague in that case, and when the log was
    trimmed past ``seq`` or started anew.
    """
    if db.form.name != "own":
        return 0, Moved(vague=True)
    if db.server is not None:
        return _since_on_server(db, seq)
    oldest, last = db.connection.execute("SELECT min(seq), max(seq) FROM changes").fetchone()
    if last is None or last < seq or oldest > seq + 1:
        return int(last or 0), Moved(vague=True)
    moved = Moved()
    for session_id, message_id in db.connection.execute(
        "SELECT DISTINCT session_id, message_id FROM changes WHERE seq > $1", {"1": seq}
    ).fetchall():
        moved.add(session_id, message_id)
    moved.vague = not moved.sessions
    return int(last), moved


def _since_on_server(db: Database, seq: int) -> tuple[int, Moved]:
    """Return the same on a server; a change may be returned twice, and none is left out."""
    rows = db.connection.execute(
        "SELECT now.oldest, now.kept, now.written, c.session_id, c.message_id FROM"
        f" (SELECT {_OLDEST} AS oldest, (SELECT max(seq) - min(seq) FROM changes) AS kept,"
        " CAST(CAST((SELECT written_by FROM changes ORDER BY written_by LIMIT 1) AS text)"
        " AS bigint) AS written) now"
        " LEFT JOIN (SELECT DISTINCT session_id, message_id FROM changes"
        " WHERE written_by >= CAST(CAST($1 AS text) AS xid8)) c ON TRUE", {"1": seq},
    ).fetchall()
    moved = Moved()
    for *_, session_id, message_id in rows:
        if session_id is not None:
            moved.add(session_id, message_id)
    oldest, kept, written = rows[0][:3]
    # What was trimmed may have been written since.
    moved.vague = kept is not None and kept > _NEVER_TRIMMED and written > seq
    return int(oldest), moved
