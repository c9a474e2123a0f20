"""A statement that was sent, whose answer an event loop waits for beside its other work.

A hop to the thread of a connection and back takes longer than a short answer. So the loop that
wants the answer sends the statement itself, and reads when something comes. What takes more than
that (an end of the connection, a statement that is too long to be sent at once) is left to the
thread, which waits as it does for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from store.engine.server.connection import ServerCursor
    from store.engine.server.waiting import AnswerLoop


class Sent:
    """A statement that was sent, until its answer is there.

    Attributes:
        cursor: What it found; None until the answer is there, and where it is an error.
        error: The error that is the answer.
        is_answered: Whether the answer is there.
        needs_thread: Whether it has not left when it was sent, which takes the connection's own
            loop.
    """

    def __init__(
        self, loop: AnswerLoop, question: Coroutine[Any, Any, list[Any]],
        found: Callable[[list[Any]], ServerCursor],
        failure: Callable[[BaseException], BaseException], limit_s: float,
    ) -> None:
        """Send it.

        Args:
            loop: The loop of its connection.
            question: The call of the driver.
            found: Makes a cursor of the driver's rows.
            failure: Makes an error of the store of the driver's.
            limit_s: How long ``wait`` waits.
        """
        self._loop, self._question, self._limit_s = loop, question, limit_s
        self._found, self._failure = found, failure
        self._waited: asyncio.Future[Any] | None = None
        self.cursor: ServerCursor | None = None
        self.error: BaseException | None = None
        self.is_answered = False
        self._step()
        self.needs_thread = not self.is_answered and not loop.has_sent

    @property
    def descriptor(self) -> int:
        """The socket, which can be read when something has come."""
        return self._loop.descriptor

    def receive(self) -> bool:
        """Take what has come, without waiting.

        Returns:
            False where ``wait`` has to do the rest.
        """
        waited = self._waited
        if waited is None:
            return True
        if not self._loop.take_what_came(waited):
            return False
        if waited.done():
            self._step()
        return True

    def wait(self) -> None:
        """Wait for the answer, in a thread that runs no loop."""
        while self._waited is not None:
            self._loop.wait(self._waited, self._limit_s)
            self._step()

    def _step(self) -> None:
        try:
            self._waited = self._question.send(None)
        except StopIteration as end:
            self._waited, self.is_answered = None, True
            self._end(end.value)
        except Exception as error:
            self._waited, self.is_answered = None, True
            self.error = self._failure(error)

    def _end(self, records: list[Any]) -> None:
        try:
            self.cursor = self._found(records)
        except Exception as error:
            self.error = error
