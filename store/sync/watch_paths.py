"""Translates paths in events to paths below the watched folders.

Events may use another path than the watched folder's: a symbolic link's target, or other
letter case. Folders are therefore compared by device and inode.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

Identity = tuple[int, int]
_MOST_KNOWN = 4_096


class WatchedPaths:
    """Translates the paths of events."""

    def __init__(self, watched: Sequence[Path] = ()) -> None:
        """Use the folders and files that are watched, as they are now."""
        self._tops = [str(path) for path in watched]
        self._named: dict[Identity, list[str]] = {}
        for top in self._tops:
            # A file may be replaced later, or not exist yet; its folder stays.
            for name in (top,) if os.path.isdir(top) else (os.path.dirname(top),):
                identity = _identity(name)
                if identity is not None and name not in self._named.setdefault(identity, []):
                    self._named[identity].append(name)
        self._known: dict[str, list[str]] = {}

    def as_watched(self, paths: Iterable[str]) -> frozenset[str]:
        """Return paths translated to the watched folders' own paths."""
        return frozenset(name for path in paths for name in self._names_of(path))

    def _names_of(self, path: str) -> list[str]:
        if any((path + os.sep).startswith(top + os.sep) for top in self._tops):
            return [path]
        folder, name = os.path.split(path)
        return [os.path.join(other, name) for other in self._folders(folder)] or self._itself(path)

    def _itself(self, path: str) -> list[str]:
        """Return the watched paths of a folder that is itself watched, else the path."""
        return self._named.get(_identity(path) or (0, 0), []) or [path]

    def _folders(self, folder: str) -> list[str]:
        """Return the paths of a folder below the watched folders; empty if it is in none."""
        known = self._known.get(folder)
        if known is not None:
            return known
        identity = _identity(folder)
        found = list(self._named.get(identity, ())) if identity is not None else []
        above, name = os.path.split(folder)
        if not found and above != folder:
            found = [os.path.join(other, name) for other in self._folders(above)]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[folder] = found
        return found


def _identity(path: str) -> Identity | None:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino
