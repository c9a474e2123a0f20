"""The Cline source: where its sessions and tasks are, and how they are listed and read.

Source: the Cline format page, sections 1, 2.1 and 3.1. Settings, keys and the state of an
editor lie beside them and are never opened; of its database one value is selected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from store.sources.base.documents import parse_document
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import (
    BuiltUnit,
    Depends,
    UnitFiles,
    entries_of,
    is_folder,
    is_second_name,
    stamped,
)
from store.sources.base.json_values import LineError
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import Problem, Program, Unit
from store.sources.base.values import mapping
from store.sources.base.vscode import host_folders
from store.sources.cline.listing import EXTENSIONS, TASKS, TaskLists, lists_of
from store.sources.cline.rows import SESSIONS, SessionRows, database_of
from store.sources.cline.session import COMPACTION, KIND, MESSAGES, Folder, folder_drafts
from store.sources.cline.tasks import shown_from, task_draft
from store.system.paths import expanded, open_regular

_STORAGE = "globalStorage"
_BELOW = (os.path.join(".cline", "data"), "data", "")
_SHOWN = ("ui_messages.json", "claude_messages.json")
"""What a person saw; the second is its name in old versions."""
_HISTORY, _ITEM = "api_conversation_history.json", "history_item.json"
_METADATA = "task_metadata.json"
_TASK_FILES = frozenset({*_SHOWN, _HISTORY, _ITEM, _METADATA})
_FOLDERS_LOOKED_AT = 20
_MOST_LOOKED_AT = 64 * 1024 * 1024


class ClineSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads sessions, tasks and their lists.

    Looks into the library for sessions whose files are gone.
    """

    kind = KIND
    label = "Cline"
    tells = ("thoughts", "tokens", "cost", "compactions", "forks", "subagents")
    program = Program(frozenset({"cline"}), ("/node_modules/cline/", "/@cline/cli"))
    variables = ("CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR")
    places = (
        "`~/.cline/data`, and the tasks of Cline, Roo Code and Kilo Code in VS Code and its forks"
    )

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._rows, self._lists = SessionRows(), TaskLists()
        self._own: str | None = None

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return Cline's own folder, and the folders of extensions that are there."""
        base, data, sessions = (environment.get(name, "").strip() for name in self.variables)
        own = expanded(data) if data else (expanded(base) if base else home / ".cline") / "data"
        moved = [expanded(sessions)] if sessions else []
        self._own = str(own / SESSIONS)
        hosts = (host / _STORAGE for host in host_folders(environment, home))
        found = [host / name for host in hosts if host.is_dir() for name in EXTENSIONS]
        return list(dict.fromkeys([own, *moved, *(each for each in found if each.is_dir())]))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a data folder, one of sessions or tasks, or a single one."""
        if path.is_file():
            return path.parent if _is_mine(str(path)) else None
        for below in _BELOW:
            root = path / below
            folders = islice(_folders(str(root), []), _FOLDERS_LOOKED_AT)
            if any(_is_mine(entry.path) for folder in folders for entry in entries_of(folder)):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions and tasks below a root."""
        for folder in _folders(os.path.abspath(root), problems):
            yield from self._unit(folder, problems)

    def _goes_on(self, folder: str) -> bool:
        """Return whether a session, which keeps a task's id, goes on with the task."""
        name, above = os.path.basename(folder), os.path.dirname(folder)
        beside = os.path.join(os.path.dirname(above), SESSIONS)
        places = [beside, *([self._own] if self._own is not None else [])]
        return any(os.path.isfile(os.path.join(place, name, name + MESSAGES)) for place in places)

    def _unit(self, folder: str, problems: list[Problem]) -> Iterator[Unit]:
        name, above = os.path.basename(folder), os.path.dirname(folder)
        entries = entries_of(folder)
        is_task = any(entry.name in _TASK_FILES for entry in entries)
        stamps = [stamp for entry in entries
                  if entry.name in _TASK_FILES or not is_task and _is_sessions(name, entry.name)
                  for stamp in stamped(entry, problems)]  # fmt: skip
        if not stamps or is_task and self._goes_on(folder):
            return
        if is_task:
            facts = self._lists.stamps(os.path.dirname(above), name, problems)
        else:
            facts = self._rows.stamps(database_of(folder), name, problems)
        newest = max(stamp.mtime_ns for stamp in stamps)
        kind = TASKS if is_task else SESSIONS
        yield Unit(f"{kind}/{name}", (*stamps, *facts), newest // 1_000_000)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed files, and of changed rows and entries of lists."""
        top = os.path.abspath(root)
        data = os.path.dirname(top) if os.path.basename(top) in (SESSIONS, TASKS) else top
        database = database_of(os.path.join(data, SESSIONS, SESSIONS))
        folders: dict[str, None] = {}
        for path in paths:
            if path in (top, os.path.join(top, SESSIONS), os.path.join(top, TASKS)):
                return None
            if path.removesuffix("-wal") == database:
                names = self._rows.moved(database)
                folders |= dict.fromkeys(os.path.join(data, SESSIONS, name) for name in names)
            elif path.removesuffix("-wal") in lists_of(data):
                names = self._lists.moved(data)
                folders |= dict.fromkeys(os.path.join(data, TASKS, name) for name in names)
            else:
                folder = path if os.path.isdir(path) else os.path.dirname(path)
                if folder == top or os.path.dirname(folder) in (
                    top,
                    os.path.join(top, SESSIONS),
                    os.path.join(top, TASKS),
                ):
                    folders[folder] = None
        return [unit for folder in folders if os.path.isdir(folder)
                for unit in self._unit(folder, [])]  # fmt: skip

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the root, and the database beside it that lists an extension's tasks."""
        data = str(root.parent if root.name in (SESSIONS, TASKS) else root)
        beside = [Path(path) for path in lists_of(data) if not path.startswith(data + os.sep)]
        return [root, *(path for path in beside if path.is_file())]

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        depends = Depends()
        return BuiltUnit(partial(self._build, depends), self.line_limit, depends)

    def _build(
        self, depends: Depends, unit: Unit, files: UnitFiles, problems: list[Problem]
    ) -> list[SessionDraft]:
        folder = os.path.dirname(unit.stamps[0].path)
        if unit.key.startswith(TASKS):
            return self._task(folder, files.bodies, problems)
        rows = self._rows.of(database_of(folder), os.path.basename(folder), problems)
        return folder_drafts(Folder(folder, files.bodies, rows, self._library, depends, problems))

    def _task(
        self, folder: str, bodies: dict[str, bytes], problems: list[Problem]
    ) -> list[SessionDraft]:
        name, data = os.path.basename(folder), os.path.dirname(os.path.dirname(folder))
        # The listing of tasks reports once what is wrong with a list.
        entry = self._lists.entry(data, name, [])
        item = _read(os.path.join(folder, _ITEM), bodies, dict, problems)
        entry |= item or {}
        paths = [os.path.join(folder, each) for each in _SHOWN]
        path = next((each for each in paths if each in bodies), paths[0])
        shown = _read(path, bodies, list, problems)
        history = _read(os.path.join(folder, _HISTORY), bodies, list, problems)
        if shown is None and history is None:
            return []
        used = _read(os.path.join(folder, _METADATA), bodies, dict, problems)
        told = shown if shown is not None else shown_from(history or [])
        draft = task_draft(KIND, path, told, history or [], entry, used or {})
        draft.partial = shown is None or history is None
        return [draft]


def _read(path: str, bodies: dict[str, bytes], form: type, problems: list[Problem]) -> Any:
    """Return what a file holds; None where it is missing, damaged or of another form.

    Args:
        path: The file.
        bodies: Those that were read.
        form: The type that it is to have.
        problems: Takes what is wrong with it.
    """
    if path not in bodies:
        return None
    try:
        value, repaired = parse_document(bodies[path])
    except LineError as error:
        problems.append(Problem(path, 0, str(error)))
        return None
    if not isinstance(value, form):
        problems.append(Problem(path, 0, "not of the form of Cline's tasks"))
        return None
    problems += [Problem(path, 0, repaired)] if repaired else []
    return value


def _folders(top: str, problems: list[Problem]) -> Iterator[str]:
    """Yield the folders of sessions and of tasks."""
    if any(_is_read(os.path.basename(top), entry.name) for entry in entries_of(top)):
        yield top
        return
    inner = [os.path.join(top, name) for name in (SESSIONS, TASKS)]
    there = [folder for folder in inner if os.path.isdir(folder)] or [top]
    for folder in there:
        for entry in entries_of(folder, problems):
            if is_folder(entry) and not is_second_name(entry):
                yield entry.path


def _is_read(folder: str, name: str) -> bool:
    return name in _TASK_FILES or _is_sessions(folder, name)


def _is_sessions(folder: str, name: str) -> bool:
    """Return whether a file of a session's folder is read: its manifest, or messages."""
    return name == f"{folder}.json" or name.endswith(MESSAGES) or name == folder + COMPACTION


def _is_mine(path: str) -> bool:
    """Return whether a file holds messages as Cline writes them."""
    name = os.path.basename(path)
    if not _is_read(os.path.basename(os.path.dirname(path)), name):
        return False
    try:
        with open_regular(path) as file:
            value = parse_document(file.read(_MOST_LOOKED_AT) or b"")[0]
    except (OSError, LineError):
        return False
    if name in _SHOWN or name == _HISTORY:
        first = mapping(value[0]) if isinstance(value, list) and value else {}
        return "say" in first or "ask" in first or (name == _HISTORY and "role" in first)
    if name.endswith(MESSAGES):
        return isinstance(mapping(value).get("messages"), list) and "agent" in value
    return {"session_id", "metadata"} <= mapping(value).keys()
