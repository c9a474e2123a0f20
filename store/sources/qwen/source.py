"""The qwen source: where its sessions are, and how they are read.

Source: the Qwen Code format page, section 1. Of the program's folder only the sessions, and what
stands beside a subagent, are opened; accounts, keys, settings and the registry of what runs
never are.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path

from store.sources.base.documents import parse_document
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource, first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    entries_of,
    is_folder,
    stamp_of,
    stamped,
)
from store.sources.base.json_values import LineError
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import FileStamp, Library, Problem, Program, Unit
from store.sources.base.side_file import SideFile
from store.sources.base.values import mapping, string
from store.sources.qwen.older import holds_session, is_older, older_draft
from store.sources.qwen.session import (
    AGENT,
    ARCHIVE,
    KIND,
    META,
    SUBAGENTS,
    Kept,
    is_agent,
    session_draft,
)
from store.system.paths import expanded, open_regular

_CHATS = "chats"
_OLDER = "session-*.json"
_PATTERNS = (
    ("projects", "*", _CHATS, f"*{LINES}"),
    ("projects", "*", _CHATS, ARCHIVE, f"*{LINES}"),
    ("projects", "*", SUBAGENTS, "*", f"{AGENT}*{LINES}"),
    ("tmp", "*", _CHATS, _OLDER),
)
"""Where sessions are below the program's folder."""
_FILES_LOOKED_AT = 20
_MOST_LOOKED_AT = 64 * 1024 * 1024
"""Bytes of a document that is read to find out what it is."""
_BELOW = (".qwen", "")


class QwenSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads session files only.

    Looks into the library for subagents whose files are gone.
    """

    kind = KIND
    label = "Qwen Code"
    folders = ("projects", "tmp")
    tells = ("thoughts", "tokens", "rewinds", "compactions", "forks", "subagents")
    program = Program(frozenset({"qwen"}), ("/@qwen-code/qwen-code/",))
    variables = ("QWEN_HOME", "QWEN_RUNTIME_DIR")

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``~/.qwen``, and the folders that replace it."""
        named = (environment.get(name, "").strip() for name in reversed(self.variables))
        roots = [*(expanded(each) for each in named if each), home / ".qwen"]
        return list(dict.fromkeys(roots))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: the program's folder, one of a project or chats, or a file."""
        if path.is_file():
            return path if _is_session(path) else None
        for below in _BELOW:
            root = path / below
            files = islice(_files(str(root), []), _FILES_LOOKED_AT)
            if any(_is_session(Path(entry.path)) for entry in files):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root."""
        path = os.path.abspath(root)
        if os.path.isfile(path):
            yield from _unit_at(path, problems)
            return
        seen: set[str] = set()
        for entry in _files(path, problems):
            for stamp in stamped(entry, problems):
                unit = _unit(stamp)
                # An archived session is moved; where a copy stayed, that is the session.
                if unit.key not in seen:
                    seen.add(unit.key)
                    yield unit

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where the root itself changed."""
        found: dict[str, Unit] = {}
        top = os.path.abspath(root)
        for path in paths:
            if path == top and os.path.isdir(path):
                return None
            file = path.removesuffix(META) + LINES if path.endswith(META) else path
            if _is_of_session(file, top):
                units = list(_unit_at(file, []))
            elif os.path.isdir(path):
                units = [unit for unit in self.units(root, [])
                         if unit.stamps[0].path.startswith(path + os.sep)]  # fmt: skip
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
        beside = path.removesuffix(LINES) + META
        agent = SideFile.read(beside, files.bodies.get(beside), problems)
        draft = session_draft(path, file.lines, file.records, kept[path], agent, library, depends)
        if draft is not None:
            drafts.append(draft)
        elif file.lines:
            problems.append(Problem(path, 0, "no line is one of a session"))
    for path, body in files.bodies.items():
        if not path.endswith(META):
            drafts += _older(path, body, problems)
    return drafts


