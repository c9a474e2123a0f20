"""Records from a file descriptor on one plain connection: no event loop, no thread hop."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from store.engine.database import Database, in_transaction
from store.engine.transactions import is_busy, is_lost
from store.errors import Invalid, NotFound, Refused, StoreError
from store.recorder import writing
from store.recorder.backoff import AGAIN, Backoff
from store.recorder.procedures import Procedure, drive
from store.recorder.recording import Recording, user_message
from store.recorder.wire import ORDERS, ChunkReader, EndOfTurn, Item, Received
from store.system.readable import readable

T = TypeVar("T")
READ_SIZE = 1 << 16
_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 5.0
_TRIES = 60
"""Each lasts as long as the connection's ``busy_timeout``: five minutes in all."""
_TOLD_EVERY = 12
_LOCKED = "the store is locked by another program; trying again"
_NAP_S = 0.008
"""While chunks come faster than this, they are read together: fewer wake-ups, less CPU."""
_LONGEST_NAP_S = 0.016
"""As long as chunks wait by default, so that those between two saves cost one wake-up."""


class DirectRecorder:
    """Feeds a recording from a descriptor and saves it as its policy says.

    A writer that holds the store for long delays what is saved; nothing is lost unless it
    still holds it minutes after the stream has ended.
    """

    def __init__(
        self, database: Database, recording: Recording, tell: Callable[[int, str], None]
    ) -> None:
        """Set it up.

        Args:
            database: A writing connection.
            recording: Its session is made or found already.
            tell: Called with the number of a line and what is wrong with it.
        """
        self._database, self._recording, self._tell = database, recording, tell
        self._nap_s = min(_LONGEST_NAP_S, recording.policy.wait_s())
        self._reader, self._backoff = ChunkReader(), Backoff()
        self._deadline: float | None = None
        self._read_at = self._took_s = 0.0
        self._napping_since: float | None = None
        self.line = 0

    def say(self, text: str) -> None:
        """Store a user message at once."""
        self._insist(lambda: self._recording.add_message(user_message(text)))

    def pump(self, descriptor: int) -> None:
        """Read until the end of the stream; ``close`` must follow, whatever happens."""
        while True:
            if self._deadline is None:
                self._nap(descriptor)
            elif not self._readable(descriptor):
                self._save()
                continue
            data = os.read(descriptor, READ_SIZE)
            if not data:
                break
            self.take(self._reader.feed(data))
        self.take(self._reader.end())

    def _nap(self, descriptor: int) -> None:
        """Between two saves of chunks that come fast, let some come together.

        What comes meanwhile counts as waiting since the nap began.
        """
        now = time.monotonic()
        self._napping_since = None
        if now - self._read_at >= _NAP_S or self._nap_s <= 0:
            return
        time.sleep(self._nap_s)
        if readable((descriptor,), 0):
            self._napping_since, self._read_at = now, time.monotonic()

    def _readable(self, descriptor: int) -> bool:
        """Wait until there is more, or what waits is due; say whether there is more."""
        assert self._deadline is not None
        now = time.monotonic()
        left = self._deadline - now
        if left <= 0:
            return False
        if now - self._read_at < _NAP_S:
            nap = min(left, _NAP_S)
            time.sleep(nap)
            left -= nap
        self._read_at = time.monotonic()
        return readable((descriptor,), left)

    def take(self, items: Iterable[Item]) -> None:
        """Take what one read gave; what is urgent in it is saved together."""
        recording, full = self._recording, self._recording.full
        urgent, grow = False, recording.grow
        for item in items:
            if isinstance(item, tuple):
                chunk, size, self.line = item
                if grow(chunk) is not None:
                    recording.waiting += size
                else:
                    urgent = self._receive(item) or urgent
                    grow = recording.grow
                if recording.waiting >= full:
                    self._save()
            elif isinstance(item, EndOfTurn):
                self._insist(self._recording.end_turn)
                grow = recording.grow
            else:
                self._tell(item.line, item.reason)
        if urgent:
            self._save()
        elif self._deadline is None and recording.waiting:
            policy = recording.policy
            if policy.save_on == "chunk":
                since = self._napping_since or time.monotonic()
                self._deadline = since + policy.wait_s(self._took_s)

    def _receive(self, item: Received) -> bool:
        recording, (value, size, line) = self._recording, item
        if type(value.get("type")) is not str:
            try:
                self._insist(lambda: take_line(recording, value))
            except (NotFound, Refused) as error:
                self._tell(line, str(error))
            return False
        if recording.needs_store(value):
            return self._insist(lambda: recording.receive(value, size))
        return recording.absorb(value, size)

    def _save(self) -> None:
        """Save what waits; where another program writes for long, try again later."""
        self._deadline = None
        recording = self._recording
        if self._database.server is not None:
            began = time.monotonic()
            self._insist(recording.save)
            self._took_s = time.monotonic() - began
            return
        message = recording.message
        batch = recording.take_batch(message)
        if message is None or batch is None:
            return
        try:
            in_transaction(self._database, writing.write, batch=batch)
        except BaseException as error:
            recording.put_back(message, batch)
            if not is_busy(error):
                raise
            self._tell(self.line, _LOCKED)
            self._deadline = time.monotonic() + self._backoff.failed()
        else:
            message.written(batch.parts)
            if self._backoff.went_well():
                self._tell(self.line, AGAIN)

    def _insist(self, make: Callable[[], Procedure[T]]) -> T:
        return insist(self._database, make, lambda reason: self._tell(self.line, reason))

    def close(self) -> None:
        """Save what waits and say that nobody records any more."""
        self._insist(self._recording.close)
        if self._backoff.went_well():
            self._tell(self.line, AGAIN)


