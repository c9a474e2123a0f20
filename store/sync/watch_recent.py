"""Looks at the size and time of files that changed lately, for where events say nothing.

On macOS a change is reported when its writer closes the file: a rollout that an agent holds
open, and a database with an open ``-wal``, grow unseen. Events may fail elsewhere as well. So
the files that were written lately, and the folders that they lie in, are looked at once a
second: one ``stat`` each.
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
"""Pace of the looks."""
RECENT_S = 86_400.0
"""Files that rest for longer are not looked at; a new session begins with a new file."""
MOST_FILES = 256
MOST_FOLDERS, MOST_FOLDERS_EAGER = 128, 2_000
UNTOLD = 3
"""So many changes of a file that no event told of show that events are silent."""
Sign = tuple[int, int, int]
"""Inode, size in bytes, and time of the last change in ns."""


def events_come_late() -> bool:
    """Say whether this system tells of a file only when its writer closes it."""
    return sys.platform == "darwin"


@dataclass(slots=True)
class RecentFiles:
    """The files and folders that are looked at; those that changed last are kept.

    Attributes:
        eager: Whether the folders of sessions that rest are looked at too, as events say
            nothing of new files there: always on macOS, elsewhere once events were silent.
        clock: The present, epoch seconds.
    """

    eager: bool = field(default_factory=lambda: events_come_late())
    clock: Callable[[], float] = time.time
    _files: OrderedDict[str, Sign | None] = field(default_factory=OrderedDict)
    _folders: OrderedDict[str, Sign | None] = field(default_factory=OrderedDict)
    _always: dict[str, Sign | None] = field(default_factory=dict)
    _tops: list[str] = field(default_factory=list)
    _untold: dict[str, int] = field(default_factory=dict)

    def start(self, watched: Iterable[Path]) -> None:
        """Begin with the paths that are watched: folders, databases and small side files.

        A path that is missing counts too: a ``-wal`` comes and goes.
        """
        self._files.clear()
        self._folders.clear()
        paths = [str(path) for path in watched]
        self._tops = [path for path in paths if os.path.isdir(path)]
        self._always = {path: sign_of(path) for path in paths}

    def take(self, stamps: Iterable[FileStamp]) -> None:
        """Look at files from now on, as they were when they were listed."""
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
        """Return what has changed since the last look, and since it was taken."""
        found = set()
        for known in (self._always, self._files, self._folders):
            for path, before in list(known.items()):
                now = sign_of(path)
                if now != before:
                    known[path] = now
                    found.add(path)
        for path in found.intersection(self._files):
            self._untold[path] = self._untold.get(path, 0) + 1
            self.eager = self.eager or self._untold[path] >= UNTOLD
        return frozenset(found)

    def told(self, paths: Iterable[str]) -> None:
        """Take what events told of: they are not silent."""
        for path in paths:
            self._untold.pop(path, None)

    def _is_below(self, folder: str) -> bool:
        """Say whether a folder lies in one that is watched; those themselves are known."""
        return any(folder.startswith(top + os.sep) for top in self._tops)


def sign_of(path: str) -> Sign | None:
    """Return what tells whether a file or folder moved; None where it is not there."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _drop_oldest(known: OrderedDict[str, Sign | None], most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
