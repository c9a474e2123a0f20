"""How Gemini CLI resumes a session: from its own file, or from an exported one.

Source: the Gemini CLI format page, sections 4.1 (places) and 4.5 (resume).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import orjson

from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.gemini.session_file import gemini_file
from store.exports.reading import read_session
from store.resume.planning import UUID, Place, planned
from store.rows import SessionRow
from store.system.locations import cache_dir
from store.system.paths import expanded, read_regular, resolved
from store.system.programs import CommandLine, absolute

_LONGEST_PATH = 1 << 16
"""Most bytes read of a ``.project_root``."""


def config_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return ``.gemini`` in ``GEMINI_CLI_HOME``, else in the home folder."""
    named = environment.get("GEMINI_CLI_HOME", "").strip()
    return (expanded(named) if named else home) / ".gemini"


def chats_folder(config: Path, cwd: str) -> Path | None:
    """Return the folder with the sessions of a working folder.

    Gemini CLI chooses its name, so it is looked up in the program's files; None if Gemini CLI
    has not been started in the working folder yet.
    """
    real = resolved(cwd)
    for slug, path in _projects(config):
        if resolved(path) == real:
            return config / "tmp" / slug / "chats"
    return None


def _projects(config: Path) -> list[tuple[str, str]]:
    """Return folder name and path of each project in the program's files."""
    found: list[tuple[str, str]] = []
    try:
        data = orjson.loads(read_regular(config / "projects.json"))
        projects = data.get("projects") if isinstance(data, dict) else None
        if isinstance(projects, dict):
            found += [(slug, path) for path, slug in projects.items() if isinstance(slug, str)]
    except (OSError, orjson.JSONDecodeError):
        pass  # Each project's folder has a file with its path too.
    for marker in sorted((config / "tmp").glob("*/.project_root")):
        with contextlib.suppress(OSError):  # Not a readable file with a path.
            path = read_regular(marker, _LONGEST_PATH).decode("utf-8", "replace").strip()
            found.append((marker.parent.name, path))
    return [(slug, path) for slug, path in found if _is_name(slug)]


def _is_name(slug: str) -> bool:
    return slug == os.path.basename(slug) and slug not in ("", os.curdir, os.pardir)


class Gemini:
    """How Gemini CLI resumes."""

    kind = "gemini"
    program = "gemini"
    ids = UUID
    variables: tuple[str, ...] = ("GEMINI_CLI_HOME",)

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own file, if its name has the id's start.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        named = re.fullmatch(r"session-.+-([0-9a-f]{8})\.jsonl?", path.name)
        return _resume(source_id) if named and named[1] == source_id[:8] else None

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as a file to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        reading = read_session(db, session.id, "resumed")
        return gemini_file(reading, cwd=resolved(place.cwd))

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the file to; in the cache folder if Gemini CLI has no folder.

        From the cache folder, Gemini CLI makes a copy that contains the file's path. The file
        name is the session's id, by which sync links the copy to the session.
        """
        chats = self._chats(place)
        if chats is None:
            return cache_dir() / "exports" / f"{file.session_id}.jsonl"
        return chats / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: Gemini CLI finds the file, or gets its path."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written file.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        command = CommandLine.of(self.program)
        if not file.lines:
            return command
        if self._chats(place) is None:
            return command.option("--session-file", absolute(str(path)))
        return _resume(file.session_id)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt, after which Gemini CLI stays interactive."""
        return command.option("--prompt-interactive", prompt, lines=True)

    def _chats(self, place: Place) -> Path | None:
        return chats_folder(config_folder(place.environment, place.home), place.cwd)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(Gemini.program).separate("--resume", session_id)


plan = partial(planned, Gemini())
