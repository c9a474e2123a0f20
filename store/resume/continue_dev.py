"""How Continue's command line resumes a session: its newest one, or a copy of another.

Source: the Continue format page, sections 1 (places), 6 (``--fork``) and 8 (resume). Only the
newest session can be gone on with in its own file; of any other one the program makes a copy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.continue_dev import continue_file
from store.exports.reading import read_session
from store.resume.planning import UUID, Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, real_path, resolved
from store.system.programs import CommandLine

_LIST = "sessions.json"
_COMMANDS = ("ls", "serve", "checks", "review", "help")
_NOT_SENT = ("/", "!")
"""Begin what the program carries out itself."""


def sessions_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder with all sessions."""
    named = environment.get("CONTINUE_GLOBAL_DIR", "").strip()
    return (expanded(named) if named else home / ".continue") / "sessions"


class Continue:
    """How Continue resumes."""

    kind = "continue"
    program = "cn"
    ids = UUID
    variables: tuple[str, ...] = ("CONTINUE_GLOBAL_DIR",)

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own file, where the agent looks for it.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        folder = sessions_folder(place.environment, place.home)
        if real_path(path) != real_path(folder / f"{source_id}.json"):
            return None
        if _newest(folder) == path.name:
            return CommandLine.of(self.program).flag("--resume")
        return _copied(source_id)

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as a file to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        return continue_file(read_session(db, session.id, "resumed"), cwd=resolved(place.cwd))

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the file to."""
        return sessions_folder(place.environment, place.home) / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: Continue finds the file by its name."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that goes on with a copy of the written file.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _copied(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt; a space after it keeps it from being a command.

        Raises:
            Refused: Continue would carry it out itself.
        """
        if prompt.lstrip().startswith(_NOT_SENT):
            raise Refused("Continue carries out prompts that begin with / or ! itself")
        return command.operand(f"{prompt} " if prompt in _COMMANDS else prompt, lines=True)


def _copied(session_id: str) -> CommandLine:
    return CommandLine.of(Continue.program).separate("--fork", session_id)


def _newest(folder: Path) -> str | None:
    """Return the name of the file that was written last, as the program finds it."""
    try:
        found = [(entry.stat().st_mtime_ns, entry.name) for entry in os.scandir(folder)
                 if entry.name.endswith(".json") and entry.name != _LIST]  # fmt: skip
    except OSError:
        return None
    return max(found, default=(0, None))[1]


plan = partial(planned, Continue())
