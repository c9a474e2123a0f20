"""The pi source: where its sessions are, and how they are read.

Source: the pi section of the format page. Sessions are below the folder that is read, so
the settings and accounts beside it are never opened.
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
from store.sources.base.protocol import FileStamp, Library, Problem, Program, Unit
from store.sources.base.values import string
from store.sources.pi.session import KIND, Kept, session_draft
from store.sources.pi.siblings import Siblings
from store.system.paths import expanded

_FILES_LOOKED_AT = 20
_FOLDERS_LOOKED_AT = 200


class PiSource(FileSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads session files only."""

    kind = KIND
    label = "pi"
    version = 2
    program = Program(frozenset({"pi"}), ("/pi-coding-agent/",))
    variables = ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._siblings = Siblings()

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone."""
        self._siblings.use_library(library)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the sessions below ``PI_CODING_AGENT_DIR`` or ``~/.pi/agent``.

        ``PI_CODING_AGENT_SESSION_DIR`` names the sessions' folder itself.
        """
        roots = [home / ".pi" / "agent" / "sessions"]
        agent = environment.get("PI_CODING_AGENT_DIR", "").strip()
        if agent:
            roots.insert(0, expanded(agent) / "sessions")
        sessions = environment.get("PI_CODING_AGENT_SESSION_DIR", "").strip()
        if sessions:
            roots.insert(0, expanded(sessions))
        return list(dict.fromkeys(roots))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: sessions, one project's, pi's own folder, or one file."""
        if path.is_file():
            return path if _is_session(path) else None
        for root in (path / "agent" / "sessions", path / "sessions", path):
            below = (Path(e.path) for e in entries_of(str(root)) if _is_folder(e))
            folders = [root, *islice(below, _FOLDERS_LOOKED_AT)]
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
        for entry in entries_of(path, problems):
            if entry.name.endswith(LINES):
                yield from map(_unit, stamped(entry, problems))
            elif _is_folder(entry):
                for inner in entries_of(entry.path, problems):
                    if inner.name.endswith(LINES):
                        yield from map(_unit, stamped(inner, problems))

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where a whole folder changed."""
        found: list[Unit] = []
        top = os.path.abspath(root)
        for path in paths:
            if path.endswith(LINES):
                found += _unit_at(path, []) if path.startswith(top) else ()
            elif os.path.isdir(path) and os.path.dirname(path) == top:
                for entry in entries_of(path):
                    if entry.name.endswith(LINES):
                        found += map(_unit, stamped(entry, []))
            elif path == top:
                return None
        return found

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        kept: defaultdict[str, Kept] = defaultdict(Kept)
        depends = Depends()
        build = partial(_build, kept, self._siblings, depends)
        return BuiltUnit(build, self.line_limit, depends)


def _build(
    kept: dict[str, Kept],
    siblings: Siblings,
    depends: Depends,
    unit: Unit,
    files: UnitFiles,
    problems: list[Problem],
) -> list[SessionDraft]:
    drafts: list[SessionDraft] = []
    for path, file in files.lines.items():
        draft = session_draft(path, file.lines, file.records, kept[path], siblings, depends)
        if draft is not None:
            drafts.append(draft)
        elif file.lines:
            problems.append(Problem(path, 0, "no line names its session"))
    return drafts


def _unit(stamp: FileStamp) -> Unit:
    folder, name = os.path.split(stamp.path)
    key = f"{os.path.basename(folder)}/{name.removesuffix(LINES)}"
    return Unit(key, (stamp,), stamp.mtime_ns // 1_000_000)


def _unit_at(path: str, problems: list[Problem]) -> Iterator[Unit]:
    try:
        yield _unit(stamp_of(path, os.stat(path)))
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_session(path: Path) -> bool:
    """Return whether a file begins with pi's header."""
    data = first_record(path)
    return data is not None and (
        data.get("type") == "session"
        and string(data.get("id")) is not None
        and ("cwd" in data or "version" in data)
    )
