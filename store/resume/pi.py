"""How pi resumes a session: from its own file, or from an exported one.

Source: the pi section of the format page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import orjson

from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.pi.session_file import pi_file
from store.exports.reading import read_session
from store.resume.planning import UUID, Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, open_regular, resolved
from store.system.programs import CommandLine, absolute

_HEADER_BYTES = 1 << 16
_COMMANDS = frozenset(("config", "install", "list", "remove", "uninstall", "update"))
"""Prompts that pi would treat as its own commands if they come first."""


def sessions_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of pi's sessions."""
    named = environment.get("PI_CODING_AGENT_SESSION_DIR", "").strip()
    if named:
        return expanded(named)
    agent = environment.get("PI_CODING_AGENT_DIR", "").strip()
    return (expanded(agent) if agent else home / ".pi" / "agent") / "sessions"


def project_folder(sessions: Path, cwd: str) -> Path:
    """Return the folder with the sessions of a working folder."""
    slug = re.sub(r"[/\\:]", "-", resolved(cwd).lstrip("/\\"))
    return sessions / f"--{slug}--"


class Pi:
    """How pi resumes."""

    kind = "pi"
    program = "pi"
    ids = UUID
    variables: tuple[str, ...] = ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own file; pi writes to any file it is given.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        return _resume(path) if _begins_with(path, source_id) else None

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as a file to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        return pi_file(read_session(db, session.id, "resumed"), cwd=place.cwd)

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the file to."""
        sessions = sessions_folder(place.environment, place.home)
        return project_folder(sessions, place.cwd) / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: pi gets the file's path."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written file.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _resume(path) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt; pi does not support ``--``, and ``@`` names a file.

        A space after a prompt keeps it from being one of pi's commands.
        """
        said = f"{prompt} " if prompt in _COMMANDS else prompt
        return command.bare_operand(said, lines=True, marks="@")


def _resume(path: Path) -> CommandLine:
    return CommandLine.of(Pi.program).separate("--session", absolute(str(path)))


def _begins_with(path: Path, session_id: str) -> bool:
    """Return whether a file is a pi session with this id."""
    try:
        with open_regular(path) as file:
            header = orjson.loads(file.read(_HEADER_BYTES).split(b"\n")[0])
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(header, dict) and (header.get("type"), header.get("id")) == (
        "session", session_id
    )


plan = partial(planned, Pi())
