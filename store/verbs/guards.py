"""When a verb is refused, and why. The reason is shown as it is, by the app and the command."""

from __future__ import annotations

from store.database import Database
from store.errors import NotFound, Refused

RUNNING_WINDOW_MS = 60_000
"""A tool part that is unsettled and was touched within this time means a running session."""

UNSETTLED_STATES = ("input-streaming", "input-available", "approval-requested")


def require_session(db: Database, session_id: str) -> None:
    """Refuse a session that is not there.

    Raises:
        NotFound: No session has this id.
    """
    found = db.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE id = $1", {"1": session_id}
    ).fetchone()
    if found is None:
        raise NotFound(f"there is no session {session_id}")


def require_visible_message(db: Database, session_id: str, message_id: str) -> str:
    """Refuse a message that is no visible one of the session; return its role.

    Raises:
        NotFound: No message has this id.
        Refused: The message is another session's, hidden, queued or cancelled.
    """
    row = db.connection.execute(
        f"SELECT m.session_id, m.role, {db.form.hidden_at('m')},"
        f" {db.form.queued('m')}, {db.form.cancelled('m')}"
        " FROM chat_messages m WHERE m.id = $1",
        {"1": message_id},
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no message {message_id}")
    owner, role, hidden, queued, cancelled = row
    if owner != session_id:
        raise Refused(f"message {message_id} belongs to session {owner}, not to {session_id}")
    if cancelled:
        raise Refused(f"message {message_id} was cancelled while it was queued")
    if hidden is not None:
        raise Refused(f"message {message_id} is hidden by a rewind; restore it first")
    if queued:
        raise Refused(f"message {message_id} is queued and not part of the talk yet")
    return str(role)


def refuse_while_running(db: Database, session_id: str, now: int) -> None:
    """Refuse a session whose visible tool part is unsettled and was touched just now.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        now: Epoch ms.

    Raises:
        Refused: The session runs.
    """
    states = ", ".join(f"'{state}'" for state in UNSETTLED_STATES)
    row = db.connection.execute(
        "SELECT p.type FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.session_id = $1 AND p.updated_at > $2"
        f" AND p.tool_state IN ({states}) AND {db.form.shown('m')} LIMIT 1",
        {"1": session_id, "2": now - RUNNING_WINDOW_MS},
    ).fetchone()
    if row is not None:
        tool = str(row[0]).removeprefix("tool-")
        raise Refused(f"the session is running ({tool} has no result yet); try again when it rests")
