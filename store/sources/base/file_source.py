"""What the sources have in common whose sessions are files that grow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from store.sources.base.drafts import SessionDraft
from store.sources.base.growing import DOCUMENT, LINES, UnitFollower, UnitReader
from store.sources.base.json_lines import LINE_LIMIT, read_head, records_of
from store.sources.base.protocol import Follower, Problem, Reading, Source, Unit
from store.system.paths import open_regular

_HEAD = 65536
MOST_DOCUMENTS = 12
"""JSON documents of a session that is listed before it is read."""


class FileSource(Source):
    """A source whose sessions are files; its class says how to list and how to read them.

    Attributes:
        line_limit: Bytes of the longest line that is read.
    """

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        self.line_limit = line_limit

    @abstractmethod
    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root; damage goes to ``problems``."""

    @abstractmethod
    def reader(self, root: Path, unit: Unit) -> UnitReader:
        """Return a reader of a unit that has read nothing, such as a ``BuiltUnit``."""

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that changed files belong to, by listing all.

        Returns:
            None where a path is no file of a session: only a listing of the root can tell.
        """
        files = {stamp.path: unit for unit in self.units(root, []) for stamp in unit.stamps}
        changed = set(paths)
        if not changed <= files.keys():
            return None
        return list({files[path].key: files[path] for path in sorted(changed)}.values())

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        return UnitFollower(partial(self.reader, root))

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one unit whole; a file that went away meanwhile costs just itself."""
        return self.follower(root, unit).read(unit)

    def outline(self, root: Path, unit: Unit) -> list[SessionDraft]:
        """Return the sessions of a unit as the ends of its files of lines tell them.

        Or its documents without most of their messages; none where these are one file a message.
        """
        documents = sum(stamp.path.endswith(DOCUMENT) for stamp in unit.stamps)
        lines = any(stamp.path.endswith(LINES) for stamp in unit.stamps)
        if not lines and not 0 < documents <= MOST_DOCUMENTS:
            return []
        return self.reader(root, unit).outline(unit)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folder whose changes below it concern this root."""
        return [root.parent if root.is_file() else root]


def first_record(path: Path) -> dict[str, Any] | None:
    """Return the first record of a file; None where its beginning holds none."""
    try:
        with open_regular(str(path)) as file:
            head = read_head(file, _HEAD)
    except OSError:
        return None
    return next(iter(records_of(head, 1)), None)
