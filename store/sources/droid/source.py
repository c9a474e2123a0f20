"""The droid source: where its sessions are, and how they are read.

Source: the droid format page, section 1. What lies beside the folder of sessions (accounts,
keys of models, logs) is never opened.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource, first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    entries_of,
    stamp_of,
    stamped,
)
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.protocol import FileStamp, Library, NoLibrary, Problem, Program, Unit
from store.sources.base.side_file import SideFile
from store.sources.base.values import string
from store.sources.droid.session import KIND, SETTINGS, Kept, session_draft
from store.system.paths import expanded

_FILES_LOOKED_AT = 20
_FOLDERS_LOOKED_AT = 200
_BELOW = (".factory/sessions", "sessions", "")


class DroidSource(FileSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads sessions and their settings only."""

    kind = KIND
    label = "Factory Droid"
    program = Program(frozenset({"droid"}), ("/@factory/cli", "/node_modules/droid/"))
    variables = ("FACTORY_HOME_OVERRIDE",)

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._library: Library = NoLibrary()

    def use_library(self, library: Library) -> None:
        """Take the library to look into for sessions whose files are gone."""
        self._library = library

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the sessions of the home folder, and of the one that replaces it."""
        moved = environment.get("FACTORY_HOME_OVERRIDE", "").strip()
        homes = [*([expanded(moved)] if moved else []), home]
        return list(dict.fromkeys(each / ".factory" / "sessions" for each in homes))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: sessions, one project's, droid's own folder, or one file."""
        if path.is_file():
            return path if _is_session(path) else None
        for below in _BELOW:
            root = path / below
            inner = (Path(e.path) for e in entries_of(str(root)) if _is_folder(e))
            folders = [root, *islice(inner, _FOLDERS_LOOKED_AT)]
            names = (Path(entry.path) for folder in folders for entry in entries_of(str(folder))
                     if entry.name.endswith(LINES))  # fmt: skip
            if any(_is_session(name) for name in islice(names, _FILES_LOOKED_AT)):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root."""
        path = os.path.abspath(root)
        if path.endswith(LINES):
            yield from _unit_at(path, problems)
            return
        yield from _units_in(path, problems)
        for entry in entries_of(path, problems):
            if _is_folder(entry):
                yield from _units_in(entry.path, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where a whole folder changed."""
        found: dict[str, Unit] = {}
        top = os.path.abspath(root)
        for path in paths:
            if path == top:
                return None
            lines = _lines_of(path)
            if lines is not None and path.startswith(top):
                units = list(_unit_at(lines, []))
            elif os.path.isdir(path) and os.path.dirname(path) == top:
                units = list(_units_in(path, []))
            else:
                units = []
            found |= {unit.key: unit for unit in units}
        return list(found.values())

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        kept: defaultdict[str, Kept] = defaultdict(Kept)
        depends = Depends()
        build = partial(_build, kept, self._library, depends)
        return BuiltUnit(build, self.line_limit, depends)


def _build(
    kept: dict[str, Kept],
    library: Library,
    depends: Depends,
    unit: Unit,
    files: UnitFiles,
    problems: list[Problem],
) -> list[SessionDraft]:
    drafts: list[SessionDraft] = []
    for path, file in files.lines.items():
        built = kept[path].bring_up(file.lines)
        if not built.start and not built.found:
            problems += [Problem(path, 0, "no line is one of a session")] if file.lines else []
            continue
        beside = path.removesuffix(LINES) + SETTINGS
        settings = SideFile.read(beside, files.bodies.get(beside), problems)
        drafts.append(session_draft(path, file.records, built, settings, library, depends))
    return drafts


def _lines_of(path: str) -> str | None:
    """Return the file of lines that a changed file belongs to; None for any other."""
    if path.endswith(LINES):
        return path
    return path.removesuffix(SETTINGS) + LINES if path.endswith(SETTINGS) else None


def _units_in(folder: str, problems: list[Problem]) -> Iterator[Unit]:
    entries = {entry.name: entry for entry in entries_of(folder, problems)}
    for name, entry in entries.items():
        if name.endswith(LINES):
            beside = entries.get(name.removesuffix(LINES) + SETTINGS)
            settings = stamped(beside, problems) if beside is not None else []
            yield from (_unit(stamp, settings) for stamp in stamped(entry, problems))


def _unit_at(path: str, problems: list[Problem]) -> Iterator[Unit]:
    beside = path.removesuffix(LINES) + SETTINGS
    try:
        stamp = stamp_of(path, os.stat(path))
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))
        return
    try:
        settings = [stamp_of(beside, os.stat(beside))]
    except OSError:
        settings = []
    yield _unit(stamp, settings)


def _unit(lines: FileStamp, settings: list[FileStamp]) -> Unit:
    folder, name = os.path.split(lines.path)
    key = f"{os.path.basename(folder)}/{name.removesuffix(LINES)}"
    newest = max(stamp.mtime_ns for stamp in (lines, *settings))
    return Unit(key, (lines, *settings), newest // 1_000_000)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_session(path: Path) -> bool:
    """Return whether a file begins as droid's sessions do."""
    data = first_record(path)
    return data is not None and (
        data.get("type") == "session_start" and string(data.get("id")) is not None
    )
