"""How Codex resumes a session: from its own rollout, or from an exported one.

Source: the Codex format page, sections 3.1 (places, names) and 3.8 (resume).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.exports.codex.rollout import CodexFile, codex_file, file_name
from store.exports.reading import read_session
from store.resume.planning import UUID, Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, real_path
from store.system.programs import CommandLine


def codex_home(environment: Mapping[str, str], home: Path) -> Path:
    """Return Codex's folder: ``CODEX_HOME``, else ``~/.codex``."""
    named = environment.get("CODEX_HOME", "").strip()
    return expanded(named) if named else home / ".codex"


def rollout_path(folder: Path, file: CodexFile) -> Path:
    """Return the path of a new rollout: a folder for its day, with time and id in the name."""
    at = datetime.fromtimestamp(file.created_at / 1000)
    name = file_name(file.session_id, file.created_at)
    return folder / "sessions" / f"{at:%Y}" / f"{at:%m}" / f"{at:%d}" / name


class Codex:
    """How Codex resumes."""

    kind = "codex"
    program = "codex"
    ids = UUID
    variables: tuple[str, ...] = ("CODEX_HOME",)

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own rollout, if it is not archived.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        sessions = codex_home(place.environment, place.home) / "sessions"
        return _resume(source_id) if real_path(sessions) in real_path(path).parents else None

    def file(self, db: Database, session: SessionRow, place: Place) -> CodexFile:
        """Return the session as a rollout to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        return codex_file(read_session(db, session.id, "context"), cwd=place.cwd)

    def path(self, file: CodexFile, place: Place) -> Path:
        """Return the path to write the rollout to."""
        return rollout_path(codex_home(place.environment, place.home), file)

    def before(self, file: CodexFile, path: Path) -> None:
        """Return None: Codex finds the rollout by itself."""

    def command(self, file: CodexFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written rollout.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt."""
        return command.operand(prompt, lines=True)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(Codex.program, "resume").bare_operand(session_id)


plan = partial(planned, Codex())
