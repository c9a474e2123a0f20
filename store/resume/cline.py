"""How Cline's CLI resumes a session: from its own folder, or from an exported one.

Source: the Cline format page, sections 1 (places), 2.7 and 3.5 (resume).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.cline import Model, cline_file
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow
from store.system.paths import expanded, open_regular, real_path, resolved
from store.system.programs import CommandLine

_SESSIONS, _TASKS = "sessions", "tasks"
_MANIFESTS_LOOKED_AT = 50
_LARGEST = 4 * 1024 * 1024


def data_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of Cline's data."""
    base, data = (environment.get(name, "").strip() for name in ("CLINE_DIR", "CLINE_DATA_DIR"))
    return expanded(data) if data else (expanded(base) if base else home / ".cline") / "data"


def sessions_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of all sessions."""
    moved = environment.get("CLINE_SESSION_DATA_DIR", "").strip()
    return expanded(moved) if moved else data_folder(environment, home) / _SESSIONS


class Cline:
    """How Cline resumes."""

    kind = "cline"
    program = "cline"
    ids = re.compile(r"\d{13}(?:_[0-9A-Za-z]{1,16})?")
    variables: tuple[str, ...] = ("CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR")

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own session, where the agent looks for it.

        Args:
            source_id: The agent's id of the session; of a task of older versions, a number.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        is_task = path.parent.name.isdecimal()
        folder = (data_folder(place.environment, place.home) / _TASKS if is_task
                  else sessions_folder(place.environment, place.home))  # fmt: skip
        if real_path(path).parent.parent != real_path(folder):
            return None
        if source_id.isdecimal():
            return CommandLine.of(self.program).separate("-T", source_id)
        return _resume(source_id)

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as files to write, with the model that Cline was used with last.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        sessions = sessions_folder(place.environment, place.home)
        return cline_file(
            read_session(db, session.id, "resumed"), cwd=resolved(place.cwd),
            sessions=resolved(str(sessions)), model=_last_model(sessions))

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return the path to write the file to."""
        return sessions_folder(place.environment, place.home) / file.name

    def before(self, file: NamedFile, path: Path) -> None:
        """Return None: Cline finds the session by its folder."""

    def command(self, file: NamedFile, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the written session.

        Args:
            file: The session as the agent's files.
            path: Where the messages are.
            place: Where the session is resumed.
        """
        return _resume(file.session_id) if file.lines else CommandLine.of(self.program)

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Raise Refused: Cline takes no prompt together with a session.

        Args:
            command: The command.
            prompt: What would be said.
        """
        raise Refused("Cline takes no prompt when it opens a session")


def _resume(session_id: str) -> CommandLine:
    return CommandLine.of(Cline.program).flag("-i").separate("--id", session_id)


def _last_model(sessions: Path) -> Model | None:
    """Return the model of the newest session; None where there is no session."""
    return next(_models(sessions), None)


def _models(sessions: Path) -> Iterator[Model]:
    try:
        names = sorted((name for name in os.listdir(sessions) if Cline.ids.fullmatch(name)),
                       reverse=True)  # fmt: skip
    except OSError:
        return
    for name in names[:_MANIFESTS_LOOKED_AT]:
        try:
            with open_regular(sessions / name / f"{name}.json") as file:
                manifest = json.loads(file.read(_LARGEST) or b"")
        except (OSError, ValueError):
            continue
        if not isinstance(manifest, dict):
            continue
        provider, model = manifest.get("provider"), manifest.get("model")
        if isinstance(provider, str) and isinstance(model, str) and provider and model:
            yield Model(provider, model)


plan = partial(planned, Cline())
