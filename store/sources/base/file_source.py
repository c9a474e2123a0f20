"""What the sources have in common whose sessions are files that grow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from store.sources.base.json_lines import LINE_LIMIT, records_of
from store.sources.base.protocol import Follower, Reading, Unit
from store.system.paths import open_regular

_HEAD = 65536


class FileSource(ABC):
    """Reads a unit by following it once."""

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        self._line_limit = line_limit

    @abstractmethod
    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one unit whole; a file that went away meanwhile costs just itself."""
        return self.follower(root, unit).read(unit)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folder whose changes below it concern this root."""
        return [root.parent if root.is_file() else root]


def first_record(path: Path) -> dict[str, Any] | None:
    """Return the first record of a file; None where its beginning holds none."""
    try:
        with open_regular(str(path)) as file:
            head = file.read(_HEAD) or b""
    except OSError:
        return None
    return next(iter(records_of(head, 1)), None)
