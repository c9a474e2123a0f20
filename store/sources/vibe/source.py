"""The Vibe source: where its sessions are, and how they are listed and read.

Source: the Mistral Vibe format page, section "Where". What lies beside the sessions (keys,
settings, locks, plugins, typed lines) is never opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    entries_of,
    stamp_of,
)
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import FileStamp, Problem, Program, Unit
from store.sources.base.side_file import SideFile
from store.sources.base.values import string
from store.sources.vibe.legacy import MESSAGES, Family, legacy_draft
from store.sources.vibe.session import KIND, Beside, unified_draft
from store.sources.vibe.snapshot import CURRENT, FORMAT, JOURNAL, META, Chunks, Store, apply
from store.system.paths import expanded, read_regular

UNIFIED, RESULTS = "unified", "tool-results"
_BELOW = ("", "session", "logs/session", ".vibe/logs/session")
_OLDER = re.compile(r".+_\d{8}_\d{6}_[0-9A-Za-z]{1,16}")
"""Folders of the older store: a prefix that may be chosen, a time and the id's beginning."""
_FOLDERS_LOOKED_AT = 200


class VibeSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads sessions only.

    Looks into the library for sessions and entries that are gone.
    """

    kind = KIND
    label = "Mistral Vibe"
    tells = ("thoughts", "tokens", "forks", "continuations")
    program = Program(frozenset({"vibe", "vibe-acp"}), ("/mistral_vibe/",))
    variables = ("VIBE_HOME",)

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._family = Family()

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the sessions below ``VIBE_HOME`` or ``~/.vibe``, on all systems."""
        moved = environment.get("VIBE_HOME", "").strip()
        return [(expanded(moved) if moved else home / ".vibe") / "logs" / "session"]

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: the folder of sessions, one around it, or one session."""
        if not path.is_dir():
            return None
        for below in _BELOW:
            found = islice(_folders(str(path / below)), _FOLDERS_LOOKED_AT)
            if any(_is_session(folder) for folder in found):
                return path / below
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root, of both stores."""
        top = os.path.abspath(root)
        if not os.path.isdir(top):
            entries_of(top, problems)
        for folder in _folders(top):
            yield from _unit_of(folder, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where the folder itself changed."""
        top, found = os.path.abspath(root), dict[str, Unit]()
        for path in paths:
            folder = _owner(path, top)
            if folder is not None:
                found |= {unit.key: unit for unit in _unit_of(folder, [])}
            elif path in (top, os.path.join(top, UNIFIED)):
                return None
        return list(found.values())

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        depends, chunks = Depends(), Chunks()
        return BuiltUnit(partial(self._build, depends, chunks), self.line_limit, depends)

    def _build(
        self, depends: Depends, chunks: Chunks, unit: Unit, files: UnitFiles,
        problems: list[Problem],
    ) -> list[SessionDraft]:
        first = unit.stamps[0].path
        folder = os.path.dirname(first)
        path = os.path.join(folder, META)
        meta = SideFile.read(path, files.bodies.get(path), problems)
        if os.path.basename(first) != CURRENT:
            return self._older(first, meta, depends, files, problems)
        snapshot = Store(folder, depends.looked, problems, chunks).snapshot()
        if snapshot is None:
            return []
        if snapshot.segment is not None:
            segment = os.path.join(folder, JOURNAL, snapshot.segment)
            journal = files.lines.get(segment)
            # The program goes on to a new segment at any moment.
            depends.looked.append(FileStamp.now(segment))
            apply(snapshot, [line.data for line in journal.lines] if journal else [])
        saved = {os.path.basename(each): body for each, body in files.bodies.items()
                 if os.path.basename(os.path.dirname(each)) == RESULTS}  # fmt: skip
        draft = unified_draft(folder, snapshot, Beside(meta, saved, self._library, depends))
        return [draft] if draft is not None else []

    def _older(
        self, path: str, meta: SideFile, depends: Depends, files: UnitFiles,
        problems: list[Problem],
    ) -> list[SessionDraft]:
        """Return the session of an older folder, unless it was brought into the new store."""
        file = files.lines.get(path)
        if file is None:
            return []
        name = string(meta.data.get("session_id"))
        if name is None:
            problems.append(Problem(path, 0, f"{META} beside it does not tell which session it is"))
            return []
        root = os.path.dirname(os.path.dirname(path))
        newer = os.path.join(root, UNIFIED, os.path.basename(name), CURRENT)
        depends.looked.append(FileStamp.now(newer))
        if os.path.isfile(newer):
            return []
        if file.lines and not any("role" in line.data for line in file.lines):
            problems.append(Problem(path, 0, "no line is one of a session"))
            return []
        draft = legacy_draft(
            path, file.lines, file.records, meta, self._family, self._library, depends)
        return [draft] if draft is not None else []


def _folders(top: str) -> Iterator[str]:
    """Yield the folders of sessions: a root itself, those in it, and in the unified store."""
    if os.path.isfile(os.path.join(top, CURRENT)) or _is_older(top):
        yield top
        return
    for place in (os.path.join(top, UNIFIED), top):
        for entry in entries_of(place):
            if entry.is_dir() and (
                os.path.isfile(os.path.join(entry.path, CURRENT)) or _is_older(entry.path)
            ):
                yield entry.path


def _is_older(folder: str) -> bool:
    return _OLDER.fullmatch(os.path.basename(folder)) is not None and (
        os.path.isfile(os.path.join(folder, MESSAGES)))


def _is_session(folder: str) -> bool:
    """Return whether a folder is a session's, by its content."""
    current = os.path.join(folder, CURRENT)
    try:
        if os.path.isfile(current):
            format_ = SideFile.read(current, read_regular(current), []).data.get("store_format")
            return isinstance(format_, str) and format_.startswith(FORMAT)
        meta = os.path.join(folder, META)
        told = SideFile.read(meta, read_regular(meta), []).data
        return string(told.get("session_id")) is not None
    except OSError:
        return False


def _owner(path: str, top: str) -> str | None:
    """Return the session's folder that a changed path is in; None where it is in none."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    while folder.startswith(top):
        if os.path.isfile(os.path.join(folder, CURRENT)) or _is_older(folder):
            return folder
        folder = os.path.dirname(folder)
    return None


def _unit_of(folder: str, problems: list[Problem]) -> Iterator[Unit]:
    """Yield the unit of a session's folder; its first file says of which store it is."""
    current = os.path.join(folder, CURRENT)
    if os.path.isfile(current):
        journal = [entry.path for entry in entries_of(os.path.join(folder, JOURNAL))
                   if entry.name.endswith(LINES)]  # fmt: skip
        saved = [entry.path for entry in entries_of(os.path.join(folder, RESULTS))
                 if entry.name.endswith(".json")]  # fmt: skip
        paths = [current, os.path.join(folder, META), *journal, *saved]
    else:
        paths = [os.path.join(folder, MESSAGES), os.path.join(folder, META)]
    stamps: list[FileStamp] = []
    for path in paths:
        try:
            stamps.append(stamp_of(path, os.stat(path)))
        except OSError as error:
            if path == paths[0]:
                problems.append(Problem(path, 0, error.strerror or str(error)))
                return
    newest = max(stamp.mtime_ns for stamp in stamps)
    yield Unit(os.path.basename(folder), tuple(stamps), newest // 1_000_000)
