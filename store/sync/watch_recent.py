"""Polls size and time of recently changed files, for systems with late or missing events.

macOS reports a change only when the writer closes the file, so a rollout that an agent keeps
open, or a database with an open ``-wal``, grows without events. Events may fail elsewhere
too. Therefore recently written files and their folders are polled once a second, with one
``stat`` each.
"""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from store.sources.base.protocol import FileStamp

LOOK_S = 1.0
"""Seconds between polls."""
RECENT_S = 86_400.0
"""Files unchanged for longer than this are not polled; a new session starts a new file."""
MOST_FILES = 256
MOST_FOLDERS, MOST_FOLDERS_EAGER = 128, 2_000
UNREPORTED = 3
"""After this many changes of a file without an event, events count as missing."""
Sign = tuple[int, int, int]
"""Inode, size in bytes, and time of the last change in ns."""


def events_come_late() -> bool:
    """Return whether this system reports a change only when the writer closes the file."""
    return sys.platform == "darwin"


@dataclass(slots=True)
class RecentFiles:
    """The polled files and folders, limited to the most recently changed ones.

    Attributes:
        eager: Whether to poll the folders of unchanged sessions too, because new files there
            have no events: always on macOS, elsewhere once events were missing.
        clock: Returns the time in epoch seconds.
    """

    eager: bool = field(default_factory=lambda: events_come_late())
    clock: Callable[[], float] = time.time
    _files: OrderedDict[str, Sign | None] = field(default_factory=OrderedDict)
    _folders: OrderedDict[str, Sign | None] = field(default_factory=OrderedDict)
    _always: dict[str, Sign | None] = field(default_factory=dict)
    _tops: list[str] = field(default_factory=list)
    _unreported: dict[str, int] = field(default_factory=dict)

    def start(self, watched: Iterable[Path]) -> None:
        """Start with the watched paths: folders, databases and small side files.

        Missing paths are included: a ``-wal`` is created and deleted.
        """
        self._files.clear()
        self._folders.clear()
        paths = [str(path) for path in watched]
        self._tops = [path for path in paths if os.path.isdir(path)]
        self._always = {path: sign_of(path) for path in paths}

    def take(self, stamps: Iterable[FileStamp]) -> None:
        """Poll files from now on, compared with their state at listing."""
        oldest = (self.clock() - RECENT_S) * 1e9
        for stamp in stamps:
            is_recent = stamp.mtime_ns >= oldest
            if stamp.path in self._always or not (is_recent or self.eager):
                continue
            if is_recent:
                self._files[stamp.path] = (stamp.inode, stamp.size, stamp.mtime_ns)
                self._files.move_to_end(stamp.path)
            folder = os.path.dirname(stamp.path)
            while folder not in self._folders and self._is_below(folder):
                self._folders[folder] = sign_of(folder)
                folder = os.path.dirname(folder)
        _drop_oldest(self._files, MOST_FILES)
        _drop_oldest(self._folders, MOST_FOLDERS_EAGER if self.eager else MOST_FOLDERS)

    def look(self) -> frozenset[str]:
        """Return the paths that changed since the last poll."""
        found = set()
        for known in (self._always, self._files, self._folders):
            for path, before in list(known.items()):
                now = sign_of(path)
                if now != before:
                    known[path] = now
                    found.add(path)
        for path in found.intersection(self._files):
            self._unreported[path] = self._unreported.get(path, 0) + 1
            self.eager = self.eager or self._unreported[path] >= UNREPORTED
        return frozenset(found)

    def note_reported(self, paths: Iterable[str]) -> None:
        """Note that these paths had events."""
        for path in paths:
            self._unreported.pop(path, None)

    def _is_below(self, folder: str) -> bool:
        """Return whether a folder is below a watched one."""
        return any(folder.startswith(top + os.sep) for top in self._tops)


def sign_of(path: str) -> Sign | None:
    """Return values that change with a file or folder; None if it does not exist."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _drop_oldest(known: OrderedDict[str, Sign | None], most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
