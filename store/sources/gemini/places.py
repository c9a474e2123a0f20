"""Where Gemini CLI's sessions are, and which files make up one.

Source: the Gemini CLI format page, section 4.1. Only known names are opened; the settings
and accounts beside ``tmp`` never are.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from store.sources.base.file_forms import form_of
from store.sources.base.growing import FACT, denial, entries_of, is_folder, stamped
from store.sources.base.json_lines import LineError, parse_value, read_head, records_of
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.base.values import mapping, string
from store.sources.gemini.checkpoints import points_at, points_within, saved_by_session
from store.sources.gemini.hashed import is_hash, path_of_hash
from store.system.paths import open_regular

CHATS = "chats"
OUTPUTS = "tool-outputs"
SUFFIXES = (".jsonl", ".json")
_SESSION = re.compile(r"session-.+\.jsonl?")
_HEAD = 65536
_FILES_LOOKED_AT = 20


@dataclass(slots=True)
class SessionFiles:
    """The files of the sessions whose ids begin alike: in practice of one.

    Attributes:
        project: The project's folder.
        name: The first eight characters of the session's id, or a parent's whole id.
        main: Its own files; a resume may leave a second one.
        agents: Its subagents' files.
        side: Files of ``tool-outputs/``, and checkpoints that it saved; the project's path
            where other sessions have to tell it; restore points made in its time.
    """

    project: str
    name: str
    main: list[FileStamp] = field(default_factory=list)
    agents: list[FileStamp] = field(default_factory=list)
    side: list[FileStamp] = field(default_factory=list)

    def unit(self) -> Unit:
        """Return the unit."""
        stamps = (*self.main, *self.agents, *self.side)
        newest = max(stamp.mtime_ns for stamp in stamps)
        key = f"{os.path.basename(self.project)}/{self.name}"
        return Unit(key, stamps, newest // 1_000_000)


def projects(root: str, problems: list[Problem] | None = None) -> list[str]:
    """Return the project folders below a root: ``~/.gemini``, ``tmp``, a project, its chats."""
    if os.path.basename(root) == CHATS:
        return [os.path.dirname(root)]
    if os.path.isdir(os.path.join(root, CHATS)):
        return [root]
    below = os.path.join(root, "tmp")
    top = below if os.path.isdir(below) else root
    return [
        entry.path
        for entry in entries_of(top, problems)
        if os.path.isdir(os.path.join(entry.path, CHATS))
    ]


def sessions(
    project: str, problems: list[Problem], only: Collection[str] | None = None
) -> Iterator[SessionFiles]:
    """Return the sessions of a project.

    Args:
        project: Its folder.
        problems: Takes what cannot be listed.
        only: Names as in ``SessionFiles.name`` that are wanted, or ids; None for all.
    """
    found: dict[str, SessionFiles] = {}
    folders: list[os.DirEntry[str]] = []
    wanted = None if only is None else {name[:8] for name in only}
    for entry in entries_of(os.path.join(project, CHATS), problems):
        name = short_name(entry.name)
        if wanted is not None and name[:8] not in wanted:
            continue
        if _SESSION.fullmatch(entry.name):
            session = found.setdefault(name, SessionFiles(project, name))
            session.main += stamped(entry, problems)
        elif is_folder(entry):
            folders.append(entry)
    for entry in folders:
        name = entry.name[:8] if entry.name[:8] in found else entry.name
        session = found.setdefault(name, SessionFiles(project, name))
        for inner in entries_of(entry.path, problems):
            if inner.name.endswith(SUFFIXES):
                session.agents += stamped(inner, problems)
    for entry in entries_of(os.path.join(project, OUTPUTS)):
        found_in = found.get(entry.name.removeprefix("session-")[:8])
        if found_in is not None and is_folder(entry):
            for inner in entries_of(entry.path, problems):
                found_in.side += stamped(inner, problems)
    for session_id, saved in saved_by_session(project, problems).items():
        if session_id[:8] in found:
            found[session_id[:8]].side += saved
    path, points = _told_by_others(project), points_at(project)
    for session in found.values():
        if session.main or session.agents:
            session.side += path
            names = "\n".join(points_within(points, (*session.main, *session.agents)))
            session.side += _fact(project, "points", names) if names else []
            yield session


def _told_by_others(project: str) -> list[FileStamp]:
    """Return a stamp of the path of a project that is named by its hash.

    It moves when a session tells the path for the first time: those before then get it too.
    """
    if not is_hash(os.path.basename(project)):
        return []
    return _fact(project, "path", workspace_of(project) or "")


def _fact(project: str, name: str, text: str) -> list[FileStamp]:
    """Return a stamp that moves with something that is known from beside a session's files."""
    told = text.encode("utf-8", "surrogateescape")
    sign = int.from_bytes(hashlib.blake2b(told, digest_size=7).digest(), "big")
    return [FileStamp(os.path.join(project, f"{FACT}{name}"), sign, len(told), 0, len(told))]


