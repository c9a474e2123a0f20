"""Changes in a store since a poller last read them.

In a library file, writers log them in ``changes``, in the transaction of the write itself. A
host's file has no such log, so everything shown has to be read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.engine.database import Database


@dataclass(slots=True)
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


def newest(db: Database) -> int:
    """Return the number of the newest entry in ``changes``; 0 if there is none."""
    if db.form.name != "own":
        return 0
    (seq,) = db.connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()
    return int(seq)


def since(db: Database, seq: int) -> tuple[int, Moved]:
    """Return the newest entry's number and the changes since an earlier one.

    Call it when ``PRAGMA data_version`` has changed: without a log entry, the write came from
    a program that does not log. The result is vague in that case, and when the log was
    trimmed past ``seq`` or started anew.
    """
    if db.form.name != "own":
        return 0, Moved(vague=True)
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
