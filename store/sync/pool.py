"""Reads units in helper processes where there is much to read, else in this one.

A helper is a child with pickles on its pipes; it ends when its stdin closes, so none
outlives a sync that is killed.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from store.sources.protocol import Problem
from store.sync.children import child_environment
from store.sync.reading import ReadUnit, path_of, read_unit
from store.sync.units import Job

if TYPE_CHECKING:
    from store.sync.engine import Settings

BULK_BYTES = 24 << 20
"""Less than this is read here: starting helpers takes as long."""
BULK_UNITS = 8
IN_FLIGHT = 3
"""Units that a helper has been given and has not yet answered."""
LENGTH_BYTES = 8
ENDED_EARLY = "cannot be read: the process that read it ended (too little memory?)"

Results = Iterator[tuple[Job, ReadUnit]]


@contextlib.contextmanager
def reader_for(jobs: list[Job], settings: Settings) -> Iterator[Results]:
    """Give the units' readings in about their order."""
    big = sum(job.unit.size for job in jobs) >= BULK_BYTES and len(jobs) >= BULK_UNITS
    if not big or settings.helpers < 1 or not _known_to_helpers(jobs):
        yield _read_here(jobs, settings)
        return
    helpers = [_Helper() for _ in range(settings.helpers)]
    try:
        yield _read_in_helpers(jobs, settings, helpers)
    finally:
        for helper in helpers:
            helper.close()


def _read_here(jobs: list[Job], settings: Settings) -> Results:
    for job in jobs:
        yield job, _read(job, settings)


def _read(job: Job, settings: Settings) -> ReadUnit:
    return read_unit(
        job.source,
        job.root,
        job.unit,
        keep_originals=settings.keep_originals,
        compress=job.stored is None,
    )


def _known_to_helpers(jobs: list[Job]) -> bool:
    """Return whether a helper finds each job's source by its kind."""
    from store.sources import registry

    known = {source.kind: type(source) for source in registry.all_sources()}
    return all(known.get(job.source.kind) is type(job.source) for job in jobs)


def _read_in_helpers(jobs: list[Job], settings: Settings, helpers: list[_Helper]) -> Results:
    """Deal the jobs out in order and take whichever answer is there first."""
    waiting = deque(jobs)
    while waiting or any(helper.given for helper in helpers):
        for helper in helpers:
            while waiting and len(helper.given) < IN_FLIGHT:
                helper.give(waiting.popleft(), settings)
        busy = [helper for helper in helpers if helper.given]
        helper = next((one for one in busy if one.has_answer()), busy[0])
        result = helper.take()
        job = helper.given.popleft()
        if result is None:
            # Only the unit it was at is to blame; the others go to a new helper.
            waiting.extendleft(reversed(helper.given))
            helper.close()
            helpers[helpers.index(helper)] = _Helper()
            result = ReadUnit([], [Problem(path_of(job.root, job.unit), 0, ENDED_EARLY)])
        yield job, result


class _Helper:
    """One child process and the thread that drains its pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "store.sync.pool"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(),
        )
        self.given: deque[Job] = deque()
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._drain, daemon=True).start()

    def give(self, job: Job, settings: Settings) -> None:
        """Ask for a unit; a helper that is gone answers with None."""
        assert self._process.stdin is not None
        compress = job.stored is None
        question = (job.source.kind, job.root, job.unit, settings.keep_originals, compress)
        self.given.append(job)
        with contextlib.suppress(BrokenPipeError):
            _send(self._process.stdin, pickle.dumps(question, protocol=5))

    def has_answer(self) -> bool:
        """Return whether ``take`` would not wait."""
        return not self._answers.empty()

    def take(self) -> ReadUnit | None:
        """Wait for the answer to the first question; None when the process has ended."""
        body = self._answers.get()
        return None if body is None else pickle.loads(body)

    def close(self) -> None:
        """End the process; what it still had to say is dropped."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _drain(self) -> None:
        assert self._process.stdout is not None
        while (body := _receive(self._process.stdout)) is not None:
            self._answers.put(body)
        self._answers.put(None)


def _send(pipe: Any, body: bytes) -> None:
    pipe.write(len(body).to_bytes(LENGTH_BYTES, "little"))
    pipe.write(body)
    pipe.flush()


def _receive(pipe: Any) -> bytes | None:
    try:
        head = pipe.read(LENGTH_BYTES)
        if len(head) < LENGTH_BYTES:
            return None
        size = int.from_bytes(head, "little")
        body: bytes = pipe.read(size)
    except (OSError, ValueError):
        return None
    return body if len(body) == size else None


def _serve() -> None:
    """Answer questions until stdin closes."""
    from store.sources import registry

    # Ctrl-C reaches the whole group; the process that writes decides how to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sources = {source.kind: source for source in registry.all_sources()}
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while (body := _receive(questions)) is not None:
        kind, root, unit, keep_originals, compress = pickle.loads(body)
        result = read_unit(
            sources[kind],
            root,
            unit,
            keep_originals=keep_originals,
            compress=compress,
        )
        _send(answers, pickle.dumps(result, protocol=5))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        _serve()
