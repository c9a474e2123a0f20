"""How OpenHands resumes a conversation: from its own folder, or from an exported one.

Source: the OpenHands format page, sections 1 (places) and 7 (resume). A conversation begins with
the system prompt: it is taken from one of its own. Settings and keys beside the conversations
are never opened.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.openhands import is_system, openhands_file
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, read_regular, real_path, resolved
from store.system.programs import CommandLine

_FOLDERS_LOOKED_AT = 20
_FIRST = "event-00000-"


def conversations_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of all conversations."""
    named = environment.get("OPENHANDS_CONVERSATIONS_DIR", "").strip()
    if named:
        return expanded(named)
    moved = environment.get("OPENHANDS_PERSISTENCE_DIR", "").strip()
    return (expanded(moved) if moved else home / ".openhands") / "conversations"


class OpenHands:
    """How OpenHands resumes."""

    kind = "openhands"
    program = "openhands"
    ids = re.compile(r"[0-9a-f]{32}")
    variables: tuple[str, ...] = ("OPENHANDS_CONVERSATIONS_DIR", "OPENHANDS_PERSISTENCE_DIR")

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own folder, where the agent looks for it.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        folder = real_path(conversations_folder(place.environment, place.home)) / source_id
        return _resume(source_id) if real_path(path).parent == folder else None

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as files to write.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        system = _system(conversations_folder(place.environment, place.home))
        reading = read_session(db, session.id, "resumed")
        return openhands_file(reading, cwd=resolved(place.cwd), system=system)

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the state to."""
        return conversations_folder(place.environment, place.home) / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: OpenHands finds the conversation by its folder."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written conversation.

        Args:
            file: The session as the agent's files.
            path: Where the state is.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with a prompt, after which OpenHands stays interactive."""
        return command.option("--task", prompt, lines=True)


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(OpenHands.program).separate("--resume", str(UUID(session_id)))


def _system(conversations: Path) -> dict[str, Any] | None:
    """Return the system prompt's event of the newest conversation; None where there is none."""
    for folder in _newest(conversations):
        try:
            names = sorted(name for name in os.listdir(folder / "events")
                           if name.startswith(_FIRST))  # fmt: skip
            event = json.loads(read_regular(folder / "events" / names[0])) if names else None
        except (OSError, ValueError):
            continue
        if isinstance(event, dict) and is_system(event):
            return event
    return None


def _newest(conversations: Path) -> list[Path]:
    try:
        with os.scandir(conversations) as entries:
            found = [(entry.stat().st_mtime_ns, Path(entry.path)) for entry in entries
                     if OpenHands.ids.fullmatch(entry.name)]  # fmt: skip
    except OSError:
        return []
    return [path for _, path in sorted(found, reverse=True)[:_FOLDERS_LOOKED_AT]]


plan = partial(planned, OpenHands())
