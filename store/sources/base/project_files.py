"""What the sources have in common whose sessions are files of lines in a folder a project."""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar

from store.sources.base.file_source import FileSource
from store.sources.base.growing import LINES, entries_of, is_folder, stamp_of, stamped
from store.sources.base.protocol import FileStamp, Problem, Unit

_FILES_LOOKED_AT = 20
_FOLDERS_LOOKED_AT = 200


class ProjectFilesSource(FileSource):
    """A source whose root has files of lines, and folders with such files."""

    below: ClassVar[tuple[str, ...]]
    """Where the root may be below a folder that is opened by name, most special first."""
    beside: ClassVar[str | None] = None
    """What the name of a file beside a session's lines ends with instead; None for no file."""

    @abstractmethod
    def is_session(self, path: Path) -> bool:
        """Return whether a file begins as a session of this program does."""

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: sessions, one project's, the program's own folder, or a file."""
        if path.is_file():
            return path if self.is_session(path) else None
        for below in self.below:
            root = path / below
            inner = (Path(e.path) for e in entries_of(str(root)) if is_folder(e))
            folders = [root, *islice(inner, _FOLDERS_LOOKED_AT)]
            names = (Path(entry.path) for folder in folders for entry in entries_of(str(folder))
                     if entry.name.endswith(LINES))  # fmt: skip
            if any(self.is_session(name) for name in islice(names, _FILES_LOOKED_AT)):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root."""
        path = os.path.abspath(root)
        if path.endswith(LINES):
            yield from self._unit_at(path, problems)
            return
        yield from self._units_in(path, problems)
        for entry in entries_of(path, problems):
            if is_folder(entry):
                yield from self._units_in(entry.path, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where the root itself changed."""
        found: dict[str, Unit] = {}
        top = os.path.abspath(root)
        for path in paths:
            lines = self._lines_of(path)
            if lines is not None:
                units = list(self._unit_at(lines, [])) if lines.startswith(top) else []
            elif path == top:
                return None
            elif os.path.isdir(path) and os.path.dirname(path) == top:
                units = list(self._units_in(path, []))
            else:
                units = []
            found |= {unit.key: unit for unit in units}
        return list(found.values())

    def _lines_of(self, path: str) -> str | None:
        """Return the file of lines that a changed file belongs to; None for any other."""
        if path.endswith(LINES):
            return path
        if self.beside is not None and path.endswith(self.beside):
            return path.removesuffix(self.beside) + LINES
        return None

    def _units_in(self, folder: str, problems: list[Problem]) -> Iterator[Unit]:
        entries = {entry.name: entry for entry in entries_of(folder, problems)}
        for name, entry in entries.items():
            if name.endswith(LINES):
                beside = entries.get(name.removesuffix(LINES) + self.beside) if (
                    self.beside is not None) else None
                side = stamped(beside, problems) if beside is not None else []
                yield from (_unit(stamp, side) for stamp in stamped(entry, problems))

    def _unit_at(self, path: str, problems: list[Problem]) -> Iterator[Unit]:
        try:
            stamp = stamp_of(path, os.stat(path))
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return
        side: list[FileStamp] = []
        if self.beside is not None:
            beside = path.removesuffix(LINES) + self.beside
            # There may be none, or it goes at this moment.
            with contextlib.suppress(OSError):
                side = [stamp_of(beside, os.stat(beside))]
        yield _unit(stamp, side)


def _unit(lines: FileStamp, side: list[FileStamp]) -> Unit:
    folder, name = os.path.split(lines.path)
    key = f"{os.path.basename(folder)}/{name.removesuffix(LINES)}"
    newest = max(stamp.mtime_ns for stamp in (lines, *side))
    return Unit(key, (lines, *side), newest // 1_000_000)
