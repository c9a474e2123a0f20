"""Begins a write without waiting for its end: for writers that have much else to do.

A change of a file runs on the thread of its connection. One of a server that is one statement is
sent by the event loop itself, where the connection is idle, and runs on the thread where not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from store.engine.database import Database, in_transaction
from store.engine.following import Followed
from store.errors import StoreError

if TYPE_CHECKING:
    from store.engine.connection_thread import ConnectionThread
    from store.engine.following import Tell, Work
    from store.engine.server.sent import Sent
    from store.engine.transactions import OfSession, OneStatement

_MOST_TEXT = 65_536
"""Characters of a statement that a loop encodes and sends itself."""
Ended = Callable[[BaseException | None], object]


def begin(writer: ConnectionThread, change: OfSession, ended: Ended) -> None:
    """Begin a change of one session.

    Args:
        writer: The thread of a writing connection, which is open.
        change: The change.
        ended: Called once it has ended, with its error: on the thread, or in the running loop.

    Raises:
        ConnectionClosedError: The connection was closed.
    """
    database = writer.database
    write = partial(_write, database, change, ended)
    if not writer.follow(partial(_sent, database, change, ended, write)):
        writer.post(write)


def _sent(database: Database, change: OfSession, ended: Ended, write: Work) -> Followed | None:
    """Send the one statement of a change; None where it is none, or the thread has to.

    Args:
        database: The database.
        change: The change.
        ended: Called once it has ended.
        write: Does it on the thread.
    """
    if database.server is None or change.at_once is None:
        return None
    statement = change.at_once(database)
    if statement is None:
        change.at_once = None
        return None
    values = statement.values.values()
    if sum([len(value) for value in values if type(value) is str]) > _MOST_TEXT:
        return None
    sent = database.remote.send(statement.sql, statement.values)

    def take(sent: Sent) -> Tell | None:
        try:
            written = _is_written(statement, sent)
        except BaseException as error:
            return partial(ended, error)
        change.at_once = None
        return partial(ended, None) if written else None

    return None if sent is None else Followed(sent, take, write)


def _is_written(statement: OneStatement, sent: Sent) -> bool:
    if sent.cursor is not None:
        return statement.has_written(sent.cursor.fetchone())
    return statement.has_failed(sent.error or StoreError("the statement has no answer"))


def _write(database: Database, change: OfSession, ended: Ended) -> Tell:
    error: BaseException | None = None
    try:
        if database.moved():
            raise StoreError(f"{database.name} has to be opened again")
        in_transaction(database, change)
    except BaseException as raised:
        error = raised
    return partial(ended, error)


def begin_later(
    writer: ConnectionThread, take: Callable[[], tuple[OfSession, Ended] | None], after_s: float
) -> None:
    """Begin a change of a file within a time, with no thread woken for it.

    Args:
        writer: The thread of a writing connection, which is open.
        take: Returns the change and what is called when it has ended; called on the thread. None
            for nothing.
        after_s: The time.

    Raises:
        ConnectionClosedError: The connection was closed.
    """
    def work() -> None:
        taken = take()
        if taken is not None:
            _write(writer.database, *taken)()

    writer.later(work, after_s)
