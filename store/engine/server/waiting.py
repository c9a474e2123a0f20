"""An event loop that waits for the answer of one connection without running.

Each round of a running loop costs more than the driver takes for a short answer, and an answer
takes two. Here a thread waits for the socket itself and gives the driver what has come, as the
loop's transport would. Where anything else happens (an interrupt, an end of the connection, a
text that is too long to be sent at once, a second without an answer) the loop runs, and always
with TLS.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from types import new_class
from typing import Any, TypeVarTuple

from store.engine.server.addresses import AddressLoop

_AT_ONCE = 65_536
"""Bytes that are read at once; the allocator asks the system for more than twice as many."""
_QUIET_S = 1.0
"""After that long without a byte the loop runs, which limits the time."""
_Given = TypeVarTuple("_Given")
_Called = list[tuple[asyncio.Handle, Context, Callable[..., object], tuple[Any, ...]]]


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether asyncio's log says what no error of a connection here says.

    The connections of a host have loops of its own, and their lines stay.
    """
    if record.msg != "socket.send() raised exception.":
        return True
    try:
        return not isinstance(asyncio.get_running_loop(), AnswerLoop)
    except RuntimeError:
        return False


# Else it is printed among what a command says, once for each row that was still to be sent.
logging.getLogger("asyncio").addFilter(_is_news)


class AnswerLoop(AddressLoop):
    """An event loop for one connection of the driver, used by one thread at a time."""

    def __init__(self) -> None:
        """Make a loop that runs for each answer, until ``connection_class`` is used."""
        self._events = selectors.DefaultSelector()
        super().__init__(self._events)
        self._protocol: Any = None
        self._transport: Any = None
        self._socket = -1
        self._called: _Called | None = None

    def connection_class(self, base: type[Any]) -> type[Any]:
        """Return a class for the connection whose answers are waited for.

        Args:
            base: The driver's class, which is given a protocol and a transport.
        """
        def take(connection: Any, protocol: Any, transport: Any, *rest: Any) -> None:
            base.__init__(connection, protocol, transport, *rest)
            if transport.get_extra_info("ssl_object") is None:
                self._protocol, self._transport = protocol, transport
                self._socket = transport.get_extra_info("socket").fileno()

        return new_class(base.__name__, (base,), exec_body=lambda body: body.update(__init__=take))

    def wait(self, answer: asyncio.Future[Any], limit_s: float | None) -> None:
        """Return when an answer is there, or ``TimeoutError`` is in its place.

        Args:
            answer: A future of the driver, which sets no time limit itself: a timer for each
                statement takes a tenth of it.
            limit_s: How long to wait; None for as long as it takes.
        """
        while self._protocol is not None and not answer.done():
            came = self._received()
            if not came:
                break
            self._take(came, answer)
        if not answer.done():
            answer.add_done_callback(lambda _: self.stop())
            end = None if limit_s is None else self.call_later(limit_s, _give_up, answer)
            while not answer.done():
                self.run_forever()
            if end is not None:
                end.cancel()

    def call_soon(
        self, callback: Callable[[*_Given], object], *args: *_Given, context: Context | None = None
    ) -> asyncio.Handle:
        """Call a function in the next round, or right after what came where ``wait`` took it.

        The driver calls something for each answer, which holds on to the answer until then.

        Args:
            callback: The function.
            args: What it is called with.
            context: Where it is called; by default in a copy of the present one.
        """
        called = self._called
        if called is None or self._transport.is_closing():
            # The end of a connection waits for a round: another loop may still watch its socket.
            return super().call_soon(callback, *args, context=context)
        context = context or copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        called.append((handle, context, callback, args))
        return handle

    @property
    def may_be_left(self) -> bool:
        """Whether another loop may wait for the next answer, by ``take_what_came``."""
        return self._protocol is not None and not self._transport.is_closing()

    @property
    def has_sent(self) -> bool:
        """Whether all of a statement has left; else the loop has to run."""
        return not self._transport.get_write_buffer_size()

    @property
    def descriptor(self) -> int:
        """The socket of the connection."""
        return self._socket

    def take_what_came(self, answer: asyncio.Future[Any]) -> bool:
        """Give the driver what has come, without waiting; return False where ``wait`` has to go on.

        Args:
            answer: What is waited for.
        """
        try:
            came = b"" if self._transport.is_closing() else os.read(self._socket, _AT_ONCE)
        except BlockingIOError:
            return True
        except OSError:  # The transport finds it too.
            return False
        if came:
            self._take(came, answer)
        return bool(came)

    def _take(self, came: bytes, answer: asyncio.Future[Any]) -> None:
        """Give the driver what came; what it cannot read ends the connection.

        Args:
            came: The bytes.
            answer: What is waited for.
        """
        called: _Called = []
        self._called = called
        try:
            self._protocol.data_received(came)
        except Exception as error:
            self._transport.abort()
            if not answer.done():
                answer.set_exception(ConnectionAbortedError(f"the answer is not readable: {error}"))
        finally:
            self._called = None
        for handle, context, callback, given in called:
            if not handle.cancelled():
                context.run(callback, *given)

    def _received(self) -> bytes:
        """Return the next bytes; none where the loop has to run."""
        if self._transport.is_closing():  # The statement could not be sent.
            return b""
        events = self._events.select(_QUIET_S)
        if len(events) == 1 and events[0][0].fd == self._socket \
                and events[0][1] == selectors.EVENT_READ:
            with suppress(OSError):  # The transport finds it too.
                return os.read(self._socket, _AT_ONCE)
        return b""


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
