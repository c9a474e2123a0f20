"""How Claude Code goes on with a session: as it is, or from a new file of its own.

Source: the Claude Code format page, sections 2 (places, the folder's slug), 6 (resume).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.errors import Refused
from store.exports.claude_code.chain import ClaudeFile, claude_file
from store.exports.reading import read_session
from store.resume.planning import UUID, Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, resolved
from store.system.programs import CommandLine

_SLUG_LENGTH = 200
_COMMANDS = frozenset((
    "agents", "attach", "auth", "auto-mode", "completion", "config", "daemon", "doctor", "help",
    "install", "kill", "logs", "mcp", "migrate-installer", "open", "plugin", "plugins", "project",
    "ps", "rc", "remote-control", "rollback", "server", "setup-token", "ssh", "ultrareview",
    "update", "upgrade",
))  # fmt: skip
"""Prompts that ``claude`` takes for a command of its own, wherever they stand."""


def config_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return Claude Code's folder: the first of ``CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    named = environment.get("CLAUDE_CONFIG_DIR", "").split(",")[0].strip()
    return expanded(named) if named else home / ".claude"


def project_folder(config: Path, cwd: str) -> Path:
    """Return the folder that holds the sessions of a working folder.

    The slug is the real path with everything outside ``[A-Za-z0-9]`` as ``-``. Past 200
    characters a hash follows that differs between the program's builds, so it can only be
    taken from a folder that the program made itself.

    Raises:
        Refused: The path is that long, and Claude Code has made no folder for it yet.
    """
    slug = re.sub(r"[^A-Za-z0-9]", "-", resolved(cwd))
    projects = config / "projects"
    if len(slug) <= _SLUG_LENGTH:
        return projects / slug
    start = slug[:_SLUG_LENGTH] + "-"
    made = sorted(projects.glob(f"{start}*")) if projects.is_dir() else []
    if len(made) != 1:
        raise Refused(
            f"Claude Code has no folder for {cwd} yet (its name is too long to be foretold);"
            " start claude there once, or export to a file with --out"
        )
    return made[0]


class ClaudeCode:
    """How Claude Code resumes."""

    kind = "claude-code"
    program = "claude"
    ids = UUID
    variables: tuple[str, ...] = ("CLAUDE_CONFIG_DIR",)

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return what resumes its own file, which has to bear the session's id.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        return _resume(source_id) if path.stem == source_id else None

    def file(self, db: Database, session: SessionRow, place: Place) -> ClaudeFile:
        """Return the session as a file.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        return claude_file(read_session(db, session.id, "context"), cwd=place.cwd)

    def path(self, file: ClaudeFile, place: Place) -> Path:
        """Return where the file belongs."""
        folder = project_folder(config_folder(place.environment, place.home), place.cwd)
        return folder / f"{file.session_id}.jsonl"

    def before(self, file: ClaudeFile, path: Path) -> None:
        """Return nothing: it finds the file."""

    def command(self, file: ClaudeFile, path: Path, place: Place) -> CommandLine:
        """Return what goes on with the file.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt; a blank keeps one word from being a command."""
        return command.operand(f"{prompt} " if prompt in _COMMANDS else prompt, lines=True)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(ClaudeCode.program).separate("--resume", session_id)


plan = partial(planned, ClaudeCode())
