"""Work that needs the store, told apart from how the store is reached.

A procedure is a generator that yields operations on a ``Database`` and is sent their
results. ``drive`` runs one on an open connection; ``Recorder`` on a store's threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from store.engine.database import Database, in_transaction, open_database
from store.engine.transactions import OfSession

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operation:
    """Something to run on a ``Database``.

    Attributes:
        writes: Whether it runs in a transaction on the writing connection.
    """

    work: Callable[[Database], Any]
    writes: bool = False


def change_of(session_id: str, work: Callable[[Database], Any]) -> Operation:
    """Return an operation that changes rows of one session alone.

    Args:
        session_id: The session.
        work: Runs in a transaction on the writing connection.
    """
    return Operation(OfSession(session_id, work), writes=True)


Procedure = Generator[Operation, Any, T]


def drive(db: Database, procedure: Procedure[T]) -> T:
    """Run a procedure on one open connection, each write in its own transaction."""
    try:
        operation = next(procedure)
        while True:
            try:
                result = _run(db, operation)
            except BaseException as error:
                operation = procedure.throw(error)
            else:
                operation = procedure.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _run(db: Database, operation: Operation) -> Any:
    if db.server is not None and db.moved():
        lost, db.connection = db.connection, open_database(db.path).connection
        lost.close()
    return in_transaction(db, operation.work) if operation.writes else operation.work(db)
