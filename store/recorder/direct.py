"""Records from a file descriptor on one plain connection: no event loop, no thread hop."""

from __future__ import annotations

import os
import select
import sqlite3
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from store.database import Database
from store.errors import Refused
from store.recorder.procedures import Procedure, drive
from store.recorder.recording import Recording, user_message
from store.recorder.wire import ChunkReader, EndOfTurn, Item, Malformed, Received

T = TypeVar("T")
READ_SIZE = 1 << 16
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_RETRY_S = 1.0
_LAST_TRIES = 6


class DirectRecorder:
    """Feeds a recording from a descriptor and saves it as its policy says.

    A writer that holds the store for long delays what is saved; nothing is lost unless it
    still holds it when the stream has ended.
    """

    def __init__(
        self, database: Database, recording: Recording, tell: Callable[[int, str], None]
    ) -> None:
        """Set it up.

        Args:
            database: A writing connection.
            recording: Its session is made or found already.
            tell: Told the number of a line and what is wrong with it.
        """
        self._database, self._recording, self._tell = database, recording, tell
        self._reader = ChunkReader()
        self._deadline: float | None = None
        self.line = 0

    def say(self, text: str) -> None:
        """Store a user message at once."""
        self._insist(lambda: self._recording.add_message(user_message(text)))

    def pump(self, descriptor: int) -> None:
        """Read until the end of the stream; ``close`` must follow, whatever happens."""
        while True:
            if self._deadline is not None and not self._readable(descriptor):
                self._save()
                continue
            data = os.read(descriptor, READ_SIZE)
            if not data:
                break
            self.take(self._reader.feed(data))
        self.take(self._reader.end())

    def _readable(self, descriptor: int) -> bool:
        left = (self._deadline or 0.0) - time.monotonic()
        return left > 0 and bool(select.select((descriptor,), (), (), left)[0])

    def take(self, items: Iterable[Item]) -> None:
        """Take what the wire gave."""
        for item in items:
            if isinstance(item, Received):
                self.line = item.line
                self._receive(item)
            elif isinstance(item, EndOfTurn):
                self._insist(self._recording.end_turn)
            elif isinstance(item, Malformed):
                self._tell(item.line, item.reason)

    def _receive(self, item: Received) -> None:
        recording = self._recording
        if "type" not in item.value:
            try:
                self._insist(lambda: recording.add_message(item.value))
            except Refused as error:
                self._tell(item.line, str(error))
            return
        if recording.begins_message(item.value):
            now = self._insist(lambda: recording.receive(item.value, item.size))
        else:
            now = recording.absorb(item.value, item.size)
        policy = recording.policy
        if now:
            self._save()
        elif recording.waiting and self._deadline is None and policy.save_on == "chunk":
            self._deadline = time.monotonic() + policy.save_buffer_ms / 1000

    def _save(self) -> None:
        """Save what waits; where another program writes for long, try again later."""
        self._deadline = None
        try:
            drive(self._database, self._recording.save())
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY:
                raise
            self._tell(self.line, "the store is locked by another program; trying again")
            self._deadline = time.monotonic() + _RETRY_S

    def _insist(self, make: Callable[[], Procedure[T]]) -> T:
        """Run what cannot be put off, trying again while another program writes."""
        for last in range(_LAST_TRIES, -1, -1):
            try:
                return drive(self._database, make())
            except sqlite3.OperationalError as error:
                if not last or error.sqlite_errorcode & 0xFF not in _BUSY:
                    raise
                self._tell(self.line, "the store is locked by another program; trying again")
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Save what waits and say that nobody records any more."""
        self._insist(self._recording.close)
