"""An event loop that waits for answers of a server, beside its other work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from store.engine.server.sent import Sent

Tell: TypeAlias = "Callable[[], object]"
Work: TypeAlias = "Callable[[], Tell]"
"""What a thread does; returns what tells of its end."""
_QUIET_S = 1.0
"""After about that long without an answer the thread waits for it, and knows how long it may."""


class Followed(NamedTuple):
    """A statement on its way.

    Attributes:
        take: Takes the answer and returns what tells of it; None where the thread has to do
            ``otherwise``.
    """

    sent: Sent
    take: Callable[[Sent], Tell | None]
    otherwise: Work

    def wait(self) -> Tell:
        """Wait for the answer on the thread of the connection; return what tells of it."""
        try:
            self.sent.wait()
        except BaseException as error:
            self.sent.error = self.sent.error or error
        return self.take(self.sent) or self.otherwise()


class Following:
    """Reads the answers of one connection in a loop, one statement at a time.

    The loop keeps watching the connection between two statements, as beginning and ending that
    takes longer than a short answer. Any thread may ``stop`` it, with the guard held.

    Attributes:
        loop: The loop.
        followed: The statement that is waited for; None where there is none.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, guard: AbstractContextManager[object],
        leave: Callable[[], object], post: Callable[[Work], object],
    ) -> None:
        """Watch nothing yet.

        Args:
            loop: The running loop.
            guard: Held by who uses the connection or gives it away.
            leave: Leaves the connection to its thread, which waits for the answer instead.
            post: Has the thread do something.
        """
        self.loop, self._guard, self._leave, self._post = loop, guard, leave, post
        self.followed: Followed | None = None
        self._is_stopped = False
        self._since = 0.0
        self._watched: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, followed: Followed) -> None:
        """Wait for an answer, which is not taken before this returns."""
        self.followed, self._since, sent = followed, self.loop.time(), followed.sent
        if sent.needs_thread:
            self._leave()
            return
        if sent.is_answered:
            self.loop.call_soon(self._take)
            return
        if self._watched is None:
            self._watched = sent.descriptor
            self.loop.add_reader(self._watched, self._take)
        if self._timer is None:
            self._timer = self.loop.call_later(_QUIET_S, self._look)

    def _take(self) -> None:
        with self._guard:
            tell = None if self._is_stopped else self._taken()
        if tell is not None:
            tell()

    def _taken(self) -> Tell | None:
        """Take what has come; return what tells of an answer."""
        followed = self.followed
        if followed is None or not followed.sent.receive():
            # Between two statements, the connection has ended.
            self._leave()
        elif followed.sent.is_answered:
            self.followed = None
            tell = followed.take(followed.sent)
            if tell is not None:
                return tell
            self._post(followed.otherwise)
        return None

    def _look(self) -> None:
        with self._guard:
            self._timer = None
            if self._is_stopped or self.followed is None:
                return
            if self.loop.time() - self._since >= _QUIET_S:
                self._leave()
            else:
                self._timer = self.loop.call_later(_QUIET_S, self._look)

    def stop(self) -> Followed | None:
        """Watch no more; return the statement that was waited for."""
        followed, self.followed = self.followed, None
        self._is_stopped = True
        if self._is_in_loop():
            self.unwatch()
        else:
            with suppress(RuntimeError):  # It has ended.
                self.loop.call_soon_threadsafe(self.unwatch)
        return followed

    @property
    def is_watching(self) -> bool:
        """Whether its loop, which has not ended, still watches the connection."""
        return self._watched is not None and not self.loop.is_closed()

    def _is_in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def unwatch(self) -> None:
        """Watch no more, in its loop; twice does no harm."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watched is not None:
            self.loop.remove_reader(self._watched)
            self._watched = None
