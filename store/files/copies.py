"""The copies that agents keep of files that they change, found and read, never written.

| agent | where |
|---|---|
| Claude Code | ``file-history/SESSION/HASH@vN``, before the first edit and at each prompt |
| Kimi | ``agents/*/file-history/KEY``, named by the records of the session |
| y-agent | backups at a prompt, which the store has as side files |
| opencode, Kilo | trees in a git repository, one at the start of each answer |
| Gemini | commits in a git repository, one before each call that can be restored |
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from store.conversation.touched import resolved
from store.engine.database import Database
from store.engine.values import decoded, text
from store.errors import NotFound
from store.files.git_objects import NoObject, Repository
from store.queries import originals, sessions
from store.queries.details import messages_of
from store.queries.touches import Places
from store.sources.base.values import epoch_ms
from store.system.paths import open_regular, read_regular
from store.text.stored_json import DamagedJson, as_dict, as_list, loads

MOST_BYTES = 64 << 20
"""Larger copies are not read."""
_MOST_NOTES = 200_000
"""Notes of one session about copies that are read."""
_LONGEST_NOTE = 8 << 20


class NoCopy(Exception):
    """A copy is gone or cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that an agent made of a file, before what it did next.

    Attributes:
        key: The file, as in ``FileRow.key``.
        kept_by: The agent's name, and what it calls its copies.
        name: The copy's name there.
        at: When it was made, epoch ms; None where ``message_id`` says it.
        message_id: It was made before this message's calls; where nothing says when, it was made
            behind all calls.
        part_id: It was made before this call.
        read: Returns the content, None where there was no file; raises ``NoCopy``.
    """

    key: str
    kept_by: str
    name: str
    read: Callable[[], bytes | None]
    at: int | None = None
    message_id: str = ""
    part_id: str = ""


def copies_of(db: Database, of: Places, keys: Iterable[str]) -> list[Copy]:
    """Return the copies that a session's agent has of its files.

    Args:
        db: The store.
        of: The session's messages.
        keys: The files that its calls touched; others are found where an agent lists them.
    """
    row = sessions.get(db, of.session_id)
    source = as_dict(decoded(row.metadata_json).get("source")) if row is not None else {}
    kind, path = source.get("kind"), source.get("path")
    find = _FINDERS.get(kind) if isinstance(kind, str) else None
    if find is None or not isinstance(path, str) or not path or "\0" in path:
        return []
    return list(find(db, of, Path(path), list(keys)))


# Claude Code


_BACKUP = re.compile(r"([0-9a-f]{16})@v(\d{1,9})")


def _claude_code(db: Database, of: Places, path: Path, keys: list[str]) -> Iterator[Copy]:
    folder = _claude_folder(path)
    if folder is None:
        return
    by_hash = {_claude_hash(key): key for key in keys}
    noted: set[tuple[str, str | None, int]] = set()
    for line in _notes(path, b'"file-history-'):
        found = as_dict(line.get("snapshot"))
        backups = dict(as_dict(found.get("trackedFileBackups")))
        at = epoch_ms(found.get("timestamp"))
        if line.get("type") == "file-history-delta":
            backups[str(line.get("trackingPath"))] = line.get("backup")
            at = epoch_ms(line.get("timestamp"))
        for tracked, backup in backups.items():
            name = as_dict(backup).get("backupFileName")
            key = resolved(tracked, of.root)
            # A prompt's list names an older copy again where the file is still the same.
            made_at = max(epoch_ms(as_dict(backup).get("backupTime")) or 0, at or 0)
            if isinstance(name, str) and _BACKUP.fullmatch(name):
                by_hash.setdefault(name[:16], key)
            elif name is not None:
                continue
            if (key, name, made_at) not in noted:
                noted.add((key, name, made_at))
                yield Copy(key, "Claude Code's file history", name or "no file",
                           partial(_file_or_none, folder, name), made_at)
    named = {name for _, name, _ in noted}
    for name, changed_at in _backups_in(folder):
        # A copy that no note names any more, as where the session's file is gone.
        found_key = by_hash.get(name[:16])
        if name not in named and found_key is not None:
            yield Copy(found_key, "Claude Code's file history", name,
                       partial(_file_or_none, folder, name), changed_at)


def _claude_folder(path: Path) -> Path | None:
    """Return the folder of a session's copies, from the path of its file or of a subagent's."""
    parts = path.parts
    if "projects" not in parts:
        return None
    at = len(parts) - 1 - parts[::-1].index("projects")
    below = parts[at + 1 :]
    if len(below) < 2:
        return None
    session = below[1].removesuffix(".jsonl")
    return Path(*parts[:at], "file-history", session) if session not in ("", "..") else None


def _claude_hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _backups_in(folder: Path) -> list[tuple[str, int]]:
    """Return name and time of the copies in a folder."""
    try:
        with os.scandir(folder) as entries:
            return [(each.name, int(each.stat(follow_symlinks=False).st_mtime * 1000))
                    for each in entries if _BACKUP.fullmatch(each.name)]
    except OSError:
        return []  # The agent keeps no copies, or has removed them.


# Kimi


_KIMI_KEY = re.compile(r"file-history/[0-9a-f]{64}@v\d{1,9}")


def _kimi(db: Database, of: Places, path: Path, keys: list[str]) -> Iterator[Copy]:
    for line in _notes(path, b'"file_history.'):
        entries = dict(as_dict(line.get("entries")))
        if isinstance(line.get("path"), str):
            entries[line["path"]] = line.get("entry")
        for tracked, entry in entries.items():
            name, at = as_dict(entry).get("key"), line.get("time")
            if isinstance(name, str) and _KIMI_KEY.fullmatch(name) and type(at) is int:
                yield Copy(resolved(tracked, of.root), "Kimi's file history",
                           name.removeprefix("file-history/")[:20],
                           partial(_file_or_none, path.parent, name), at)


# y-agent


def _y_agent(db: Database, of: Places, path: Path, keys: list[str]) -> Iterator[Copy]:
    rows = db.connection.execute(
        "SELECT p.message_id, p.data_json FROM chat_parts p JOIN chat_messages m"
        " ON m.id = p.message_id WHERE m.session_id = $1 AND p.type = 'data-snapshot'",
        {"1": of.session_id},
    ).fetchall()
    for message_id, data_json in rows:
        for file in as_list(as_dict(decoded(text(data_json)).get("data")).get("files")):
            tracked, name = as_dict(file).get("path"), as_dict(file).get("backup_file_name")
            if not isinstance(tracked, str) or not isinstance(name, str | None):
                continue
            read = partial(_side_file, db, of.session_id, name)
            yield Copy(resolved(tracked, of.root), "y-agent's file journal", name or "no file",
                       read, message_id=message_id)


def _side_file(db: Database, session_id: str, name: str | None) -> bytes | None:
    if name is None:
        return None
    try:
        return originals.attachment(db, session_id, name)
    except NotFound as error:
        raise NoCopy(str(error)) from error


# opencode and Kilo


_MOST_REPOSITORIES = 500


def _opencode(db: Database, of: Places, path: Path, keys: list[str]) -> Iterator[Copy]:
    named = [(message_id, metadata.get("snapshot_id")) for message_id, _, _, _, metadata
             in messages_of(db, of.session_id)]
    trees = [(message_id, tree) for message_id, tree in named if isinstance(tree, str)]
    repository = _repository_with(path.parent / "snapshot", trees[0][1]) if trees else None
    if repository is None:
        return
    last = _last_tree(db, trees[-1][0])
    if last is not None:
        trees.append(("", last))
    root = of.root.rstrip("/") + "/"
    for key in keys:
        for message_id, tree in trees:
            if key.startswith(root):
                yield Copy(key, "opencode's snapshots", tree[:12],
                           partial(_in_tree, repository, tree, key[len(root) :]),
                           message_id=message_id)


def _last_tree(db: Database, message_id: str) -> str | None:
    """Return the tree at the end of an answer, which only its records name."""
    found = None
    for record in originals.records_of_message(db, message_id):
        if '"step-finish"' in record:
            try:
                data = as_dict(as_dict(loads(record)).get("data"))
            except DamagedJson:
                continue  # Cut off, or not by the agent.
            if data.get("type") == "step-finish" and isinstance(data.get("snapshot"), str):
                found = data["snapshot"]
    return found


def _repository_with(folder: Path, name: str) -> Repository | None:
    """Return the repository below a folder that has an object."""
    for found in _repositories(folder, 2):
        try:
            found.read(name)
        except NoObject:
            continue
        return found
    return None


def _repositories(folder: Path, levels: int) -> Iterator[Repository]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return
    if "objects" in names:
        yield Repository(folder)
    elif levels:
        for name in names[:_MOST_REPOSITORIES]:
            yield from _repositories(folder / name, levels - 1)


def _in_tree(repository: Repository, name: str, path: str) -> bytes | None:
    try:
        return repository.file_at(name, path)
    except NoObject as error:
        raise NoCopy(str(error)) from error


# Gemini


_COMMIT = re.compile(r"[0-9a-f]{40}")


def _gemini(db: Database, of: Places, path: Path, keys: list[str]) -> Iterator[Copy]:
    rows = db.connection.execute(
        "SELECT p.id, p.data_json FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE m.session_id = $1 AND p.type LIKE 'tool-%'"
        f" AND {db.sql.contains('p.data_json', '$2')}",
        {"1": of.session_id, "2": "restore_point"},
    ).fetchall()
    project = _gemini_project(path)
    if project is None:
        return
    repository = Repository(project.parents[1] / "history" / project.name / ".git")
    root = of.root.rstrip("/") + "/"
    for part_id, data_json in rows:
        data = decoded(text(data_json))
        beside = as_dict(as_dict(data.get("resultProviderMetadata")).get("backscroll"))
        name = beside.get("restore_point")
        if isinstance(name, str) and "/" not in name and "\0" not in name:
            point = project / "checkpoints" / name
            for key in keys:
                if key.startswith(root):
                    yield Copy(key, "Gemini's checkpoints", name,
                               partial(_at_commit, repository, point, key[len(root) :]),
                               part_id=part_id)


def _gemini_project(path: Path) -> Path | None:
    """Return the folder of a session's project: ``tmp/NAME``."""
    return next((each for each in path.parents if each.parent.name == "tmp"), None)