def _older(path: str, body: bytes, problems: list[Problem]) -> list[SessionDraft]:
    try:
        data, repaired = parse_document(body)
    except LineError as error:
        problems.append(Problem(path, 0, str(error)))
        return []
    problems += [Problem(path, 0, repaired)] if repaired else []
    if is_older(data):
        return [older_draft(path, data)]
    problems.append(Problem(path, 0, "no session of Qwen Code"))
    return []


def _files(root: str, problems: list[Problem]) -> Iterator[os.DirEntry[str]]:
    """Yield the files of sessions below the program's folder, or a folder inside it."""
    depth = _depth(root)
    for pattern in _PATTERNS:
        is_below = {1: pattern[0] == "projects", 3: pattern[2] == _CHATS}
        if is_below.get(depth, True):
            yield from _matching(root, pattern[depth:], problems)


def _depth(root: str) -> int:
    """Return how many folders below the program's own a folder is."""
    if os.path.basename(root) == _CHATS:
        return 3
    if os.path.isdir(os.path.join(root, _CHATS)):
        return 2
    inner = ("projects", "tmp")
    return 0 if any(os.path.isdir(os.path.join(root, each)) for each in inner) else 1


def _matching(
    folder: str, pattern: tuple[str, ...], problems: list[Problem]
) -> Iterator[os.DirEntry[str]]:
    first, rest = pattern[0], pattern[1:]
    if rest and "*" not in first:
        inner = os.path.join(folder, first)
        if os.path.isdir(inner):
            yield from _matching(inner, rest, problems)
        return
    for entry in entries_of(folder, problems):
        if not rest and fnmatchcase(entry.name, first):
            yield entry
        elif rest and is_folder(entry):
            yield from _matching(entry.path, rest, problems)


def _is_of_session(path: str, top: str) -> bool:
    """Return whether a changed file is a session's."""
    if path == top:
        return True
    folder, name = os.path.split(path)
    if not path.startswith(top + os.sep):
        return False
    if os.path.basename(folder) == ARCHIVE:
        folder = os.path.dirname(folder)
    in_chats = os.path.basename(folder) == _CHATS
    if name.endswith(LINES):
        return in_chats or is_agent(path)
    return in_chats and fnmatchcase(name, _OLDER)


def _unit_at(path: str, problems: list[Problem]) -> Iterator[Unit]:
    try:
        yield _unit(stamp_of(path, os.stat(path)))
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))


def _unit(stamp: FileStamp) -> Unit:
    """Return the unit of a file; an archived session's is that of the session."""
    folder, name = os.path.split(stamp.path)
    if os.path.basename(folder) == ARCHIVE:
        folder = os.path.dirname(folder)
    above = os.path.basename(os.path.dirname(folder))
    stamps = [stamp]
    if is_agent(stamp.path):
        beside = stamp.path.removesuffix(LINES) + META
        with suppress(OSError):  # An agent's file begins without it.
            stamps.append(stamp_of(beside, os.stat(beside)))
        above = os.path.basename(folder)
    newest = max(each.mtime_ns for each in stamps)
    return Unit(f"{above}/{os.path.splitext(name)[0]}", tuple(stamps), newest // 1_000_000)


def _is_session(path: Path) -> bool:
    """Return whether a file is a session's: records as this program writes them, or a document."""
    if path.suffix == LINES:
        data = first_record(path) or {}
        named = all(string(data.get(key)) for key in ("uuid", "sessionId"))
        said = isinstance(mapping(data.get("message")).get("parts"), list)
        return named and "parentUuid" in data and (said or "systemPayload" in data)
    if not fnmatchcase(path.name, _OLDER):
        return False
    try:
        with open_regular(str(path)) as file:
            return holds_session(parse_document(file.read(_MOST_LOOKED_AT) or b"")[0])
    except (OSError, LineError):
        return False
