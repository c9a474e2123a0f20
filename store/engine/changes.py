"""What has moved in a store since a poller looked last.

In a file of ours the writers say so in ``changes``, in the transaction of the write itself.
A host's file records nothing: there all that is shown has to be read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.engine.database import Database


@dataclass(slots=True)
class Moved:
    """What has moved.

    Attributes:
        vague: Something was written that no entry names: anything may have changed.
        sessions: By session id, the messages that were written; None where it is the
            session's row, or any of its rows.
    """

    vague: bool = False
    sessions: dict[str, set[str] | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Say whether anything moved."""
        return self.vague or bool(self.sessions)

    def add(self, session_id: str, message_id: str | None) -> None:
        """Add a write."""
        known = self.sessions.get(session_id, set())
        if message_id is None or known is None:
            self.sessions[session_id] = None
        else:
            self.sessions[session_id] = known | {message_id}

    def merge(self, other: Moved) -> None:
        """Add all that another has."""
        self.vague = self.vague or other.vague
        for session_id, messages in other.sessions.items():
            for message_id in [None] if messages is None else messages:
                self.add(session_id, message_id)

    def touches(self, session_id: str) -> bool:
        """Say whether a session may be another than before."""
        return self.vague or session_id in self.sessions


def newest(db: Database) -> int:
    """Return the number of the newest entry in ``changes``, 0 where there is none."""
    if db.form.name != "own":
        return 0
    (seq,) = db.connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()
    return int(seq)


def since(db: Database, seq: int) -> tuple[int, Moved]:
    """Return the newest entry's number, and what has moved since another one.

    Asked when ``PRAGMA data_version`` moved, so where nothing was told somebody wrote who
    tells nothing. A log that was trimmed past ``seq``, or begun anew, tells too little.
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
