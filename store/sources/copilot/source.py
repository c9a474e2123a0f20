"""The Copilot CLI source: where its sessions are, and how they are read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource, first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    UnitFiles,
    entries_of,
    stamp_of,
)
from store.sources.base.protocol import FileStamp, Follower, Problem, Program, Reading, Unit
from store.sources.base.values import string
from store.sources.copilot.index import NAME, indexed_drafts, is_index
from store.sources.copilot.session import KIND, Session, session_drafts
from store.system.paths import expanded

_BLOCKS = ("|", "|-", "|+", ">", ">-", ">+")


def parse_workspace(body: bytes) -> dict[str, str]:
    """Return the keys of the file; lines that are none are left out."""
    found: dict[str, str] = {}
    block: str | None = None
    for line in body.decode("utf-8", "replace").splitlines():
        if block is not None and (line.startswith((" ", "\t")) or not line.strip()):
            found[block] = f"{found[block]}\n{line.strip()}".strip("\n")
            continue
        block = None
        key, colon, value = line.partition(":")
        if not colon or not key.strip() or line.startswith((" ", "#", "-")):
            continue
        name, value = key.strip(), value.strip()
        if value in _BLOCKS:
            block, value = name, ""
        found[name] = _scalar(value)
    return found


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return "" if value in ("null", "~") else value


EVENTS = "events.jsonl"
WORKSPACE = "workspace.yaml"
STATES = "session-state"
_FOLDERS_LOOKED_AT = 50


class CopilotSource(FileSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads only, and only known file names."""

    kind = KIND
    label = "Copilot CLI"
    folders = (STATES,)
    tells = ("thoughts", "tokens", "compactions", "forks", "subagents")
    version = 2
    program = Program(frozenset({"copilot"}), ("/@github/copilot/",))
    variables = ("COPILOT_HOME",)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``COPILOT_HOME`` and ``~/.copilot``."""
        named = environment.get("COPILOT_HOME", "").strip()
        roots = [expanded(named)] if named else []
        return list(dict.fromkeys([*roots, home / ".copilot"]))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: Copilot's folder, its states, one session, or its index."""
        if path.is_file():
            if path.name == EVENTS or path.suffix == LINES:
                return path if _is_session(path) else None
            return path if is_index(path) else None
        if not path.is_dir():
            return None
        if _is_session(path / EVENTS):
            return path
        files = (events for _, events in _sessions(str(path)))
        if any(_is_session(Path(events)) for events in islice(files, _FOLDERS_LOOKED_AT)):
            return path
        return path if is_index(path / NAME) else None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root, and the index where there is one."""
        path = os.path.abspath(root)
        try:
            os.scandir(os.path.join(path, STATES)).close()
        except (FileNotFoundError, NotADirectoryError):
            pass  # The root is a session, an index, or the folder of states itself.
        except OSError as error:
            problems.append(Problem(error.filename, 0, error.strerror or str(error)))
        for name, events in _sessions(path):
            yield from _unit(name, events, problems)
        index = path if path.endswith(".db") else os.path.join(path, NAME)
        if os.path.isfile(index):
            stamps = _stamps([index, f"{index}-wal"], problems)
            yield Unit(NAME, tuple(stamps), max(s.mtime_ns for s in stamps) // 1_000_000)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files; None where the index changed, or a folder."""
        top = os.path.abspath(root)
        sessions = {os.path.dirname(events): (name, events) for name, events in _sessions(top)}
        flat = {events: (name, events) for name, events in sessions.values()}
        found: list[Unit] = []
        for path in paths:
            if os.path.basename(path).startswith(NAME) or os.path.basename(path) == STATES:
                return None
            known = flat.get(path) or sessions.get(path) or sessions.get(os.path.dirname(path))
            if known is not None and (path in (known[1], os.path.dirname(known[1]))
                                      or os.path.basename(path) == WORKSPACE):  # fmt: skip
                found += _unit(*known, [])
        return list({unit.key: unit for unit in found}.values())

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        return _IndexReader(root) if unit.key == NAME else super().follower(root, unit)

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a session that has read nothing."""
        return BuiltUnit(partial(_build, unit.key, {}), self.line_limit)


class _IndexReader:
    """Reads the index anew each time that it moved."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, unit: Unit) -> Reading:
        """Return the sessions whose folders are gone."""
        problems: list[Problem] = []
        path = unit.stamps[0].path
        elsewhere = {name for name, _ in _sessions(os.path.dirname(path))}
        drafts = indexed_drafts(Path(path), elsewhere, problems)
        return Reading(drafts, problems, unit.stamps)


def _build(
    name: str, kept: dict[str, Session], unit: Unit, files: UnitFiles, problems: list[Problem]
) -> list[SessionDraft]:
    workspace: dict[str, str] = {}
    for path, body in files.bodies.items():
        if os.path.basename(path) == WORKSPACE:
            workspace = parse_workspace(body)
    for path, file in files.lines.items():
        if file.lines:
            if path not in kept or kept[path].lines is not file.lines:
                kept[path] = Session(file.lines)
            return session_drafts(path, name, kept[path], file.records, workspace)
    return []


def _sessions(root: str) -> Iterator[tuple[str, str]]:
    """Yield name and events file of the sessions below a root of any form."""
    if root.endswith(LINES):
        yield _named(root), root
        return
    if os.path.isfile(os.path.join(root, EVENTS)):
        yield os.path.basename(root), os.path.join(root, EVENTS)
        return
    below = os.path.join(root, STATES)
    for entry in entries_of(below if os.path.isdir(below) else root):
        events = os.path.join(entry.path, EVENTS)
        if os.path.isfile(events):
            yield entry.name, events
        elif entry.name.endswith(LINES) and entry.is_file():
            # Before sessions had folders.
            yield _named(entry.path), entry.path


def _named(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == EVENTS else name.removesuffix(LINES)


def _unit(name: str, events: str, problems: list[Problem]) -> Iterator[Unit]:
    beside = [os.path.join(os.path.dirname(events), WORKSPACE)]
    own = os.path.basename(events) == EVENTS
    stamps = _stamps([events, *(beside if own else [])], problems)
    if stamps and stamps[0].path == events:
        newest = max(stamp.mtime_ns for stamp in stamps)
        yield Unit(name, tuple(stamps), newest // 1_000_000)


def _stamps(paths: list[str], problems: list[Problem]) -> list[FileStamp]:
    """Return the stamps of files; only the first has to be there."""
    found: list[FileStamp] = []
    for place, path in enumerate(paths):
        try:
            found.append(stamp_of(path, os.stat(path)))
        except OSError as error:
            if place == 0:
                problems.append(Problem(path, 0, error.strerror or str(error)))
    return found


def _is_session(path: Path) -> bool:
    """Return whether a file begins with an event of Copilot CLI."""
    data = first_record(path)
    return data is not None and (
        (string(data.get("type")) or "").startswith(("session.", "user.", "system."))
        and isinstance(data.get("data"), dict)
        and string(data.get("id")) is not None
    )
