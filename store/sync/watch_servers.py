"""Polls servers for changes, without waiting for one that does not respond.

PostgreSQL does not report writes unless clients announce them (LISTEN needs a NOTIFY), and a
trigger for that would change a database that is not ours to change. So it is polled about
once a second; as long as nothing was written, that is one statement that reads no table.
After a write the change marks of all sessions are read, followed by a pause of many times
the duration, up to ``SLOWEST_S``. Waiting, such as for a lock, is no load and adds no pause.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from store.engine.server_url import ServerTrouble, ServerUrl
from store.sources.base.protocol import ServerSource, Unit
from store.sync.roots import on_servers
from store.sync.targets import Target

POLL_S = 1.0
PATIENCE_S = 0.25
"""Seconds to wait for an answer; a later one is taken at the next poll."""
SLOWEST_S = 2.0
"""Longest pause between polls."""
REFUSED_S = 15.0
"""Longest pause where the server refuses the login: it may lock out who tries often."""
SHARE = 20
"""A poll is followed by a pause of this many times its duration, within these limits."""
WAITING_S = 0.5
"""Seconds without an answer after which it is asked what the server waits for."""
SILENT_S = 3.0
"""Seconds without an answer after which a server is reported that waits for nothing known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of polling a server.

    Attributes:
        moved: The sessions that changed; None if a listing is needed to find them.
        trouble: Why it could not be polled, or None.
        waits: What the outstanding answer waits for; None where this is an answer.
    """

    target: Target
    moved: list[Unit] | None
    trouble: ServerTrouble | None = None
    waits: str | None = None


class ServerPolls:
    """Polls of the servers among some targets."""

    def __init__(
        self, targets: Sequence[Target] = (), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Start with servers that were all just listed."""
        self._polls = [
            _Poll(target, target.root, monotonic() + POLL_S)
            for target in targets
            if isinstance(target.root, ServerUrl)
        ]
        self._monotonic = monotonic

    def due(self) -> float:
        """Return when the next poll is due."""
        return min((poll.due for poll in self._polls), default=float("inf"))

    def answers(self) -> Iterator[Answer]:
        """Poll the servers that are due; yield their answers, and what these wait for."""
        for poll in self._polls:
            if poll.due <= self._monotonic():
                answer = poll.ask(PATIENCE_S)
                answered = answer is not None and answer.waits is None
                poll.due = self._monotonic() + (poll.pause if answered else PATIENCE_S)
                if answer is not None:
                    yield answer

    def close(self) -> None:
        """Stop polling, without waiting for outstanding answers."""
        for poll in self._polls:
            poll.close()


@dataclass(slots=True)
class _Poll:
    """One server, polled on its own thread."""

    target: Target
    url: ServerUrl
    due: float
    pause: float = POLL_S
    _questions: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)
    _answers: queue.SimpleQueue[tuple[Answer, float]] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None
    _asked_at: float | None = None
    _waits: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)
    _asks_why: bool = False
    _waited: bool = False
    _lock: str | None = None

    def ask(self, patience_s: float) -> Answer | None:
        """Return the answer to a new or outstanding poll; None if there is none yet."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="server poll", daemon=True)
            self._thread.start()
        asked_at = self._asked_at
        if asked_at is None:
            self._questions.put(True)
            self._asked_at = asked_at = time.monotonic()
            self._waited, self._lock = False, None
        with contextlib.suppress(queue.Empty):
            answer, took_s = self._answers.get(timeout=patience_s)
            self._asked_at = None
            self.pause = self._pause_after(answer, took_s)
            if answer.trouble is not None and self._lock is not None:
                # The server's own words do not say whose the lock is that it gave up on.
                answer = replace(answer, trouble=ServerTrouble(self.url, self._lock))
            return answer
        return self._why_not(time.monotonic() - asked_at)

    def _pause_after(self, answer: Answer, took_s: float) -> float:
        if answer.trouble is not None:
            longest = REFUSED_S if answer.trouble.is_refusal else SLOWEST_S
            return min(longest, 2 * self.pause)
        return POLL_S if self._waited else min(SLOWEST_S, max(POLL_S, SHARE * took_s))

    def _why_not(self, silent_s: float) -> Answer | None:
        """Return what an answer waits for, once that is known."""
        if self._waited:
            return None
        if not self._asks_why and silent_s >= WAITING_S:
            self._asks_why = True
            threading.Thread(target=self._ask_why, name="server wait", daemon=True).start()
        with contextlib.suppress(queue.Empty):
            words = self._waits.get_nowait()
            self._asks_why = False
            if words is not None:
                self._waited, self._lock = True, words
                return Answer(self.target, [], waits=words)
        if silent_s >= SILENT_S:
            self._waited = True
            return Answer(self.target, [], waits="does not answer yet")
        return None

    def _ask_why(self) -> None:
        try:
            self._waits.put(on_servers(self.target.source, self.url).waits_for(self.url))
        except Exception:
            # The outstanding answer will say what is wrong.
            self._waits.put(None)

    def close(self) -> None:
        """End the thread after its current poll."""
        self._questions.put(False)

    def _work(self) -> None:
        while self._questions.get():
            began = time.monotonic()
            self._answers.put((self._asked(), time.monotonic() - began))

    def _asked(self) -> Answer:
        try:
            source: ServerSource = on_servers(self.target.source, self.url)
            return Answer(self.target, source.moved_on(self.url))
        except ServerTrouble as trouble:
            return Answer(self.target, [], trouble)
        except Exception as error:
            # Any error affects only this server, and is reported.
            reason = f"cannot be read: {type(error).__name__}: {error}"
            return Answer(self.target, [], ServerTrouble(self.url, reason))
