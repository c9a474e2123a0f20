"""How Qwen Code resumes a session: from its own file, or from an exported one.

Source: the Qwen Code format page, sections 1 (places) and 7 (resume).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.qwen.session_file import qwen_file
from store.exports.reading import read_session
from store.resume.planning import UUID, Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, real_path, resolved
from store.system.programs import CommandLine


def chats_folder(environment: Mapping[str, str], home: Path, cwd: str) -> Path:
    """Return the folder with the sessions of a working folder.

    Args:
        environment: The environment variables.
        home: The home folder.
        cwd: The working folder.
    """
    names = ("QWEN_RUNTIME_DIR", "QWEN_HOME")
    named = next((each for name in names if (each := environment.get(name, "").strip())), None)
    config = expanded(named) if named else home / ".qwen"
    slug = re.sub(r"[^A-Za-z0-9]", "-", resolved(cwd))
    return config / "projects" / slug / "chats"


class Qwen:
    """How Qwen Code resumes."""

    kind = "qwen"
    program = "qwen"
    ids = UUID
    variables: tuple[str, ...] = ("QWEN_HOME", "QWEN_RUNTIME_DIR")

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own file, where the agent looks for it.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        folder = chats_folder(place.environment, place.home, place.cwd)
        is_there = real_path(path) == real_path(folder / f"{source_id}.jsonl")
        return _resume(source_id) if is_there else None

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as a file to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        return qwen_file(read_session(db, session.id, "resumed"), cwd=resolved(place.cwd))

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the file to."""
        return chats_folder(place.environment, place.home, place.cwd) / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: Qwen Code finds the file by its name."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written file.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt, after which Qwen Code stays interactive."""
        return command.option("--prompt-interactive", prompt, lines=True)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(Qwen.program).separate("--resume", session_id)


plan = partial(planned, Qwen())
