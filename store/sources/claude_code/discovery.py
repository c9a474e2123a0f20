"""What is below a root: projects, sessions, their agents' and side files.

Folders are listed with ``os.scandir`` and each file is asked for its size and time
once; no session file is opened (an agent's file of 2.0.77 is beside the sessions and
is opened once, for the session it belongs to). Only known names are ever opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from store.sources.base.growing import is_folder, stamp_of
from store.sources.base.json_lines import LineError, parse_line
from store.sources.base.one_file import COPY_NAME, is_one_file, is_spare_copy, name_order
from store.sources.base.prompt_history import NAME
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.claude_code.agents import AGENT, DEPTH, FOLDER, META, ROWS
from store.sources.claude_code.rows import string
from store.sources.claude_code.sidefiles import ARCHIVED, RESULTS, TITLE
from store.sources.claude_code.typed import is_history
from store.system.paths import open_regular, resolved

_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"]{1,200})"')


_OF_ID = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[^0-9a-z-]|-[A-Z]).*", re.DOTALL
)


def claimed_id(name: str) -> str:
    """Return the id of the session that a file holds, by its name without the extension.

    A copy, such as ``<id> (1)``, claims the id of the session that it was copied from.
    """
    found = _OF_ID.fullmatch(name) or COPY_NAME.fullmatch(name)
    return found[1] if found else name


@dataclass(slots=True)
class SessionFiles:
    """The files that make up one unit.

    Attributes:
        folder: The project folder.
        session_id: The file's name, mostly its session's id (``claimed_id``); agents' files
            of 2.0.77 name it in their rows.
        main: The session's own file, where there is one.
        agents: Agents' files.
        side: Titles, meta files, ``tool-results/``.
    """

    folder: str
    session_id: str
    main: FileStamp | None = None
    agents: list[FileStamp] = field(default_factory=list)
    side: list[FileStamp] = field(default_factory=list)

    def unit(self) -> Unit:
        """Return the unit; its key is the same however the root was named."""
        stamps = (*((self.main,) if self.main else ()), *self.agents, *self.side)
        newest = max(stamp.mtime_ns for stamp in stamps)
        key = f"{os.path.basename(self.folder)}/{self.session_id}"
        return Unit(key, stamps, newest // 1_000_000)


class Discovery:
    """Lists units; remembers which session an agent's file belongs to."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._owners: dict[tuple[str, int], str] = {}

    def projects(self, root: str, problems: list[Problem]) -> Iterator[str]:
        """Return the project folders below a root of any form.

        Where session files are in the root itself, it is a project; folders below it
        count only when they hold some too (others are its sessions' side files).
        """
        below = os.path.join(root, "projects")
        root = below if os.path.isdir(below) else root
        is_project = holds_sessions(root)
        if is_project:
            yield root
        for entry in sorted(_scan(root, problems), key=lambda entry: entry.name):
            if is_folder(entry) and (not is_project or holds_sessions(entry.path)):
                yield entry.path

    def sessions(
        self, folder: str, problems: list[Problem], only: Collection[str] | None = None
    ) -> Iterator[SessionFiles]:
        """Return the sessions of one project folder.

        Args:
            folder: The project folder.
            problems: Takes what cannot be listed.
            only: The ids of the sessions that are wanted; None for all.
        """
        found: dict[str, SessionFiles] = {}
        folders: list[tuple[str, str]] = []
        beside: list[FileStamp] = []
        for entry in _scan(folder, problems):
            name = entry.name
            if only is not None and not self._may_be_of(entry, only):
                continue
            if name.endswith(ROWS):
                stamp = _stamp(entry, problems)
                if stamp is None or (name == NAME and is_history(entry.path)):
                    continue
                if name.startswith(AGENT):
                    beside.append(stamp)
                else:
                    session_id = name.removesuffix(ROWS)
                    found[session_id] = SessionFiles(folder, session_id, stamp)
            elif "." not in name and is_folder(entry) and not leads_beside(entry.path):
                folders.append((name, entry.path))
        for name, path in folders:
            self._side_files(found, folder, name, path, problems)
        for stamp in beside:
            owner = self.owner(stamp, problems)
            if only is None or owner in only:
                found.setdefault(owner, SessionFiles(folder, owner)).agents.append(stamp)
        for session in found.values():
            agents = [stamp for stamp in session.agents if not is_spare_copy(stamp.path)]
            session.agents = _each_once(agents)
            session.side.sort(key=lambda stamp: stamp.path)
            yield session

    def _may_be_of(self, entry: os.DirEntry[str], only: Collection[str]) -> bool:
        """Return whether an entry of a project folder may belong to one of some sessions."""
        name = entry.name.removesuffix(ROWS)
        if name in only or not (entry.name.startswith(AGENT) and entry.name.endswith(ROWS)):
            return name in only
        owner = self._owners.get((entry.path, entry.inode()))
        return owner is None or owner in only

    def _side_files(
        self,
        found: dict[str, SessionFiles],
        folder: str,
        session_id: str,
        path: str,
        problems: list[Problem],
    ) -> None:
        agents: list[FileStamp] = []
        side: list[FileStamp] = []
        for entry in _scan(path, problems):
            if entry.name in (TITLE, ARCHIVED):
                side += _stamps([entry], problems)
            elif entry.name == FOLDER and is_folder(entry):
                self._agent_files(entry.path, agents, side, problems)
            elif entry.name == RESULTS and is_folder(entry):
                side += _stamps(_results(entry.path, problems), problems)
        if session_id in found or agents:
            session = found.setdefault(session_id, SessionFiles(folder, session_id))
            session.agents += agents
            session.side += side

    def _agent_files(
        self,
        path: str,
        agents: list[FileStamp],
        side: list[FileStamp],
        problems: list[Problem],
        deeper: int = DEPTH,
    ) -> None:
        """Collect agents' files; those of a workflow are in ``workflows/<run>/`` below."""
        for entry in _scan(path, problems):
            if entry.name.startswith(AGENT):
                self._sort_agents([entry], agents, side, problems)
            elif deeper and "." not in entry.name and entry.is_dir(follow_symlinks=False):
                self._agent_files(entry.path, agents, side, problems, deeper - 1)

    def _sort_agents(
        self,
        entries: list[os.DirEntry[str]],
        agents: list[FileStamp],
        side: list[FileStamp],
        problems: list[Problem],
    ) -> None:
        for entry in entries:
            if entry.name.endswith(ROWS):
                agents += _stamps([entry], problems)
            elif entry.name.endswith(META):
                side += _stamps([entry], problems)

    def owner(self, stamp: FileStamp, problems: list[Problem]) -> str:
        """Return the session that an agent's file beside the sessions belongs to.

        Without a readable row the agent's own name serves, until the file has one.
        """
        known = self._owners.get((stamp.path, stamp.inode))
        if known is not None:
            return known
        own_name = os.path.basename(stamp.path).removesuffix(ROWS)
        try:
            with open_regular(stamp.path) as file:
                head = file.read(65536)
        except OSError as error:
            problems.append(Problem(stamp.path, 0, error.strerror or str(error)))
            return own_name
        owner = _owner_in(head)
        if owner is None:
            return own_name
        self._owners[(stamp.path, stamp.inode)] = owner
        return owner


