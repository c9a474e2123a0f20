"""Messages that wait behind a running turn: fired when their turn comes, or cancelled.

A queued message is a row with a number in ``metadata_json.queued_at`` and no part of the
transcript yet. Firing it clears that key, keeps the value as ``queue_enqueued_at`` and moves
the row to the end of the transcript; cancelling it hides the row and stamps it with
``queue_canceled_at``. Source: the contract's "queued sends".
"""

from __future__ import annotations

from functools import partial

from store.engine.database import Database
from store.engine.json_edits import set_json
from store.errors import NotFound, Refused, no_message
from store.recorder.json_text import storable
from store.recorder.message import Messages
from store.recorder.procedures import Operation, Procedure, change_of
from store.recorder.reading import OWN_KEY
from store.recorder.session_state import SessionState
from store.recorder.writing import log_change, newest_message_at
from store.system.clock import Clock


class QueuedMessages:
    """The messages of a session that wait behind its running turn."""

    def __init__(self, session: SessionState, messages: Messages, clock: Clock) -> None:
        """Set it up.

        Args:
            session: Its session.
            messages: Knows when the newest message was made.
            clock: The present in epoch ms.
        """
        self._session, self._messages, self._clock = session, messages, clock
        self._fire_next: list[str] = []

    @property
    def some_wait(self) -> bool:
        """Whether messages came during the running turn, which fire with the next one."""
        return bool(self._fire_next)

    def fire_with_next(self, message_id: str) -> None:
        """Note that a message fires when the next answer begins."""
        self._fire_next.append(message_id)

    def fire(self, name: str | None) -> Procedure[str]:
        """Make a queued message the last one of the transcript; see ``find``.

        Returns:
            The id of its row.
        """
        found: str = yield Operation(partial(find, session_id=self._session.id, name=name))
        work = partial(fire, session_id=self._session.id, message_id=found,
                       at=max(self._clock(), self._messages.newest_at + 1))
        self._messages.newest_at = yield change_of(self._session.id, work)
        self._forget(found)
        return found

    def cancel(self, name: str | None) -> Procedure[str]:
        """Take a queued message out of the queue; see ``find``.

        Returns:
            The id of its row, which stays, hidden.
        """
        found: str = yield Operation(partial(find, session_id=self._session.id, name=name))
        work = partial(
            cancel, session_id=self._session.id, message_id=found, at=self._clock())
        yield change_of(self._session.id, work)
        self._forget(found)
        return found

    def fire_waiting(self) -> Procedure[None]:
        """Fire the messages that came during the answer before this one."""
        while self._fire_next:
            try:
                yield from self.fire(self._fire_next[0])
            except (NotFound, Refused):
                # Another process has fired, cancelled or removed it meanwhile.
                del self._fire_next[0]

    def _forget(self, message_id: str) -> None:
        self._fire_next = [each for each in self._fire_next if each != message_id]


def find(db: Database, session_id: str, name: str | None) -> str:
    """Return the row id of a queued message.

    Args:
        db: The store.
        session_id: Its session.
        name: The row's id or the id that the host gave the message; None for the one that
            has waited longest.

    Raises:
        NotFound: The session has no such message.
        Refused: The message does not wait any more.
    """
    queued, cancelled = db.form.queued("m"), db.form.cancelled("m")
    if name is None:
        found = db.connection.execute(
            f"SELECT m.id, 1 FROM chat_messages m WHERE m.session_id = $1 AND {queued}"
            f" AND NOT {cancelled} ORDER BY m.created_at, m.id LIMIT 1",
            {"1": session_id},
        ).fetchone()
        if found is None:
            raise NotFound(f"session {session_id} has no queued message")
    else:
        found = db.connection.execute(
            f"SELECT m.id, {queued} AND NOT {cancelled} FROM chat_messages m"
            " WHERE m.session_id = $1 AND (m.id = $2 OR"
            f" {db.form.fact('m', f'{OWN_KEY}.sdk_message_id')} = $2)"
            " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
            {"1": session_id, "2": storable(name)},
        ).fetchone()
        if found is None:
            raise no_message(name, session_id)
    if not found[1]:
        raise Refused(f"message {name} is not queued")
    return str(found[0])


_TAKEN = (
    "json_set(json_remove($json, '$.queued_at'), '$.queue_enqueued_at',"
    " json_extract($json, '$.queued_at')"
)
"""The metadata of a message that was queued, up to further keys."""


def fire(db: Database, session_id: str, message_id: str, at: int) -> int:
    """Make a queued message the last one of the transcript.

    Args:
        db: A writing connection, in a transaction.
        session_id: Its session.
        message_id: The row's id, as ``find`` returns it.
        at: Epoch ms.

    Returns:
        The message's new ``created_at``, later than every other message's.
    """
    created_at = max(at, newest_message_at(db, session_id) + 1)
    set_json(
        db, "chat_messages", message_id, f"{_TAKEN})", {"2": created_at, "3": at},
        also="created_at = $2, updated_at = $3, ")
    _touch_session(db, session_id, message_id, at)
    return created_at


def cancel(db: Database, session_id: str, message_id: str, at: int) -> None:
    """Take a queued message out of the queue; its row stays, hidden.

    Args:
        db: A writing connection, in a transaction.
        session_id: Its session.
        message_id: The row's id, as ``find`` returns it.
        at: Epoch ms.
    """
    hidden = "hidden_at = $2, " if db.form.hidden_column else ""
    hidden_key = "" if db.form.hidden_column else ", '$.hidden_at', $2"
    set_json(
        db, "chat_messages", message_id, f"{_TAKEN}, '$.queue_canceled_at', $2{hidden_key})",
        {"2": at}, also=f"{hidden}updated_at = $2, ")
    _touch_session(db, session_id, message_id, at)


def _touch_session(db: Database, session_id: str, message_id: str, at: int) -> None:
    newest = db.sql.greatest("updated_at", "$2")
    db.connection.execute(
        f"UPDATE chat_sessions SET updated_at = {newest} WHERE id = $1",
        {"1": session_id, "2": at},
    )
    log_change(db, session_id, message_id, at)
