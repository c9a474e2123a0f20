"""Begins a write without waiting for its end: for writers that have much else to do.

A change of a file runs on the thread of its connection. One of a server that is one statement is
sent by the event loop itself, where the connection is idle, and runs on the thread where not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from store.engine.database import Database, in_transaction
from store.engine.transactions import take_answer
from store.errors import StoreError

if TYPE_CHECKING:
    from store.engine.connection_thread import ConnectionThread
    from store.engine.server.sent import Sent
    from store.engine.transactions import Asking, OfSession

_MOST_TEXT = 65_536
"""Characters of a statement that a loop encodes and sends itself."""
Done = Callable[[BaseException | None], object]


def begin(writer: ConnectionThread, change: OfSession, done: Done) -> None:
    """Begin a change of one session.

    Args:
        writer: The thread of a writing connection, which is open.
        change: The change.
        done: Called in the running loop when it has ended, with its error.
    """
    asking = _asked(writer, change)
    if asking is None:
        _post(writer, change, done)
        return
    steps, sent = asking

    def answered(sent: Sent) -> None:
        try:
            written = _taken(steps, sent)
        except Exception as error:
            done(error)
            return
        if written:
            done(None)
            return
        change.at_once = None
        _post(writer, change, done)

    writer.follow(sent, answered)


def _asked(writer: ConnectionThread, change: OfSession) -> tuple[Asking, Sent] | None:
    """Send the one statement of a change; None where it is none, or the thread has to."""
    database = writer.database
    if database.server is None or change.at_once is None or not writer.is_idle:
        return None
    steps = change.at_once(database)
    try:
        statement, values = next(steps)
    except StopIteration:
        change.at_once = None
        return None
    if sum(len(value) for value in values.values() if isinstance(value, str)) > _MOST_TEXT:
        return None
    sent = database.remote.send(statement, values)
    return None if sent is None else (steps, sent)


def _taken(steps: Asking, sent: Sent) -> bool:
    if sent.cursor is not None:
        return take_answer(steps, sent.cursor.fetchone())
    return take_answer(steps, None, sent.error or StoreError("the statement has no answer"))


def _post(writer: ConnectionThread, change: OfSession, done: Done) -> None:
    if writer.closed:
        done(StoreError(f"the store {writer.database.name} was closed"))
    else:
        writer.post(partial(changed, writer.database, change), done)


def changed(database: Database, change: OfSession) -> None:
    """Write a change, in its transaction.

    Raises:
        StoreError: The file was replaced, or the connection is closed.
    """
    if database.moved():
        raise StoreError(f"{database.name} has to be opened again")
    in_transaction(database, change)
