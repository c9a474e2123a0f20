"""How opencode resumes a session: from its database, or from a file that it imports first.

Source: the opencode format page, sections 2.1 (places) and 2.10 (import, then resume). Its
database is never written from here; ``opencode import`` does that, in the session's folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.exports.opencode.session_file import OpencodeFile, opencode_file
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow
from store.system.locations import cache_dir
from store.system.paths import real_path
from store.system.programs import CommandLine

PROGRAM = "opencode"


def data_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return opencode's data folder: below ``XDG_DATA_HOME``, else ``~/.local/share``."""
    data = environment.get("XDG_DATA_HOME")
    return (Path(data) if data else home / ".local" / "share") / "opencode"


def _is_in_use(path: Path, folder: Path) -> bool:
    """Return whether a file is the database in opencode's folder, not a JSON store or copy."""
    return path.suffix == ".db" and real_path(path).parent == real_path(folder)


class Opencode:
    """How opencode resumes."""

    kind = "opencode"
    program = PROGRAM
    ids = re.compile(r"ses_[0-9A-Za-z]{1,64}")
    variables: tuple[str, ...] = ("OPENCODE_DB", "XDG_DATA_HOME")

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes a session of opencode's own database.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        in_use = _is_in_use(path, data_folder(place.environment, place.home))
        return _resume(source_id) if in_use else None

    def file(self, db: Database, session: SessionRow, place: Place) -> OpencodeFile:
        """Return the session as a file to import.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        reading = read_session(db, session.id, "display")
        return opencode_file(reading, cwd=place.cwd, hand_over_prompt=True)

    def path(self, file: OpencodeFile, place: Place) -> Path:
        """Return the path of the file to import."""
        return cache_dir() / "exports" / f"{file.session_id}.json"

    def before(self, file: OpencodeFile, path: Path) -> CommandLine | None:
        """Return the command that imports the file."""
        return CommandLine.of(PROGRAM, "import").path(path) if file.lines else None

    def command(self, file: OpencodeFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the imported session.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(PROGRAM)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt."""
        return command.option("--prompt", prompt, lines=True)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(PROGRAM).separate("--session", session_id)


plan = partial(planned, Opencode())
