"""Where viben keeps its sessions, tasks and files.

Source: the viben format page. Sessions are below an agent's folder, tasks and files beside
all of them; an agent's own settings, which may hold keys, are never opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.sources.base.growing import entries_of, stamped
from store.sources.base.json_lines import LineError
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.base.values import string
from store.sources.viben.settings import parse_object, parse_settings
from store.system.paths import open_regular

CONFIG, UI, ROLLOUT, AGENT = (
    "config.yaml", "messages.ui.jsonl", "messages.rollout.jsonl", "messages.agent.jsonl",
)  # fmt: skip
BOARD = "messages.jsonl"
AGENTS, SESSIONS, META, TASK = "agents", ".agent_sessions", "meta.yaml", "task.json"
_NAMES = (CONFIG, UI, ROLLOUT, AGENT, BOARD)


@dataclass(slots=True)
class Side:
    """A task, or a file that a task made.

    Attributes:
        data: What its settings say.
        stamps: Of its own files.
    """

    path: str
    data: dict[str, Any]
    stamps: list[FileStamp]


@dataclass(slots=True)
class Beside:
    """What is beside the sessions.

    Attributes:
        tasks: By the session's id.
        files: By the task's id.
    """

    tasks: dict[str, list[Side]] = field(default_factory=dict)
    files: dict[str, list[Side]] = field(default_factory=dict)


class Shelf:
    """Tasks and files below a root; each is read again only when it moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._known: dict[str, tuple[list[FileStamp], dict[str, Any]]] = {}

    def beside(self, root: str, problems: list[Problem]) -> Beside:
        """Return the tasks and files there are now."""
        found = Beside()
        for entry in entries_of(os.path.join(root, "tasks")):
            path = entry.path if entry.name.endswith(".yaml") else os.path.join(entry.path, TASK)
            task = self._side(path, (), problems)
            if task is not None:
                task.data.setdefault("id", entry.name.removesuffix(".yaml"))
                found.tasks.setdefault(str(task.data.get("session_id")), []).append(task)
        for entry in entries_of(os.path.join(root, "files")):
            inner = entries_of(entry.path)
            path = os.path.join(entry.path, META)
            file = self._side(path, [one for one in inner if one.name != META], problems)
            if file is not None:
                found.files.setdefault(str(file.data.get("task_id")), []).append(file)
        return found

    def _side(
        self, path: str, contents: list[os.DirEntry[str]] | tuple[()], problems: list[Problem]
    ) -> Side | None:
        stamps = stamps_of(path, problems)
        if not stamps:
            return None
        known = self._known.get(path)
        if known is None or known[0] != stamps:
            data = _read(path, problems)
            if data is None:
                return None
            known = self._known[path] = (stamps, data)
        more = [stamp for entry in contents for stamp in stamped(entry, problems)]
        return Side(path, dict(known[1]), [*stamps, *more])


def _read(path: str, problems: list[Problem]) -> dict[str, Any] | None:
    try:
        with open_regular(path) as file:
            body = file.readall()
        return parse_object(body) if path.endswith(".json") else parse_settings(body)
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))
    except LineError as error:
        problems.append(Problem(path, 0, f"no task: {error}"))
    return None


def stamps_of(path: str, problems: list[Problem]) -> list[FileStamp]:
    """Return the stamp of a file; nothing where it is missing."""
    folder, name = os.path.split(path)
    try:
        status = os.stat(path)
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            problems.append(Problem(path, 0, error.strerror or str(error)))
        return []
    stamp = FileStamp(
        os.path.join(folder, name), status.st_ino, status.st_size, status.st_mtime_ns,
        status.st_size,
    )  # fmt: skip
    return [stamp]


def session_folders(root: str, problems: list[Problem]) -> Iterator[str]:
    """Yield the folders of sessions below a ``.viben`` folder, an agent's, or one session's."""
    if is_session(root):
        yield root
        return
    tops = [root, *(entry.path for entry in entries_of(os.path.join(root, AGENTS)))]
    for top in tops:
        for entry in entries_of(os.path.join(top, SESSIONS)):
            names = _names(entry.path)
            if names and CONFIG not in names:
                problems.append(Problem(entry.path, 0, f"a session's folder without {CONFIG}"))
            if names:
                yield entry.path
    for board in entries_of(os.path.join(root, "kanban", "workspaces")):
        for entry in entries_of(os.path.join(board.path, "sessions")):
            if is_session(entry.path):
                yield entry.path


def is_session(folder: str) -> bool:
    """Return whether a folder is a session's."""
    names = _names(folder)
    return CONFIG in names and len(names) > 1


def _names(folder: str) -> set[str]:
    """Return which of a session's files a folder has."""
    return {entry.name for entry in entries_of(folder)} & set(_NAMES)


def unit_of(folder: str, root: str, beside: Beside, problems: list[Problem]) -> Unit:
    """Return the unit of a session: its own files, its tasks, and the files these made.

    Args:
        folder: The session's folder.
        root: The root that the unit was listed below.
        beside: Tasks and files of all sessions below the root.
        problems: Takes what cannot be looked at.
    """
    stamps = [stamp for name in _NAMES for stamp in stamps_of(os.path.join(folder, name), problems)]
    agent = os.path.dirname(os.path.dirname(folder))
    for task in beside.tasks.get(os.path.basename(folder), ()):
        named = string(task.data.get("agent_id")) or os.path.basename(agent)
        if named != os.path.basename(agent) and os.path.basename(os.path.dirname(agent)) == AGENTS:
            continue
        stamps += task.stamps
        for file in beside.files.get(string(task.data.get("id")) or "", ()):
            stamps += file.stamps
    key = os.path.relpath(folder, root)
    newest = max((stamp.mtime_ns for stamp in stamps), default=0)
    return Unit(key, tuple(stamps), newest // 1_000_000)


def recognise(path: Path) -> Path | None:
    """Return the root to read: a ``.viben`` folder or its parent, an agent's, a session's."""
    if not path.is_dir():
        return path.parent if path.name in _NAMES[1:] and is_session(str(path.parent)) else None
    inner = path / ".viben"
    for root in (inner, path) if inner.is_dir() else (path,):
        if root == path and is_session(str(path)):
            return path if _is_vibens(path / CONFIG) else None
        found = next(session_folders(str(root), []), None)
        if found is not None and root != Path(found):
            return root
    return inner if (inner / AGENTS).is_dir() else None


def _is_vibens(config: Path) -> bool:
    data = _read(str(config), []) or {}
    return "agent_id" in data or "id" in data
