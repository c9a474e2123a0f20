"""Notices that somebody wrote to the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget

from store.database import Database


class Poller:
    """Asks ``PRAGMA data_version`` on one long-lived connection; nothing moved, nothing is read.

    The connection must have no half-read cursor and no open transaction: SQLite then keeps
    the value that it had.
    """

    def __init__(
        self, database: Database, changed: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Make a poller that stands still.

        Args:
            database: The connection that is kept for this.
            changed: Called after each change that was noticed.
            failed: Called once when the store cannot be asked any more.
        """
        self._database = database
        self._changed = changed
        self._failed = failed
        self._version = self.version()
        self._timer: Timer | None = None

    def version(self) -> int:
        """Return a number that differs after every foreign commit."""
        return int(self._database.connection.execute("PRAGMA data_version").fetchall()[0][0])

    def start(self, owner: Widget, every_ms: int) -> None:
        """Ask from now on, at this pace; a pace that was set before is dropped."""
        self.stop()
        self._timer = owner.set_interval(every_ms / 1000, self.poll, name="store poll")

    def stop(self) -> None:
        """Stop asking."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def poll(self) -> bool:
        """Ask once; returns whether a change was noticed."""
        try:
            version = self.version()
        except sqlite3.Error as error:
            self.stop()
            self._failed(error)
            return False
        if version == self._version:
            return False
        self._version = version
        self._changed()
        return True
