"""The source of chats in VS Code: where they are, and how they are listed and read.

Source: the page on Copilot Chat in VS Code, section 1. Chats of all participants are in one
store. Of the databases beside them one value is selected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from store.sources.base.document_source import records_of
from store.sources.base.documents import parse_document
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
from store.sources.base.json_values import LineError
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.base.side_file import SideFile
from store.sources.base.uris import path_of_uri
from store.sources.base.values import mapping, string
from store.sources.base.vscode import HOSTS, PORTABLE, STATE, host_folders
from store.sources.copilot_chat.index import ChatIndexes
from store.sources.copilot_chat.log import REQUESTS, ChatLog, Turn
from store.sources.copilot_chat.session import KIND, Beside, chat_draft, holds_chat
from store.system.paths import open_regular

CHATS, EMPTY, TRANSFERRED = (
    "chatSessions", "emptyWindowChatSessions", "transferredChatSessions",
)  # fmt: skip
_FOLDERS = (CHATS, EMPTY, TRANSFERRED)
WORKSPACES, GLOBAL, PROFILES = "workspaceStorage", "globalStorage", "profiles"
EDITING, _EDITS = "chatEditingSessions", "state.json"
WORKSPACE = "workspace.json"
_BELOW = ("User", "data/User", f"{PORTABLE}/User", "")
_FLAT = ".json"
_NAME = re.compile(r"[0-9A-Za-z_-]{4,100}\.jsonl?")
_NO_CHAT = "no chat of VS Code"
_FILES_LOOKED_AT = 20
_WORKSPACES_LOOKED_AT = 1000
_MOST_LOOKED_AT = 64 * 1024 * 1024


class CopilotChatSource(FileSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads chats and what tells of them."""

    kind = KIND
    label = "Copilot Chat"
    tells = ("thoughts", "files", "rewinds")
    version = 1
    variables = ("VSCODE_PORTABLE", "XDG_CONFIG_HOME")
    places = "the `User` folders of VS Code and its forks, and those of their servers"

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._indexes = ChatIndexes()

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the ``User`` folder of VS Code, and those of other editors that have chats."""
        hosts = list(host_folders(environment, home))
        own = (HOSTS[0], PORTABLE)
        return [host for host in hosts if host.parent.name in own or _has_chats(host)]

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a ``User`` folder, one of a workspace or of chats, or a file."""
        if path.is_file():
            return path if _is_chat(path) else None
        for below in _BELOW:
            root = path / below
            files = (Path(entry.path) for folder in _chat_folders(str(root))
                     for entry in entries_of(folder) if _NAME.fullmatch(entry.name))  # fmt: skip
            if any(_is_chat(file) for file in islice(files, _FILES_LOOKED_AT)):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the chats of workspaces and of windows without a folder."""
        top = os.path.abspath(root)
        if os.path.isfile(top):
            yield from self._units_in(os.path.dirname(top), top, problems, os.path.basename(top))
            return
        known: set[str] = set()
        for folder in _chat_folders(top, problems):
            # What goes over to another window is copied for a moment.
            is_copy = os.path.basename(folder) == TRANSFERRED
            for unit in self._units_in(folder, top, problems):
                name = unit.key.rpartition("/")[2]
                if not is_copy or name not in known:
                    known.add(name)
                    yield unit

    def _units_in(
        self, folder: str, top: str, problems: list[Problem], only: str | None = None
    ) -> Iterator[Unit]:
        """Yield the units of a folder of chats.

        Args:
            folder: The folder.
            top: The root.
            problems: Takes what cannot be listed.
            only: The name of a file, or the id of a chat; None for all.
        """
        chats: dict[str, list[FileStamp]] = {}
        for entry in entries_of(folder, problems):
            name = os.path.splitext(entry.name)[0]
            if _NAME.fullmatch(entry.name) and only in (None, entry.name, name):
                chats.setdefault(name, []).extend(stamped(entry, problems))
        beside = Path(folder).parent
        place = os.path.relpath(folder, top if os.path.isdir(top) else os.path.dirname(top))
        shared = _stamps_at(os.path.join(beside, WORKSPACE)) if chats else []
        for name, stamps in chats.items():
            if not stamps:
                continue
            newest = max(stamp.mtime_ns for stamp in stamps)
            edits = _stamps_at(os.path.join(beside, EDITING, name, _EDITS))
            told = self._indexes.stamps(beside, name, problems)
            yield Unit(f"{place}/{name}", (*stamps, *shared, *edits, *told), newest // 1_000_000)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the chats of changed files, editing sessions and entries of indexes."""
        top = os.path.abspath(root)
        if os.path.isfile(top):
            return list(self.units(root, []))
        found: dict[str, Unit] = {}
        for path in paths:
            if path == top or os.path.basename(os.path.dirname(path)) == TRANSFERRED:
                return None
            found |= {unit.key: unit for unit in self._units_of(top, path)}
        return list(found.values())

    def _units_of(self, top: str, path: str) -> Iterator[Unit]:
        folder, name = os.path.split(path)
        above = os.path.dirname(folder)
        if name in _FOLDERS:
            yield from self._units_in(path, top, [])
        elif os.path.basename(folder) in _FOLDERS and _NAME.fullmatch(name):
            yield from self._units_in(folder, top, [], os.path.splitext(name)[0])
        elif name == _EDITS and os.path.basename(above) == EDITING:
            chats = os.path.join(os.path.dirname(above), CHATS)
            yield from self._units_in(chats, top, [], os.path.basename(folder))
        elif name.removesuffix("-wal") == STATE:
            for chat in sorted(self._indexes.moved(Path(folder))):
                for inner in _inner(folder):
                    yield from self._units_in(inner, top, [], chat)
        elif name == WORKSPACE or os.path.basename(folder) == WORKSPACES:
            for inner in _inner(folder if name == WORKSPACE else path):
                yield from self._units_in(inner, top, [])

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folders of workspaces and of empty windows, with their indexes."""
        if root.is_file():
            return [root.parent]
        if not (root / WORKSPACES).is_dir() and not (root / GLOBAL).is_dir():
            return [root]
        stores = [root / GLOBAL, *(Path(e.path) / GLOBAL for e in entries_of(str(root / PROFILES)))]
        beside = [store / name for store in stores if store.is_dir()
                  for name in (EMPTY, TRANSFERRED, STATE, f"{STATE}-wal")]  # fmt: skip
        return [root / WORKSPACES, *beside]

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        depends = Depends()
        return BuiltUnit(partial(self._build, [ChatLog()]), self.line_limit, depends)

    def _build(
        self, kept: list[ChatLog], unit: Unit, files: UnitFiles, problems: list[Problem]
    ) -> list[SessionDraft]:
        """Return the chat of a unit; its log counts where there is a document too.

        Args:
            kept: What was made of the log the last time.
            unit: The unit.
            files: Its files as they were read.
            problems: Takes what is damaged.
        """
        name = unit.key.rpartition("/")[2]
        chats = [stamp.path for stamp in unit.stamps
                 if os.path.splitext(os.path.basename(stamp.path))[0] == name]  # fmt: skip
        beside = self._beside(Path(chats[0]).parent.parent, name, files, problems)
        for path in sorted(chats, key=lambda path: not path.endswith(LINES)):
            if path in files.lines:
                lines = files.lines[path]
                if not kept[0].bring_up(lines.lines):
                    kept[0] = ChatLog()
                    kept[0].bring_up(lines.lines)
                log = kept[0]
                problems += [Problem(path, line, reason) for line, reason in log.odd]
                if log.state is not None and holds_chat(log.state):
                    return [chat_draft(path, log.state, log.turns, lines.records, beside, name)]
                problems += [Problem(path, 0, _NO_CHAT)] if log.state is not None else []
            elif path in files.bodies:
                data = _document(path, files.bodies[path], problems)
                if data is not None:
                    return [_flat(path, data, beside, name)]
        return []

    def _beside(self, folder: Path, name: str, files: UnitFiles, problems: list[Problem]) -> Beside:
        def side(path: str) -> dict[str, Any]:
            return SideFile.read(path, files.bodies.get(path), problems).data

        place = side(str(folder / WORKSPACE))
        uri = string(place.get("folder")) or string(place.get("workspace"))
        uri = uri or string(mapping(place.get("configuration")).get("path"))
        edits = side(str(folder / EDITING / name / _EDITS))
        return Beside(self._indexes.entry(folder, name, problems), path_of_uri(uri) or uri, edits)


def _document(path: str, body: bytes, problems: list[Problem]) -> dict[str, Any] | None:
    """Return the chat of a flat file.

    Args:
        path: The file.
        body: Its bytes.
        problems: Takes what is wrong with it.
    """
    try:
        data, repaired = parse_document(body)
    except LineError as error:
        problems.append(Problem(path, 0, str(error)))
        return None
    problems += [Problem(path, 0, repaired)] if repaired else []
    if isinstance(data, dict) and holds_chat(data):
        return data
    problems.append(Problem(path, 0, _NO_CHAT))
    return None


def _flat(path: str, data: dict[str, Any], beside: Beside, name: str) -> SessionDraft:
    requests = data[REQUESTS]
    turns = [Turn(request, [place + 1]) for place, request in enumerate(requests)
             if isinstance(request, dict)]  # fmt: skip
    draft = chat_draft(path, data, turns, records_of(data, requests, REQUESTS), beside, name)
    draft.names_count = any(not string(turn.request.get("requestId")) for turn in turns)
    return draft


def _inner(folder: str) -> list[str]:
    return [inner for name in _FOLDERS if os.path.isdir(inner := os.path.join(folder, name))]


def _chat_folders(top: str, problems: list[Problem] | None = None) -> Iterator[str]:
    """Yield the folders of chats below a root, those of copies last.

    Args:
        top: A ``User`` folder, one of workspaces, of one workspace, or of chats.
        problems: Takes what cannot be listed.
    """
    if os.path.basename(top) in _FOLDERS:
        yield top
        return
    yield from _inner(top)
    workspaces = os.path.join(top, WORKSPACES)
    inner = workspaces if os.path.isdir(workspaces) else top
    if os.path.basename(inner) == WORKSPACES:
        for entry in entries_of(inner, problems):
            chats = os.path.join(entry.path, CHATS)
            if os.path.isdir(chats):
                yield chats
    profiles = [entry.path for entry in entries_of(os.path.join(top, PROFILES))]
    stores = [os.path.join(each, GLOBAL) for each in (top, *profiles)]
    for name in (EMPTY, TRANSFERRED):
        yield from (path for store in stores if os.path.isdir(path := os.path.join(store, name)))


def _has_chats(host: Path) -> bool:
    """Return whether an editor has chats; of very many workspaces some are looked at."""
    stores = [
        host / GLOBAL,
        *(Path(each.path) / GLOBAL for each in entries_of(str(host / PROFILES))),
    ]
    if any((store / EMPTY).is_dir() for store in stores):
        return True
    try:
        with os.scandir(host / WORKSPACES) as workspaces:
            folders = islice(workspaces, _WORKSPACES_LOOKED_AT)
            return any(os.path.isdir(f"{folder.path}{os.sep}{CHATS}") for folder in folders)
    except OSError:
        return False


def _stamps_at(path: str) -> list[FileStamp]:
    try:
        return [stamp_of(path, os.stat(path))]
    except OSError:
        return []


def _is_chat(path: Path) -> bool:
    """Return whether a file is a chat, by its content."""
    if not _NAME.fullmatch(path.name):
        return False
    if path.name.endswith(LINES):
        first = first_record(path) or {}
        return first.get("kind") == 0 and holds_chat(first.get("v"))
    try:
        with open_regular(path) as file:
            return holds_chat(parse_document(file.read(_MOST_LOOKED_AT) or b"")[0])
    except (OSError, LineError):
        return False
