"""A helper of a sync that goes wrong as its first argument says; not a test module."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

from store.engine.database import Database
from store.errors import StoreError
from store.sync import helper
from store.sync.batch import Batch, Outcome, write_batch
from store.sync.long_units import read_in_steps
from store.sync.units import Job


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(part_of_key: str) -> None:
    def read(job: Job, keep_originals: bool, database: Database) -> Any:
        if part_of_key in job.unit.key:
            die()
        return read_in_steps(job, keep_originals, database)

    patch.object(helper, "read_in_steps", read).start()


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def is_first(mark: str) -> bool:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def stop_once(mark: str) -> None:
    def read(job: Job, keep_originals: bool, database: Database) -> Any:
        if is_first(mark):
            stop()
        return read_in_steps(job, keep_originals, database)

    patch.object(helper, "read_in_steps", read).start()


def end_once_in_a_transaction(mark: str, end: Callable[[], None]) -> None:
    def write(database: Database, batch: Batch, clock: Any) -> Outcome:
        if not is_first(mark):
            return write_batch(database, batch, clock)
        database.connection.execute("BEGIN IMMEDIATE")
        database.connection.execute("DELETE FROM chat_sessions")
        end()
        raise AssertionError

    patch.object(helper, "write_batch", write).start()


def fail(message: str) -> None:
    def write(database: Database, batch: Batch, clock: Any) -> Outcome:
        raise StoreError(message)

    patch.object(helper, "write_batch", write).start()


def be_told_to_end(_: str) -> None:
    def read(job: Job, keep_originals: bool, database: Database) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return read_in_steps(job, keep_originals, database)

    patch.object(helper, "read_in_steps", read).start()


def read_for_ever(_: str) -> None:
    def read(job: Job, keep_originals: bool, database: Database) -> Any:
        while True:
            signal.pause()

    patch.object(helper, "read_in_steps", read).start()
    patch.object(helper, "GRACE_S", 0.0).start()


if __name__ == "__main__":
    misbehave: dict[str, Callable[[str], None]] = {
        "die": lambda _: die(),
        "die-at": die_at,
        "die-in-a-transaction": partial(end_once_in_a_transaction, end=die),
        "stop": stop_once,
        "stop-in-a-transaction": partial(end_once_in_a_transaction, end=stop),
        "fail": fail,
        "be-told-to-end": be_told_to_end,
        "read-for-ever": read_for_ever,
    }
    misbehave[sys.argv[1]](sys.argv[2])
    helper.main()
