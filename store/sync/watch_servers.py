"""Asks servers now and then whether anything moved, without waiting for one that is silent.

PostgreSQL tells nobody of writes that its clients do not announce (LISTEN needs a NOTIFY),
and to have it announce them takes a trigger, which is a change to a database of others. So
it is asked, about once a second, which is one statement without a table as long as nothing
was written. Where something was, the signs of all sessions are read, and a pause follows
that is long beside what this took.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from store.engine.server_url import ServerTrouble, ServerUrl
from store.sources.base.protocol import ServerSource, Unit
from store.sync.roots import on_servers
from store.sync.targets import Target

POLL_S = 1.0
PATIENCE_S = 0.25
"""How long an answer is waited for; one that comes later is taken the next time."""
SLOWEST_S = 15.0
"""Between two tries with a server that cannot be read; they begin with the usual pause."""
SHARE = 20
"""A question is followed by a pause of this many times its length."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said.

    Attributes:
        moved: The sessions that moved; None where only a listing can tell.
        trouble: Why it could not be asked, or None.
    """

    target: Target
    moved: list[Unit] | None
    trouble: ServerTrouble | None = None


class ServerPolls:
    """The servers among some targets."""

    def __init__(
        self, targets: Sequence[Target] = (), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with servers that were all listed just now."""
        self._polls = [
            _Poll(target, target.root, monotonic() + POLL_S)
            for target in targets
            if isinstance(target.root, ServerUrl)
        ]
        self._monotonic = monotonic

    def due(self) -> float:
        """Return when the next answer is to be asked for or taken."""
        return min((poll.due for poll in self._polls), default=float("inf"))

    def answers(self) -> Iterator[Answer]:
        """Ask the servers that are due, and yield what came of it."""
        for poll in self._polls:
            if poll.due <= self._monotonic():
                answer = poll.ask(PATIENCE_S)
                poll.due = self._monotonic() + (poll.pause if answer is not None else POLL_S)
                if answer is not None:
                    yield answer

    def close(self) -> None:
        """Ask no more; a question that is under way is not waited for."""
        for poll in self._polls:
            poll.close()


@dataclass(slots=True)
class _Poll:
    """One server, asked in a thread of its own."""

    target: Target
    url: ServerUrl
    due: float
    pause: float = POLL_S
    _questions: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)
    _answers: queue.SimpleQueue[tuple[Answer, float]] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None
    _waits: bool = False

    def ask(self, patience_s: float) -> Answer | None:
        """Ask, where no answer is outstanding; None where there is none yet."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="server poll", daemon=True)
            self._thread.start()
        if not self._waits:
            self._questions.put(True)
            self._waits = True
        with contextlib.suppress(queue.Empty):
            answer, took_s = self._answers.get(timeout=patience_s)
            self._waits = False
            if answer.trouble is not None:
                self.pause = min(SLOWEST_S, 2 * self.pause)
            else:
                self.pause = max(POLL_S, SHARE * took_s)
            return answer
        return None

    def close(self) -> None:
        """End the thread once it has its answer."""
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
            # Whatever it is costs this server alone, and is told of.
            reason = f"cannot be read: {type(error).__name__}: {error}"
            return Answer(self.target, [], ServerTrouble(self.url, reason))