def copied_on(projects: Collection[str]) -> dict[str, frozenset[str]]:
    """Return what a newer version has copied out of folders that are named by a hash.

    It leaves the folder as it was and continues with the copies in one that has a name.

    Returns:
        By the older folder, the names (``SessionFiles.name``) that the newer one has too.
    """
    named = {os.path.basename(project): project for project in projects}
    older = {name: project for name, project in named.items() if is_hash(name)}
    found: dict[str, frozenset[str]] = {}
    for project in projects if older else ():
        path = workspace_of(project)
        name = hashlib.sha256(path.encode()).hexdigest() if path is not None else None
        if name in older and older[name] != project:
            entries = entries_of(os.path.join(project, CHATS))
            names = (short_name(e.name) for e in entries if _SESSION.fullmatch(e.name))
            found[older[name]] = frozenset(names)
    return found


def short_name(file_name: str) -> str:
    """Return what the files of one session share: the end of their names."""
    stem = file_name
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    return stem.rsplit("-", 1)[1] if stem.startswith("session-") else stem


def is_session_file(path: Path) -> bool:
    """Return whether a file is a session: a log of lines, or the older single object."""
    if path.suffix not in SUFFIXES:
        return False
    try:
        with open_regular(str(path)) as file:
            head = read_head(file, _HEAD)
    except OSError:
        return False
    form = form_of(head[:8])
    if path.suffix == ".json":
        head = form.decode(head) if form is not None else head
        return b'"sessionId"' in head and b'"projectHash"' in head
    first = next(iter(records_of(head, 1)), {})
    return string(first.get("sessionId")) is not None and "projectHash" in first


def recognise(path: Path) -> Path | None:
    """Return the root to read when a file or folder is Gemini CLI's."""
    if path.is_file():
        return path if is_session_file(path) else None
    if not path.is_dir():
        return None
    for project in projects(str(path)):
        chats = Path(project, CHATS)
        names = [entry.name for entry in entries_of(str(chats)) if _SESSION.fullmatch(entry.name)]
        if any(is_session_file(chats / name) for name in names[:_FILES_LOOKED_AT]):
            return path
    is_home = path.name == ".gemini" and (path / "tmp").is_dir()
    return path if is_home else None


def workspace_of(project: str, problems: list[Problem] | None = None) -> str | None:
    """Return the folder that a project's sessions ran in, by what is around them.

    Args:
        project: The project's folder.
        problems: Takes why the file that tells it cannot be read; only newer versions have it.
    """
    path = os.path.join(project, ".project_root")
    try:
        with open_regular(path) as file:
            named = file.read(8192).decode("utf-8", "replace").strip()
        if named:
            return named
    except OSError as error:
        if problems is not None:
            problems += denial(path, error)
    return _in_registry(project) or path_of_hash(project, os.path.join(project, CHATS))


def told_in(project: str) -> list[str]:
    """Return the files that may tell the folder that a project's sessions ran in."""
    config = os.path.dirname(os.path.dirname(project))
    return [os.path.join(project, ".project_root"), os.path.join(config, "projects.json")]


def registered(config: str) -> dict[str, str]:
    """Return the project folders' names by path, as ``projects.json`` has them."""
    try:
        with open_regular(os.path.join(config, "projects.json")) as file:
            data = parse_value(file.readall())
    except (OSError, LineError):
        return {}
    found = mapping(mapping(data).get("projects"))
    return {path: name for path, name in found.items() if isinstance(name, str)}


def _in_registry(project: str) -> str | None:
    name = os.path.basename(project)
    for path, slug in registered(os.path.dirname(os.path.dirname(project))).items():
        if slug == name or hashlib.sha256(path.encode()).hexdigest() == name:
            return path
    return None
