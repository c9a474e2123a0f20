"""Change events for folders, from the system where it supports them.

Where it does not (network file systems, too many folders, no more watches available), the
folders are listed in ``polled`` and the caller has to poll them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from store.sync.roots import may_be_there
from store.system.silent import is_silent
from store.system.stopping import Stop

STEP_MS = 8
"""Changes are collected until none has come for this long ..."""
GATHER_MS = 80
"""... or for at most this long."""
QUIET_STEP_MS = 40
"""The step after a quiet time; each step wakes the process."""
QUIET_AFTER_S = 20.0


@dataclass(slots=True)
class Seen:
    """Result of a wait.

    Attributes:
        paths: Absolute paths that were changed, created or deleted; empty on a timeout.
        ended: Whether the wait was stopped.
    """

    paths: frozenset[str] = frozenset()
    ended: bool = False


class Events:
    """Watches folders and everything below them, from its creation on."""

    def __init__(self, folders: Sequence[Path], stop: Stop) -> None:
        """Start to watch.

        Args:
            folders: The folders; missing ones are left out.
            stop: Ends every wait.
        """
        self.folders = [folder for folder in folders if may_be_there(folder)]
        self._missing = [folder for folder in folders if folder not in self.folders]
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
        """Wait for changes and return them."""
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

    @property
    def waits_for_files(self) -> bool:
        """Whether files or folders are missing, whose coming the system does not tell."""
        return bool(self._missing)

    def has_come(self) -> bool:
        """Return once whether one that was missing is there now."""
        left = [folder for folder in self._missing if not may_be_there(folder)]
        has_come = len(left) < len(self._missing)
        self._missing = left
        return has_come

    def are_current(self, folders: Sequence[Path]) -> bool:
        """Return whether exactly these folders are watched and none was replaced."""
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
    """Return a watch of folders; subfolders without permission are left out.

    Raises:
        OSError: The system's limit of watches is reached.
        WatchfilesRustInternalError: The process's limit is reached.
    """
    try:
        return RustNotify(folders, False, False, 0, True, False)
    except PermissionError:
        # Only in this case: with this flag it also silently ignores reached limits.
        return RustNotify(folders, False, False, 0, True, True)


def _inode(folder: Path) -> tuple[int, int] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
