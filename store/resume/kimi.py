"""How Kimi Code resumes a session: from its own folder, or from an exported one.

Source: the Kimi format page, sections A.1 (places) and A.7 (resume).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.kimi import is_profile, kimi_file, profile_of
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, open_regular, real_path, resolved
from store.system.programs import CommandLine

_WIRE = ("agents", "main", "wire.jsonl")
_HEAD = 4 * 1024 * 1024
_LONGEST_SLUG = 40
_FILES_LOOKED_AT = 50


def sessions_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of all sessions."""
    moved = environment.get("KIMI_CODE_HOME", "").strip()
    return (expanded(moved) if moved else home / ".kimi-code") / "sessions"


def workspace_id(folder: str) -> str:
    """Return what Kimi Code calls the sessions' folder of a working folder."""
    path = folder.replace("\\", "/").rstrip("/")
    name = re.sub(r"[^a-z0-9._-]+", "-", path.rpartition("/")[2].lower()).strip("-")
    name = name[:_LONGEST_SLUG].strip("-")
    slug = "workspace" if name in ("", ".", "..") else name
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    return f"wd_{slug}_{digest[:12]}"


class Kimi:
    """How Kimi Code resumes."""

    kind = "kimi"
    program = "kimi"
    ids = re.compile(r"session_[0-9A-Za-z-]{1,64}")
    variables: tuple[str, ...] = ("KIMI_CODE_HOME",)

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own session, where the agent looks for it.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        sessions = real_path(sessions_folder(place.environment, place.home))
        folder = real_path(path).parent.parent.parent
        is_there = folder.parent.parent == sessions and folder.name == source_id
        return _resume(source_id) if is_there else None

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as files to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.

        Raises:
            Refused: Kimi Code was never used here, so that there is no model to go on with.
        """
        cwd = resolved(place.cwd)
        reading = read_session(db, session.id, "resumed")
        sessions = sessions_folder(place.environment, place.home)
        profile = _profile(sessions, workspace_id(cwd)) or profile_of(reading)
        if profile is None:
            raise Refused(
                "Kimi Code has no session here yet, from which to take the model. Start it once"
                " with `kimi`, say something, and try again.")
        return kimi_file(reading, cwd=cwd, profile=profile)

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the file to."""
        sessions = sessions_folder(place.environment, place.home)
        return sessions / workspace_id(resolved(place.cwd)) / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: Kimi Code finds the session by its folder."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written session.

        Args:
            file: The session as the agent's files.
            path: Where the conversation is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Raise Refused: with a prompt, Kimi Code answers it and ends.

        Args:
            command: The command.
            prompt: What would be said.
        """
        raise Refused("Kimi Code takes no prompt when it opens a session")


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(Kimi.program).separate("--session", session_id)


def _profile(sessions: Path, workspace: str) -> dict[str, Any] | None:
    """Return the newest record of a model and prompt: one of the workspace, else of any."""
    own = [*_newest(sessions / workspace)]
    others = (path for folder in _folders(sessions) for path in _newest(folder))
    newest = sorted(others, key=_changed, reverse=True)[:_FILES_LOOKED_AT]
    found = (record for path in (*own, *newest) for record in _profiles_in(path))
    return next(found, None)


def _newest(workspace: Path) -> list[Path]:
    files = [path for folder in _folders(workspace) if (path := folder.joinpath(*_WIRE)).is_file()]
    return sorted(files, key=_changed, reverse=True)[:_FILES_LOOKED_AT]


def _folders(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _profiles_in(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD) or b""
    except OSError:
        return
    for line in head.split(b"\n"):
        if b'"profile.bind"' in line[:200]:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if is_profile(record):
                yield record


plan = partial(planned, Kimi())
