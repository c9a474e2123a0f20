"""How pi goes on with a session: as it is, or from a new file of its own.

Source: the pi section of the format page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.database import Database
from store.exports.agent_file import NamedFile
from store.exports.pi.session_file import pi_file
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow


def sessions_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return where pi keeps its sessions."""
    named = environment.get("PI_CODING_AGENT_SESSION_DIR", "").strip()
    if named:
        return Path(named).expanduser()
    agent = environment.get("PI_CODING_AGENT_DIR", "").strip()
    return (Path(agent).expanduser() if agent else home / ".pi" / "agent") / "sessions"


def project_folder(sessions: Path, cwd: str) -> Path:
    """Return the folder that holds the sessions of a working folder."""
    slug = re.sub(r"[/\\:]", "-", os.path.realpath(cwd).lstrip("/\\"))
    return sessions / f"--{slug}--"


class Pi:
    """How pi resumes."""

    kind = "pi"
    program = "pi"

    def as_it_is(self, source_id: str, path: Path, place: Place) -> tuple[str, ...] | None:
        """Return what resumes its own file."""
        return (self.program, "--session", str(path))

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as a file."""
        return pi_file(read_session(db, session.id, "context"), cwd=place.cwd)

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return where the file belongs."""
        sessions = sessions_folder(place.environment, place.home)
        return project_folder(sessions, place.cwd) / file.name

    def command(self, file: NamedFile, path: Path) -> tuple[str, ...]:
        """Return what goes on with the file."""
        return (self.program, "--session", str(path)) if file.lines else (self.program,)


plan = partial(planned, Pi())
