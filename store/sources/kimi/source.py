"""The kimi source: where its sessions are, and how they are listed and read.

Source: the Kimi format page, sections A.1 and A.6. Settings, keys, logs, earlier contents of
files and the history of prompts lie beside them and are never opened.
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
    BuiltUnit,
    Depends,
    UnitFiles,
    entries_of,
    is_folder,
    is_second_name,
    stamped,
)
from store.sources.base.protocol import Problem, Program, Unit
from store.sources.base.side_file import SideFile
from store.sources.kimi.session import (
    AGENTS,
    KIND,
    MAIN,
    STATE,
    WIRE,
    Kept,
    agents_of,
    session_drafts,
)
from store.system.paths import expanded

_SESSIONS = "sessions"
_BELOW = (os.path.join(".kimi-code", _SESSIONS), _SESSIONS, "")
_FOLDERS_LOOKED_AT = 20
_DEEPEST = 4
"""Folders between a root and a file of lines below it."""


class KimiSource(FileSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads states and conversations only."""

    kind = KIND
    label = "Kimi Code"
    tells = ("thoughts", "tokens", "rewinds", "compactions", "forks", "subagents")
    program = Program(frozenset({"kimi"}), ("/@moonshot-ai/kimi-code/",))
    variables = ("KIMI_CODE_HOME",)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder of sessions."""
        moved = environment.get(self.variables[0], "").strip()
        return [(expanded(moved) if moved else home / ".kimi-code") / _SESSIONS]

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a folder of sessions, one around it, or that of one."""
        if path.is_file():
            folder = path.parent.parent.parent
            return folder if path.name == WIRE and _is_mine(str(folder)) else None
        for below in _BELOW:
            root = path / below
            folders = islice(_folders(str(root), []), _FOLDERS_LOOKED_AT)
            if any(_is_mine(folder) for folder in folders):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root."""
        for folder in _folders(os.path.abspath(root), problems):
            yield from _unit(folder, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where the root itself changed."""
        top = os.path.abspath(root)
        found: dict[str, Unit] = {}
        for path in paths:
            if path == top and not _is_session(top):
                return None
            folder = _folder_of(path, top)
            folders = [folder] if folder is not None else _folders(path, [])
            for each in folders:
                found |= {unit.key: unit for unit in _unit(each, [])}
        return list(found.values())

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        kept: defaultdict[str, Kept] = defaultdict(Kept)
        depends = Depends()
        return BuiltUnit(partial(_build, kept, depends), self.line_limit, depends)


def _build(
    kept: dict[str, Kept], depends: Depends, unit: Unit, files: UnitFiles, problems: list[Problem]
) -> list[SessionDraft]:
    agents = agents_of(files.lines, kept)
    problems += [Problem(agent.path, 0, "no line is one of a session") for agent in agents
                 if files.lines[agent.path].lines and not agent.built.times]  # fmt: skip
    if not agents:
        return []
    folder = os.path.dirname(os.path.dirname(os.path.dirname(agents[0].path)))
    path = os.path.join(folder, STATE)
    state = SideFile.read(path, files.bodies.get(path), problems)
    return session_drafts(folder, agents, state, depends)


def _is_session(folder: str) -> bool:
    return os.path.isdir(os.path.join(folder, AGENTS))


def _is_mine(folder: str) -> bool:
    """Return whether a session's conversation begins as Kimi Code's do."""
    for name in (MAIN, *(entry.name for entry in entries_of(os.path.join(folder, AGENTS)))):
        first = first_record(Path(folder, AGENTS, name, WIRE))
        if first is not None:
            return "protocol_version" in first or first.get("type") == "metadata"
    return False


def _folders(top: str, problems: list[Problem]) -> Iterator[str]:
    """Yield the folders of sessions: a root itself, those in it, or those of its workspaces."""
    if _is_session(top):
        yield top
        return
    for entry in entries_of(top, problems):
        if not _is_read(entry):
            continue
        if _is_session(entry.path):
            yield entry.path
        else:
            yield from (inner.path for inner in entries_of(entry.path, problems)
                        if _is_read(inner) and _is_session(inner.path))  # fmt: skip


def _is_read(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder that may hold sessions, under its first name."""
    return not entry.name.startswith(".") and is_folder(entry) and not is_second_name(entry)


def _folder_of(path: str, top: str) -> str | None:
    """Return the session's folder that a path is, or is in; None where it is in none."""
    for _ in range(_DEEPEST):
        if not path.startswith(top):
            return None
        if _is_session(path):
            return path
        path = os.path.dirname(path)
    return None


def _unit(folder: str, problems: list[Problem]) -> Iterator[Unit]:
    above, name = os.path.split(folder)
    entries = [entry for entry in entries_of(folder, problems) if entry.name == STATE]
    for agent in entries_of(os.path.join(folder, AGENTS), problems):
        if _is_read(agent):
            entries += [each for each in entries_of(agent.path) if each.name == WIRE]
    stamps = [stamp for entry in entries for stamp in stamped(entry, problems)]
    if any(os.path.basename(stamp.path) == WIRE for stamp in stamps):
        newest = max(stamp.mtime_ns for stamp in stamps)
        key = f"{os.path.basename(above)}/{name}"
        yield Unit(key, tuple(stamps), newest // 1_000_000)
