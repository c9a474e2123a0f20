"""How Claude Code resumes a session: from its own file, or from an exported one.

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
"""Prompts that ``claude`` would treat as its own commands, at any position."""


def config_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return Claude Code's folder: the first in ``CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    named = environment.get("CLAUDE_CONFIG_DIR", "").split(",")[0].strip()
    return expanded(named) if named else home / ".claude"


def project_folder(config: Path, cwd: str) -> Path:
    """Return the folder with the sessions of a working folder.

    The slug is the real path with everything outside ``[A-Za-z0-9]`` as ``-``. Beyond 200
    characters it ends with a hash that differs between builds of the program, so it can only
    be taken from an existing folder.

    Raises:
        Refused: The path is that long, and Claude Code has not created its folder yet.
    """
    slug = re.sub(r"[^A-Za-z0-9]", "-", resolved(cwd))
    projects = config / "projects"
    if len(slug) <= _SLUG_LENGTH:
        return projects / slug
    start = slug[:_SLUG_LENGTH] + "-"
    made = sorted(projects.glob(f"{start}*")) if projects.is_dir() else []
    if len(made) != 1:
        raise Refused(
            f"Claude Code has no folder for {cwd} yet (its name is too long to be predicted);"
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
        """Return the command that resumes the agent's own file, if it is named by the id.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        return _resume(source_id) if path.stem == source_id else None

    def file(self, db: Database, session: SessionRow, place: Place) -> ClaudeFile:
        """Return the session as a file to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        return claude_file(read_session(db, session.id, "resumed"), cwd=place.cwd)

    def path(self, file: ClaudeFile, place: Place) -> Path:
        """Return the path to write the file to."""
        folder = project_folder(config_folder(place.environment, place.home), place.cwd)
        return folder / f"{file.session_id}.jsonl"

    def before(self, file: ClaudeFile, path: Path) -> None:
        """Return None: Claude Code finds the file by itself."""

    def command(self, file: ClaudeFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written file.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt; a space after it keeps it from being a command."""
        return command.operand(f"{prompt} " if prompt in _COMMANDS else prompt, lines=True)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(ClaudeCode.program).separate("--resume", session_id)


plan = partial(planned, ClaudeCode())
