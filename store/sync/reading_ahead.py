"""Reads the steps of a long unit in a second process, while this one writes rows.

``python -m store.sync.reading_ahead`` is that process. The first step is read here while the
other process starts; from the place after it on, the other one reads and maps, and this one
makes and writes the rows. Messages are sent as plain values (``marshal``): a fifth of what
pickling drafts would take.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import queue
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from store.engine.database import Database, open_database
from store.sources import registry
from store.sources.base.collection import paused_collection
from store.sources.base.drafts import ApiAnswer, MessageDraft, PartDraft
from store.sources.base.protocol import Known, LongSource, Place, Step
from store.sync.frames import AheadOf, ReadAhead, StepRead, receive, send
from store.sync.library import connect_library
from store.sync.units import Job
from store.system.children import child_environment
from store.system.programs import PIPE, CommandLine
from store.system.programs import start as start_program

COMMAND = CommandLine.python("store.sync.reading_ahead")
STEPS_WAITING = 1
"""Steps that wait, beside the one that is sent and the one that is read."""

_PART = attrgetter(*(field.name for field in fields(PartDraft)))
_NAMES = [field.name for field in fields(MessageDraft)]
_MESSAGE = attrgetter(*_NAMES)
_PARTS, _ANSWER = _NAMES.index("parts"), _NAMES.index("answer")


def steps_ahead(job: Job, database: Database, known: Known) -> Iterator[Step]:
    """Yield the steps of a unit that is new, as ``LongSource.steps`` does.

    Where the other process ends early, or the unit must be read whole, that is done here.

    Args:
        job: A unit of a long source.
        database: The library.
        known: As in ``LongSource.steps``.
    """
    source, root, unit = job.source, job.root, job.unit
    assert isinstance(source, LongSource) and isinstance(root, Path)
    with _other_process(job, database.path) as (questions, answers):
        step = next(iter(source.steps(root, unit, None, known, fresh=True)))
        yield step
        if step.more and step.place is not None:
            send(questions, ReadAhead(step.place))
            while step.more and isinstance(found := receive(answers), StepRead):
                step = unpacked(found)
                yield step
    if step.more:
        yield from source.steps(root, unit, step.place, known, fresh=False)


@contextlib.contextmanager
def _other_process(job: Job, store: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Start the other process; yields its stdin and stdout, and ends it with the block."""
    process = start_program(COMMAND, environment=child_environment(), stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            send(process.stdin, AheadOf(store, job.source.kind, job.root, job.unit))
        yield process.stdin, process.stdout
    except BrokenPipeError:
        pass  # it ended before it was sent a place
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.stdin.close()


def packed(step: Step) -> StepRead:
    """Return a step as it is sent; its drafts lose their messages."""
    drafts = step.reading.sessions
    plain = [[_plain(message) for message in draft.messages] for draft in drafts]
    try:
        messages = marshal.dumps(plain)
    except ValueError:  # a value that JSON does not have
        return StepRead(step, None)
    for draft in drafts:
        draft.messages = []
    return StepRead(step, messages)


def unpacked(sent: StepRead) -> Step:
    """Return a step that was sent."""
    step = sent.step
    if sent.messages is not None:
        plain = marshal.loads(sent.messages)
        for draft, messages in zip(step.reading.sessions, plain, strict=True):
            draft.messages = [_drafted(message) for message in messages]
    return step


def _plain(message: MessageDraft) -> list[Any]:
    values = list(_MESSAGE(message))
    values[_PARTS] = [_PART(part) for part in message.parts]
    values[_ANSWER] = message.answer and tuple(message.answer)
    return values


def _drafted(values: list[Any]) -> MessageDraft:
    values[_PARTS] = [PartDraft(*part) for part in values[_PARTS]]
    values[_ANSWER] = values[_ANSWER] and ApiAnswer(*values[_ANSWER])
    return MessageDraft(*values)


class _Passed:
    """The names of the steps so far, by their hashes: ``Known``.

    Two names with one hash only cost a reading of the whole file.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, names: Collection[str]) -> None:
        self._hashes.update(map(hash, names))

    def known(self, names: Collection[str]) -> bool:
        return not self._hashes.isdisjoint(map(hash, names))


def main() -> None:
    """Read the unit that stdin names, from the place that it gives, and send the steps."""
    # Signals reach the whole process group; the parent decides how to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    unit = receive(questions)
    if not isinstance(unit, AheadOf):
        return
    database = open_database(unit.store, write=False)
    source = registry.source(unit.kind)
    connect_library(source, database)
    start = receive(questions)
    if isinstance(start, ReadAhead) and isinstance(source, LongSource):
        _read(source, unit, start.place, answers)


def _read(source: LongSource, unit: AheadOf, place: Place, answers: IO[bytes]) -> None:
    waiting: queue.Queue[StepRead | None] = queue.Queue(STEPS_WAITING)
    sender = threading.Thread(target=_send, args=(answers, waiting), daemon=True)
    sender.start()
    passed = _Passed()
    passed.add(place.names)
    assert isinstance(unit.root, Path)
    with paused_collection():
        for step in source.steps(
            unit.root, unit.unit, place, passed.known, fresh=False, whole=False
        ):
            if step.place is not None:
                passed.add(step.place.names)
            waiting.put(packed(step))
            del step
    waiting.put(None)
    sender.join()


def _send(answers: IO[bytes], waiting: queue.Queue[StepRead | None]) -> None:
    try:
        while (step := waiting.get()) is not None:
            send(answers, step)
    except Exception:
        # Nobody waits for a step any more, or it cannot be sent: then it is read there.
        os._exit(1)


if __name__ == "__main__":
    main()
