"""What changed below some folders, told by the system where it can.

Where it cannot (file systems of other machines, too many folders, no room for more
watches), the folders are named in ``polled`` and whoever waits has to look by itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from store.sync.roots import may_be_there
from store.sync.stopping import Stop
from store.system.silent import is_silent

STEP_MS = 8
"""Changes are gathered until none has come for so long ..."""
GATHER_MS = 80
"""... or for at most so long."""
QUIET_STEP_MS = 40
"""The step where nothing has changed for a while: each step wakes the process."""
QUIET_AFTER_S = 20.0


@dataclass(slots=True)
class Seen:
    """What a wait came to.

    Attributes:
        paths: Absolute paths that changed, came or went; empty when time ran out.
        ended: Whether the wait was broken off.
    """

    paths: frozenset[str] = frozenset()
    ended: bool = False


class Events:
    """Watches folders and all below them, from the moment it is made."""

    def __init__(self, folders: Sequence[Path], stop: Stop) -> None:
        """Start to watch.

        Args:
            folders: Those that are missing are left out.
            stop: Breaks every wait off.
        """
        self.folders = [folder for folder in folders if may_be_there(folder)]
        self.polled = [folder for folder in self.folders if is_silent(folder)]
        self._stop = stop
        self._inodes = {folder: _inode(folder) for folder in self.folders}
        told = [str(folder) for folder in self.folders if folder not in self.polled]
        self._changed_at = time.monotonic()
        self._notify: RustNotify | None = None
        if told:
            try:
                self._notify = _notify(told)
            except (OSError, WatchfilesRustInternalError):
                self.polled = list(self.folders)

    def wait(self, timeout_s: float) -> Seen:
        """Wait for changes."""
        if self._notify is None:
            return Seen(ended=self._stop.wait(timeout_s))
        timeout_ms = max(1, int(timeout_s * 1000))
        quiet = time.monotonic() - self._changed_at > QUIET_AFTER_S
        step = QUIET_STEP_MS if quiet else STEP_MS
        found = self._notify.watch(GATHER_MS, step, timeout_ms, self._stop)
        if isinstance(found, str):
            return Seen(ended=found != "timeout" and self._stop.is_set())
        self._changed_at = time.monotonic()
        return Seen(frozenset(path for _, path in found))

    def are_current(self, folders: Sequence[Path]) -> bool:
        """Say whether just these folders are watched, and none was replaced since."""
        there = [folder for folder in folders if may_be_there(folder)]
        return there == self.folders and all(
            _inode(folder) == inode for folder, inode in self._inodes.items()
        )

    def close(self) -> None:
        """Stop watching."""
        if self._notify is not None:
            self._notify.close()
            self._notify = None


def _notify(folders: list[str]) -> RustNotify:
    """Watch folders; those below them that may not be entered are left out.

    Raises:
        OSError: There is no room for so many watches.
        WatchfilesRustInternalError: There is none for this process.
    """
    try:
        return RustNotify(folders, False, False, 0, True, False)
    except PermissionError:
        # Only then: it leaves out, as silently, what there is no room for.
        return RustNotify(folders, False, False, 0, True, True)


def _inode(folder: Path) -> tuple[int, int] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