def _at_commit(repository: Repository, point: Path, path: str) -> bytes | None:
    try:
        commit = as_dict(loads(read_regular(point, MOST_BYTES))).get("commitHash")
    except (OSError, DamagedJson) as error:
        raise NoCopy(f"the checkpoint cannot be read: {error}") from error
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise NoCopy("the checkpoint names no commit")
    return _in_tree(repository, commit, path)


# All


def _notes(path: Path, mark: bytes) -> Iterator[dict[str, Any]]:
    """Yield the lines of an agent's file that hold a mark near their start."""
    try:
        with open_regular(path) as raw:
            import io

            count = 0
            with io.BufferedReader(raw, 1 << 20) as lines:
                while line := lines.readline(_LONGEST_NOTE):
                    if mark in line[:80] and count < _MOST_NOTES:
                        count += 1
                        try:
                            yield as_dict(loads(line))
                        except DamagedJson:
                            continue  # Cut off, or not by the agent.
    except OSError:
        return  # The agent has removed the session; the store still has it.


def _file_or_none(folder: Path, name: str | None) -> bytes | None:
    if name is None:
        return None
    try:
        return read_regular(folder / name, MOST_BYTES)
    except OSError as error:
        raise NoCopy(f"the copy {name} cannot be read: {error.strerror or error}") from error


_Finder = Callable[[Database, Places, Path, list[str]], Iterator[Copy]]
_FINDERS: Mapping[str, _Finder] = {
    "claude-code": _claude_code, "kimi": _kimi, "y-agent": _y_agent, "opencode": _opencode,
    "kilo": _opencode, "gemini": _gemini,
}  # fmt: skip
