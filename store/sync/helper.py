"""``python -m store.sync.helper``: syncs the units that a parent sync assigns to it.

Each helper reads, maps and writes: sending rows through a pipe would cost as much as making
them. Helpers take turns to write. A helper ends when its stdin closes, so none outlives a
killed sync; uncommitted units are read again by the next sync.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import IO

from store.engine.database import Database, open_database
from store.errors import StoreError
from store.sources import registry
from store.sources.base.protocol import Source
from store.sync.batch import BULK_PRAGMAS, MOST_BYTES, Batch, write_batch
from store.sync.child import pipes_to_parent
from store.sync.frames import Failed, ReadsNow, Start, Task, Wrote, receive, send
from store.sync.library import connect_library
from store.sync.locking import write_turn
from store.sync.long_units import read_in_steps
from store.sync.reading import leave_out
from store.sync.units import Job
from store.system.clock import system_clock
from store.system.collection import rare_collection

GRACE_S = 5.0
"""How long running work may take after stdin has closed, before the process exits."""


@dataclass(slots=True)
class Helper:
    """Runs the tasks of one helper process.

    Attributes:
        tasks: Assigned tasks that are not started; None marks the end.
    """

    database: Database
    start: Start
    answers: IO[bytes]
    tasks: queue.SimpleQueue[Task | None] = field(default_factory=queue.SimpleQueue)
    _sources: dict[str, Source] = field(default_factory=dict)
    _batch: Batch = field(init=False)
    _numbers: list[int] = field(default_factory=list)
    _at: int | None = None

    def __post_init__(self) -> None:
        """Start with an empty batch."""
        self._batch = Batch(self.start.keep_deleted)

    def run(self) -> None:
        """Work until stdin closes.

        Raises:
            StoreError: The store is locked for long, read only, full or damaged.
            BrokenPipeError: The parent process is gone.
        """
        while True:
            if not self._numbers:
                self._tell(None)
            try:
                task = self.tasks.get(block=not self._numbers)
            except queue.Empty:
                self._write()
                continue
            if task is None:
                return
            self._read(task)
            if self._batch.is_full:
                self._write(wait=self._batch.size >= MOST_BYTES)

    def _source(self, kind: str) -> Source:
        if kind not in self._sources:
            self._sources[kind] = registry.source(kind)
            connect_library(self._sources[kind], self.database, self.start.keep_deleted)
        return self._sources[kind]

    def _read(self, task: Task) -> None:
        source = self._source(task.kind)
        job = Job(source, task.root, task.unit, task.stored, task.attempts, task.whole)
        self._tell(task.number)
        for result in read_in_steps(job, self.start.keep_originals, self.database):
            leave_out(result, self.start.excludes)
            self._batch.add(job, result)
            self._numbers.append(task.number)
            if result.more:
                self._write()
                self._tell(task.number)

    def _tell(self, number: int | None) -> None:
        """Tell the parent which task is read now: it is lost where this process dies."""
        if number != self._at:
            send(self.answers, ReadsNow(number))
            self._at = number

    def _write(self, *, wait: bool = True) -> None:
        """Write the batch; where another helper writes and this need not wait, it is kept."""
        batch, numbers = self._batch, self._numbers
        self._tell(None)
        with write_turn(self.database.path, wait=wait) as mine:
            if not mine:
                return
            self._batch, self._numbers = Batch(self.start.keep_deleted), []
            outcome = write_batch(self.database, batch, system_clock)
        number_of = {id(job): n for (job, _), n in zip(batch.units, numbers, strict=True)}
        again = [(number_of[id(job)], stored) for job, stored in outcome.overtaken]
        done = [number_of[id(job)] for job in batch.ended(outcome)]
        outcome.overtaken = []
        send(self.answers, Wrote(done, outcome, again))


def main() -> None:
    """Run the tasks from stdin and send the results to stdout."""
    questions, answers = pipes_to_parent()
    start = receive(questions)
    if not isinstance(start, Start):
        return
    try:
        database = open_database(start.store)
        for pragma in BULK_PRAGMAS:
            database.connection.execute(pragma)
        helper = Helper(database, start, answers)
        rare_collection()
        threading.Thread(target=_listen, args=(questions, helper), daemon=True).start()
        helper.run()
        database.close()
    except StoreError as error:
        send(answers, Failed(str(error)))


def _listen(questions: IO[bytes], helper: Helper) -> None:
    """Queue incoming tasks; at the end of input drop those that were not started."""
    while isinstance(task := receive(questions), Task):
        helper.tasks.put(task)
    with contextlib.suppress(queue.Empty):
        while True:
            helper.tasks.get_nowait()
    helper.tasks.put(None)
    # A huge file or another program's lock could block the helper for long.
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(1)