def leads_beside(path: str) -> bool:
    """Return whether a path is a link to something that is in the same folder."""
    if not os.path.islink(path):
        return False
    folder, there = os.path.dirname(path), os.path.dirname(resolved(path))
    return resolved(folder) == there


def _each_once(stamps: list[FileStamp]) -> list[FileStamp]:
    """Return files in the order of their paths, each under its first name only."""
    if len({stamp.inode for stamp in stamps}) == len(stamps):
        return sorted(stamps, key=lambda stamp: stamp.path)
    found: dict[int, FileStamp] = {}
    for stamp in sorted(stamps, key=lambda stamp: name_order(stamp.path)):
        known = found.setdefault(stamp.inode, stamp)
        if known is not stamp and not is_one_file(known.path, stamp.path):
            found[-len(found)] = stamp
    return sorted(found.values(), key=lambda stamp: stamp.path)


def _owner_in(head: bytes) -> str | None:
    for line in head.split(b"\n")[:20]:
        try:
            owner = string(parse_line(line)[0].get("sessionId"))
        except LineError:
            continue
        if owner:
            return os.path.basename(owner)
    found = _SESSION_ID.search(head)
    return os.path.basename(found[1].decode("utf-8", "replace")) if found else None


def holds_sessions(folder: str) -> bool:
    """Return whether session files are in a folder itself."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(ROWS) for entry in entries)
    except OSError:
        return False


def _scan(folder: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        problems.append(Problem(folder, 0, error.strerror or str(error)))
        return []


def _results(folder: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    """List a ``tool-results`` folder without keys, links and folders."""
    return [
        entry
        for entry in _scan(folder, problems)
        if entry.is_file(follow_symlinks=False) and not entry.name.endswith(".key")
    ]


def _stamp(entry: os.DirEntry[str], problems: list[Problem]) -> FileStamp | None:
    """Return the stamp of a regular file; None for anything else, told where that is odd."""
    try:
        if not entry.is_file():
            problems.append(Problem(entry.path, 0, "not a regular file"))
            return None
        return stamp_of(entry.path, entry.stat())
    except OSError as error:
        problems.append(Problem(entry.path, 0, error.strerror or str(error)))
        return None


def _stamps(entries: list[os.DirEntry[str]], problems: list[Problem]) -> list[FileStamp]:
    stamps = [_stamp(entry, problems) for entry in entries]
    return [stamp for stamp in stamps if stamp is not None]
