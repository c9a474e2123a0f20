"""Keeps a sidecar file up to date: runs what fills it, and makes the file again when it is lost."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from store.engine import sidecars
from store.engine.server_url import ServerTrouble
from store.engine.sidecars import Sidecar
from store.engine.transactions import explained, is_busy, is_lost, primary_code
from store.errors import BackscrollError, StoreError
from store.system.stopping import Stop

POLL_S = 0.2
"""Seconds between looks at the store."""
LONGEST_REST_S = 30.0
TROUBLE_S = 2.0
"""Seconds before what failed is tried again."""
CHECKED_EVERY_S = 5.0
"""Seconds between looks whether the file can still be opened, as its readers open it."""


class Worker(Protocol):
    """Fills a sidecar file step by step."""

    @property
    def idle(self) -> bool:
        """Whether everything known of is in the file."""
        ...

    def look(self) -> None:
        """Take note of what changed in the store.

        Raises:
            FileNotFoundError: The file was deleted, or made again by another program.
        """
        ...

    def step(self) -> bool:
        """Do some of the work that is due; return whether more is due at once."""
        ...

    def close(self) -> None:
        """Close the store and the file."""
        ...


W = TypeVar("W", bound=Worker)


class Keeper(Generic[W]):
    """Runs a worker, and makes a new one when its file is gone or damaged."""

    def __init__(
        self, sidecar: Sidecar, store: Path, stop: Stop, make: Callable[[], W], *,
        progress: Callable[[W, bool], None], trouble: Callable[[str], None], once: bool = False,
        poll_s: float = POLL_S, rests: int = 0, pauses: int = 0,
    ) -> None:  # fmt: skip
        """Prepare to keep a file.

        Args:
            sidecar: The kind of file.
            store: The store's file.
            stop: Ends the work.
            make: Returns a worker that begins where the last one ended.
            progress: Takes the worker after each step, and whether it has nothing left to do.
            trouble: Takes the reason when the work has to wait.
            once: Whether to end when there is nothing left to do, and on trouble.
            poll_s: Seconds between looks at the store.
            rests: The rest after the last step of some work is so many times as long as the step,
                within ``LONGEST_REST_S``.
            pauses: The same for the rest after each other step. With ``once`` there is none.
        """
        self._sidecar, self._store, self._stop = sidecar, store, stop
        self._make, self._progress, self._trouble = make, progress, trouble
        self._once, self._poll_s, self._rests = once, poll_s, rests
        self._pauses = 0 if once else pauses
        self._worker: W | None = None
        self._checked_s = time.monotonic()

    def run(self) -> None:
        """Work until stopped; with ``once``, until nothing is left to do or trouble came."""
        try:
            while not self._stop.is_set():
                pause = self.work()
                if pause is None:
                    return
                if pause:
                    self._stop.wait(pause)
        finally:
            self.drop()

    def work(self) -> float | None:
        """Take one step; return for how long to rest, or None to end."""
        try:
            if self._worker is None:
                self._worker = self._make()
            self._check()
            started = time.monotonic()
            self._worker.look()
            more = self._worker.step()
            done = not more and self._worker.idle
            self._progress(self._worker, done)
            if self._once and done:
                return None
            took = time.monotonic() - started
            rest = min((self._pauses if more else self._rests) * took, LONGEST_REST_S)
            return rest if more else max(self._poll_s, rest)
        except FileNotFoundError:
            self.drop()  # The file was deleted: make it again.
            return POLL_S
        except sqlite3.Error as error:
            return self._after(error)
        except UnicodeDecodeError as error:
            return self._after(sidecars.damage_of(error))
        except StoreError as error:
            self.drop()
            if self._once:
                raise
            if not isinstance(error, ServerTrouble):
                # Whoever shows the store says that its server is gone.
                self._trouble(str(error))
            return TROUBLE_S

    def _check(self) -> None:
        """Look now and then whether the file can be opened; open files hide some damage.

        Raises:
            sqlite3.Error: It cannot be opened now, or is damaged.
            FileNotFoundError: It was of another kind, and was removed.
        """
        if time.monotonic() - self._checked_s < CHECKED_EVERY_S:
            return
        self._checked_s = time.monotonic()
        path = self._sidecar.path(self._store)
        opened = self._sidecar.open_existing(path)
        if opened is None or not self._sidecar.has_tables(opened):
            sidecars.remove_files(path)
            raise FileNotFoundError(path)
        opened.close()

    def _after(self, error: sqlite3.Error) -> float:
        """Handle an error of SQLite; return for how long to rest."""
        if is_busy(error):
            return POLL_S
        path = self._sidecar.path(self._store)
        if sidecars.is_damage(error) and self._sidecar.is_damaged(path):
            self.drop()
            sidecars.remove_files(path)
            return POLL_S
        full = primary_code(error) == sqlite3.SQLITE_FULL
        if self._once:
            raise explained(error, path if full else self._store) from error
        if not full:
            self.drop()
        if is_lost(error):
            return TROUBLE_S
        self._trouble(str(explained(error, path if full else self._store)))
        return TROUBLE_S

    def drop(self) -> None:
        """Close the worker; the next step makes a new one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def print_differences(check: Callable[[Path], list[str]], store: Path) -> int:
    """Print what a check of a sidecar file finds; return the exit code.

    Args:
        check: Compares the file with its store; returns a line for each difference.
        store: The store's file.
    """
    try:
        differences = check(store)
    except BackscrollError as error:
        differences = [str(error)]
    for line in differences:
        print(line)
    return 1 if differences else 0