def take_line(recording: Recording, value: dict[str, Any]) -> Procedure[str]:
    """Carry out a line that is no chunk: a whole message, or an order about queued ones.

    Raises:
        NotFound: The session has no such queued message.
        Refused: It is no message, or one that is there already or does not wait.
    """
    for order in ORDERS:
        if order in value and "role" not in value:
            given = value[order]
            if order == "queue":
                if isinstance(given, str):
                    given = user_message(given)
                if not isinstance(given, dict):
                    raise Invalid("queue: must be a message or a text")
                return recording.queue({"role": "user"} | given)
            if given is not None and not isinstance(given, str):
                raise Invalid(f"{order}: must be the id of a queued message, or null")
            return recording.fire(given) if order == "fire" else recording.cancel(given)
    return recording.add_message(value)


def _is_gone(database: Database, error: BaseException) -> bool:
    """Return whether a server could not be connected to again."""
    return database.server is not None and database.moved() and isinstance(error, StoreError)


def insist(
    database: Database, make: Callable[[], Procedure[T]], tell: Callable[[str], None]
) -> T:
    """Run what cannot be put off, trying again while another program writes.

    Args:
        database: A writing connection.
        make: Makes the procedure, once for each try.
        tell: Called with why it waits, at first and then every few tries, and with a line
            that it went on.

    Raises:
        sqlite3.OperationalError: The store was still locked at the last try.
    """
    again = ""
    for number in range(_TRIES):
        try:
            done = drive(database, make())
            if again:
                tell(again)
            return done
        except (sqlite3.OperationalError, StoreError) as error:
            if is_lost(error) or _is_gone(database, error):
                if number % _TOLD_EVERY == 0:
                    tell(f"{database.name} is gone; trying again")
                again = f"{database.name} answers again"
                time.sleep(min(_FIRST_RETRY_S * 2**number, _LAST_RETRY_S))
                continue
            if not is_busy(error):
                raise
        again = again or AGAIN
        if number % _TOLD_EVERY == 0:
            tell(_LOCKED)
    return drive(database, make())
