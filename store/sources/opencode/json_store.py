"""The JSON stores of 1.1 and older: one file a session, message and part.

Source: the opencode format page, section 2.9. Files are rewritten whole, so one may be
torn for a moment, and any may go away while others are read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store.sources.base.one_file import is_spare_copy
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.base.values import mapping, ms_or_0
from store.sources.opencode.first_form import is_first_form, later_form
from store.sources.opencode.folders import Folders
from store.sources.opencode.stored import (
    StoredMessage,
    StoredPart,
    StoredSession,
    in_order,
    parsed,
)
from store.system.paths import read_regular

_LAST = 2
"""Messages at the end whose parts are each asked for their time when sessions are listed."""
_MILLION = 1_000_000


def list_json_sessions(
    folders: Folders, prefix: str, known: set[str], problems: list[Problem]
) -> Iterator[Unit]:
    """Yield a unit for each session of a JSON store.

    Args:
        folders: The store.
        prefix: What each unit's key begins with.
        known: Sessions that are read from elsewhere and left out here; takes those found.
        problems: Takes folders that cannot be listed.
    """
    for project in _scan(folders.storage / "session", problems):
        if not project.is_dir() or not folders.is_group(project.name):
            continue
        for entry in _scan(Path(project.path), problems):
            session_id = entry.name.removesuffix(".json")
            if entry.name == session_id or not session_id.startswith("ses_"):
                continue
            if session_id in known:
                continue
            known.add(session_id)
            try:
                yield _unit(folders, prefix, session_id, entry, problems)
            except FileNotFoundError:
                continue


def _unit(
    folders: Folders,
    prefix: str,
    session_id: str,
    entry: os.DirEntry[str],
    problems: list[Problem],
) -> Unit:
    status = entry.stat()
    signs: list[tuple[str, int, int]] = [(entry.name, status.st_size, status.st_mtime_ns)]
    messages = _files(folders.messages(session_id), problems)
    signs += messages
    for place, (name, _, _) in enumerate(reversed(messages)):
        folder = folders.parts(session_id, name.removesuffix(".json"))
        try:
            signs.append((name, 0, folder.stat().st_mtime_ns))
        except OSError:
            continue
        if place < _LAST:
            signs += _files(folder, problems)
    newest = max(sign[2] for sign in signs)
    sign = int.from_bytes(hashlib.blake2b(repr(signs).encode(), digest_size=7).digest(), "big")
    size = sum(sign[1] for sign in signs)
    stamp = FileStamp(entry.path, sign, size, newest)
    return Unit(f"{prefix}{session_id}", (stamp,), newest // _MILLION)


def _files(folder: Path, problems: list[Problem]) -> list[tuple[str, int, int]]:
    """Return name, size and time of a folder's JSON files, by name."""
    found = []
    for entry in _scan(folder, problems):
        if entry.name.endswith(".json"):
            try:
                status = entry.stat()
            except OSError:
                continue
            found.append((entry.name, status.st_size, status.st_mtime_ns))
    return found


def _scan(folder: Path, problems: list[Problem]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(Problem(str(folder), 0, error.strerror or str(error)))
        return []


def read_json_session(folders: Folders, path: Path) -> StoredSession:
    """Read a session, its messages and their parts.

    Args:
        folders: The store.
        path: The session's own file.

    Raises:
        OSError: That file cannot be read.
        ValueError: It holds no JSON object.
    """
    info = parsed(read_regular(path))
    if not isinstance(info, dict):
        raise ValueError("the session's file holds no JSON object")
    session_id = path.stem
    stored = StoredSession(session_id, {**info, "id": session_id}, str(path))
    stored.keep(info)
    messages = []
    for name, data in _objects(folders.messages(session_id), stored):
        record = stored.keep(data)
        parts = None
        if is_first_form(data):
            data, parts = later_form(data)
        times = mapping(data.get("time"))
        at = ms_or_0(times.get("created"))
        moved = max(at, ms_or_0(times.get("completed")))
        message = StoredMessage(name, _plain(data), at, moved, (record,))
        if parts is None:
            _read_parts(folders.parts(session_id, name), stored, message)
        else:
            message.parts = [
                _part(f"{name}:{i:06}", part, at, record) for i, part in enumerate(parts)
            ]
        messages.append(message)
    stored.messages = in_order(messages, lambda one: one.id, lambda one: one.created_at)
    _place(stored)
    todos = folders.storage / "todo" / f"{session_id}.json"
    if todos.is_file():
        found = _load(todos, stored)
        stored.todos = [one for one in found if isinstance(one, dict)] if found else []
    return stored


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return a message's info with its system prompt as one text; early ones have a list."""
    system = data.get("system")
    if not isinstance(system, list):
        return data
    return {**data, "system": "\n\n".join(text for text in system if isinstance(text, str))}


def _place(stored: StoredSession) -> None:
    """Say where a session took place, by its answers where its own file does not."""
    places = (mapping(message.data.get("path")).get("cwd") for message in stored.messages)
    found = next((place for place in places if isinstance(place, str)), None)
    if found is not None:
        stored.info.setdefault("directory", found)


def _part(name: str, data: dict[str, Any], began: int, record: int) -> StoredPart:
    times = mapping(data.get("time")) or mapping(mapping(data.get("state")).get("time"))
    at = ms_or_0(times.get("start")) or began
    return StoredPart(name, data, at, ms_or_0(times.get("end")) or at, record)


def _read_parts(folder: Path, stored: StoredSession, message: StoredMessage) -> None:
    parts = []
    for name, data in _objects(folder, stored):
        parts.append(_part(name, data, message.created_at, -1))
    message.parts = in_order(parts, lambda one: one.id, lambda one: 0)
    for part in message.parts:
        part.record = stored.keep(part.data)


def _objects(folder: Path, stored: StoredSession) -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in _scan(folder, stored.problems):
        if entry.name.endswith(".json") and not is_spare_copy(entry.path):
            data = _load(Path(entry.path), stored)
            if isinstance(data, dict):
                yield entry.name.removesuffix(".json"), data
            elif data is not None:
                stored.problems.append(Problem(entry.path, 0, "holds no JSON object"))


def _load(path: Path, stored: StoredSession) -> Any:
    try:
        return parsed(read_regular(path))
    except OSError as error:
        stored.problems.append(Problem(str(path), 0, error.strerror or str(error)))
    except ValueError as error:
        stored.problems.append(Problem(str(path), 0, f"is no JSON: {error}"))
    return None
