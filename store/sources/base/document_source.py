"""What the sources have in common whose sessions are one JSON document each.

Such a document is written again whole at each change. A half-written one is a problem until it
is whole; what was read of it before stays. A session's records are the messages of the
document, each as JSON, and first the document without them.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import orjson

from store.sources.base.documents import parse_document
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import BuiltUnit, Depends, UnitFiles, entries_of, stamp_of, stamped
from store.sources.base.json_values import LineError
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.system.paths import open_regular

_FILES_LOOKED_AT = 20
_MOST_LOOKED_AT = 64 * 1024 * 1024
"""Bytes of a file that is read to find out what it is."""


class DocumentSource(FileSource):
    """A source of documents; its class says which files are some, and what they hold."""

    below: ClassVar[tuple[str, ...]] = ("",)
    """Where the documents may be below a folder that is opened by name, nearest first."""

    @abstractmethod
    def is_document(self, name: str) -> bool:
        """Return whether a file is a session's, by its name."""

    @abstractmethod
    def holds_session(self, data: Any) -> bool:
        """Return whether a document is a session of this program."""

    @abstractmethod
    def draft(self, path: str, data: Any, unit: Unit, depends: Depends) -> SessionDraft:
        """Return the session of a document.

        Args:
            path: Its file.
            data: What it holds; ``holds_session`` is true of it.
            unit: As it was listed.
            depends: Takes what it tells others, and would want to know of them.
        """

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: the folder of the documents, one around it, or one file."""
        if path.is_file():
            return path if self._is_session(path) else None
        for below in self.below:
            root = path / below
            names = (Path(entry.path) for entry in entries_of(str(root))
                     if self.is_document(entry.name))  # fmt: skip
            if any(self._is_session(name) for name in islice(names, _FILES_LOOKED_AT)):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the documents of a folder."""
        path = os.path.abspath(root)
        if os.path.isfile(path):
            stamps = _stamp_at(path, problems)
        else:
            stamps = [stamp for entry in entries_of(path, problems)
                      if self.is_document(entry.name) for stamp in stamped(entry, problems)]
        yield from self.units_of(stamps)

    def units_of(self, stamps: list[FileStamp]) -> Iterator[Unit]:
        """Return the units of documents; a source may add what stands beside them."""
        return map(unit_of, stamps)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where the folder itself changed."""
        top, stamps = os.path.abspath(root), dict[str, FileStamp]()
        for path in paths:
            if path == top and os.path.isdir(path):
                return None
            if self.is_document(os.path.basename(path)) and top in (path, os.path.dirname(path)):
                stamps |= {stamp.path: stamp for stamp in _stamp_at(path, [])}
        return list(self.units_of(list(stamps.values())))

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        depends = Depends()
        return BuiltUnit(partial(self._build, depends), self.line_limit, depends)

    def _build(
        self, depends: Depends, unit: Unit, files: UnitFiles, problems: list[Problem]
    ) -> list[SessionDraft]:
        drafts: list[SessionDraft] = []
        for path, body in files.bodies.items():
            try:
                data, repaired = parse_document(body)
            except LineError as error:
                problems.append(Problem(path, 0, str(error)))
                continue
            problems += [Problem(path, 0, repaired)] if repaired else []
            if self.holds_session(data):
                drafts.append(self.draft(path, data, unit, depends))
            else:
                problems.append(Problem(path, 0, f"no session of {self.label}"))
        return drafts

    def _is_session(self, path: Path) -> bool:
        try:
            with open_regular(str(path)) as file:
                body = file.read(_MOST_LOOKED_AT) or b""
            return self.holds_session(parse_document(body)[0])
        except (OSError, LineError):
            return False


def records_of(data: dict[str, Any], messages: Iterable[Any], without: str) -> list[bytes]:
    """Return a document's records: itself without its messages, then each of them.

    Args:
        data: The document.
        messages: What stands for itself.
        without: The member that holds them.
    """
    rest = {key: value for key, value in data.items() if key != without}
    return [_json(rest), *map(_json, messages)]


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def unit_of(stamp: FileStamp, *facts: FileStamp) -> Unit:
    """Return the unit of a document.

    Args:
        stamp: Its file's.
        facts: Stamps of what else it depends on; see ``store.sources.base.growing.FACT``.
    """
    name = os.path.basename(stamp.path)
    return Unit(name, (stamp, *facts), stamp.mtime_ns // 1_000_000)


def _stamp_at(path: str, problems: list[Problem]) -> list[FileStamp]:
    try:
        return [stamp_of(path, os.stat(path))]
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))
        return []
