"""Notices that somebody wrote to the store, and that the store is busy, gone or another."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from typing import Literal

from store.engine.companions import signature
from store.system.records import NamedTuple
from tui.state.library import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from store.engine.server.watching import ServerWatch

FILE_EVERY = 10
"""Polls between two looks at the file itself, where the connection sees its writes."""
AGAIN_S = 1.0
"""Between two tries to open a store whose server answers, but not for it."""
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

HealthState = Literal["fresh", "busy", "gone", "failed", "waits"]


class Health(NamedTuple):
    """Whether what is shown is what the store holds.

    Attributes:
        state: ``busy``: a writer holds the lock; ``gone``: there is no file any more;
            ``waits``: a table on a server is locked, and reads go on when it is free.
        since: Until when it was fresh, epoch ms; 0 while it is.
        reason: SQLite's message, where it failed; which table is locked and who has
            locked it, where it waits.
    """

    state: HealthState = "fresh"
    since: int = 0
    reason: str = ""


class Poller:
    """Asks ``PRAGMA data_version`` on one long-lived connection; nothing moved, nothing is read.

    The connection must have no half-read cursor and no open transaction: SQLite then keeps
    the value that it had. It never waits for a lock, as it is asked where the screen is drawn.
    """

    def __init__(
        self, library: Library, changed: Callable[[], None],
        health_changed: Callable[[Health], None], replaced: Callable[[], None],
    ) -> None:
        """Make a poller that is not started; what is written from now on is a change.

        Args:
            library: Its plain connection is kept for this.
            changed: Called after each change that was noticed.
            health_changed: Called when the store turns fresh, busy, gone or failed.
            replaced: Called when the file is to be opened again; ``reopened`` must follow.
        """
        self._library = library
        self._changed, self._health_changed = changed, health_changed
        self._replaced = replaced
        self.health = Health()
        self._polls = 0
        self._reopening = self._lost = False
        self._every_s = 0.0
        self._next: asyncio.TimerHandle | None = None
        self._watch = library.server_watch()
        self._rights, self._again_at = library.rights, 0.0
        self._take_connection()

    def _take_connection(self) -> None:
        if self._watch is None:
            self._library.database.connection.execute("PRAGMA busy_timeout = 0")
        self._version = self.version()

    def version(self) -> int:
        """Return a number that differs after every foreign commit."""
        if self._watch is not None:
            return self._watch.version
        return self._library.database.data_version()

    def start(self, every_ms: int) -> None:
        """Ask from now on, at this pace; a pace that was set before is dropped."""
        self.stop()
        self._every_s = every_ms / 1000
        # A bare timer of the loop: a widget's costs three times as much when nothing happens.
        self._next = asyncio.get_running_loop().call_later(self._every_s, self._tick)

    def stop(self) -> None:
        """Stop asking."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _tick(self) -> None:
        self._next = asyncio.get_running_loop().call_later(self._every_s, self._tick)
        self.poll()

    def poll(self, *, file: bool = False) -> bool:
        """Ask once; returns whether a change was noticed.

        Args:
            file: Look at the file too, though its turn has not come.
        """
        if self._watch is not None and not self._server_answers(self._watch):
            return False
        if self._reopening or not self._file_is_there(look=file):
            return False
        try:
            version = self.version()
        except sqlite3.Error as error:
            self._trouble(error)
            return False
        if self.health.state in ("busy", "failed"):
            self.set_health("fresh")
            self._version = -1
        if version == self._version:
            return False
        self._version = version
        self._changed()
        return True

    def _server_answers(self, watch: ServerWatch) -> bool:
        """Return whether the server of the store answers; it is not waited for here."""
        if (trouble := watch.trouble) is not None:
            since = watch.since
            self.set_health("failed", trouble, silent_s=since and time.time() - since)
            return False
        has_other_rights = watch.rights not in (None, self._rights)
        if not self._reopening and (
            has_other_rights or self.health.state not in ("fresh", "waits")
        ) and (not self._lost or time.monotonic() >= self._again_at):
            self._lost, self._rights = False, watch.rights
            self._again_at = time.monotonic() + AGAIN_S
            self._reopen()
        if watch.waits is not None:
            self.set_health("waits", watch.waits)
            return False
        if self.health.state == "waits":
            self.set_health("fresh")
        return not self._reopening

    def _file_is_there(self, *, look: bool) -> bool:
        opened = self._library.database.opened
        self._polls += 1
        if opened is None or (
            opened.way == "live" and not look and self._polls % FILE_EVERY
            and self.health.state != "gone"
        ):
            # What took the store's place is none; the connection still has the old one.
            return not self._lost
        now = signature(opened.path, opened.way)
        if not now:
            self.set_health("gone")
            return False
        if now != opened.signature or self._lost:
            self._reopen()
            return False
        if self.health.state == "gone":
            self.set_health("fresh")
            self._version = -1
        return True

    def _trouble(self, error: sqlite3.Error) -> None:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if code & 0xFF in _LOCKED:
            self.set_health("busy")
        else:
            # The file may have been written over in place: open it again to find out.
            self.set_health("failed", str(error))
            if self._polls % FILE_EVERY == 0:
                self._reopen()

    def _reopen(self) -> None:
        self._reopening = True
        self._replaced()

    def reopened(self, error: Exception | None = None) -> None:
        """Go on after the library's connection was opened again, or could not be."""
        self._reopening, self._lost = False, error is not None
        if error is None:
            try:
                self._take_connection()
            except sqlite3.Error as trouble:
                self._trouble(trouble)
                return
            self.set_health("fresh")
            self._changed()
        else:
            self.set_health("failed", getattr(error, "reason", str(error)))

    def set_health(self, state: HealthState, reason: str = "", *, silent_s: float = 0.0) -> None:
        """Set the store's health, as found here or by a read that failed.

        Args:
            state: The health.
            reason: As in ``Health``.
            silent_s: How long ago the store answered last.
        """
        if (self._lost and state == "busy") or (
            state == self.health.state and reason in ("", self.health.reason)
        ):
            return
        now = self._library.clock() - round(max(silent_s, 0.0) * 1000)
        since = 0 if state == "fresh" else self.health.since or now
        self.health = Health(state, since, reason)
        self._health_changed(self.health)
