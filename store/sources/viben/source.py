"""The viben source: where its sessions are, and how they are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import BuiltUnit, UnitFiles, entries_of
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.protocol import Problem, Unit
from store.sources.viben.places import (
    SESSIONS,
    Shelf,
    is_session,
    recognise,
    session_folders,
    unit_of,
)
from store.sources.viben.session import KIND, session_draft

_STAMPED = re.compile(r"\d{14}_")
"""How the program names sessions: by the second, and a word of the prompt."""


class VibenSource(FileSource):
    """Fulfils ``store.sources.base.protocol.Source`` and ``FollowedSource``; reads only."""

    kind = KIND
    label = "viben"
    tells = ("cost", "files")
    version = 3

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._shelf = Shelf()

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``~/.viben``; the program has no variable that moves it."""
        return [home / ".viben"]

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read when a file or folder is viben's."""
        return recognise(path)

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root."""
        top = os.path.abspath(root)
        entries_of(top, problems)
        beside = self._shelf.beside(_shared(top), problems)
        for folder in session_folders(top, problems):
            yield unit_of(folder, top, beside, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that changed files belong to.

        Returns:
            None where the whole root must be listed.
        """
        top = os.path.abspath(root)
        folders: set[str] = set()
        for path in paths:
            folder = os.path.dirname(path)
            if is_session(folder):
                folders.add(folder)
            elif is_session(path):
                folders.add(path)
            elif f"{os.sep}{SESSIONS}{os.sep}" not in path:
                return None
        beside = self._shelf.beside(_shared(top), [])
        return [unit_of(folder, top, beside, []) for folder in sorted(folders)]

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        return BuiltUnit(partial(_build, os.path.abspath(root)), self.line_limit)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folder whose changes below it concern this root."""
        return [root]


def _shared(root: str) -> str:
    """Return the folder that has the tasks and files of the sessions below a root."""
    folder = root
    while os.path.dirname(folder) != folder:
        if os.path.isdir(os.path.join(folder, "tasks")) or os.path.basename(folder) == ".viben":
            return folder
        folder = os.path.dirname(folder)
    return root


def _build(root: str, unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
    folder = os.path.normpath(os.path.join(root, unit.key))
    draft = session_draft(source_id_of(folder), folder, unit, files, problems)
    return [] if draft is None else [draft]


def source_id_of(folder: str) -> str:
    """Return what the session of a folder is called.

    The program's ids name a second; others, such as ``main``, each agent has. Where two
    agents have one of the same second, only the first keeps it as it is.
    """
    name = os.path.basename(folder)
    sessions = os.path.dirname(folder)
    agent = os.path.dirname(sessions)
    if _STAMPED.match(name):
        twins = [
            entry.name
            for entry in entries_of(os.path.dirname(agent))
            if os.path.isdir(os.path.join(entry.path, os.path.basename(sessions), name))
        ]
        if not twins or twins[0] == os.path.basename(agent):
            return name
    return f"{os.path.basename(agent)}/{name}"
