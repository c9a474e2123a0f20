"""When a verb is refused, and why. The reason is shown as it is, by the app and the command."""

from __future__ import annotations

from store.activity.judgement import Unsettled, current, unsettled_of
from store.activity.states import WAITING_STATES
from store.engine.database import Database
from store.errors import Refused, no_message, no_session
from store.queries.sessions import get

OPEN_CALLS = ("input-streaming", "input-available", "approval-responded")


def require_session(db: Database, session_id: str) -> None:
    """Refuse a session that is not there, and keep recorders from it until the verb is done.

    Raises:
        NotFound: No session has this id.
    """
    db.lock_session(session_id)
    found = db.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE id = $1", {"1": session_id}
    ).fetchone()
    if found is None:
        raise no_session(session_id)


def require_visible_message(db: Database, session_id: str, message_id: str) -> str:
    """Refuse a message that is no visible one of the session; return its role.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message's id.

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
        raise no_message(message_id, session_id)
    owner, role, hidden, queued, cancelled = row
    if owner != session_id:
        raise Refused(f"message {message_id} belongs to session {owner}, not to {session_id}")
    if cancelled:
        raise Refused(f"message {message_id} was cancelled while it was queued")
    if hidden is not None:
        raise Refused(f"message {message_id} is hidden by a rewind; restore it first")
    if queued:
        raise Refused(f"message {message_id} is queued and not sent yet")
    return str(role)


def refuse_while_running(db: Database, session_id: str, now: int) -> None:
    """Refuse a session in which a turn is under way (``store.activity.judgement``).

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        now: Epoch ms.

    Raises:
        Refused: The session runs, or waits for its user in the middle of a turn.
    """
    row = get(db, session_id)
    activity = current(db, row, now) if row is not None else None
    if activity is None or not activity.busy:
        return
    if activity.state in WAITING_STATES:
        what = "an approval" if activity.state == "waiting-approval" else "an answer"
        raise Refused(f"the session is running (it waits for {what}); try again when it is idle")
    end = unsettled_of(db, [session_id]).get(session_id, Unsettled())
    because = ""
    if end.tool_state in OPEN_CALLS:
        because = f" ({end.tool_type.removeprefix('tool-')} has no result yet)"
    elif end.tool_state in ("streaming", "growing"):
        because = " (its answer is still being written)"
    raise Refused(f"the session is running{because}; try again when it is idle")
