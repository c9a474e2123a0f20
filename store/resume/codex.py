"""How Codex goes on with a session: as it is, or from a new rollout of its own.

Source: the Codex format page, sections 3.1 (places, names) and 3.8 (resume).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from store.database import Database
from store.exports.codex.rollout import CodexFile, codex_file, file_name
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow


def codex_home(environment: Mapping[str, str], home: Path) -> Path:
    """Return Codex's folder: ``CODEX_HOME``, else ``~/.codex``."""
    named = environment.get("CODEX_HOME", "").strip()
    return Path(named).expanduser() if named else home / ".codex"


def rollout_path(folder: Path, file: CodexFile) -> Path:
    """Return where a new rollout belongs: by its day, its time and id in its name."""
    at = datetime.fromtimestamp(file.created_at / 1000)
    name = file_name(file.session_id, file.created_at)
    return folder / "sessions" / f"{at:%Y}" / f"{at:%m}" / f"{at:%d}" / name


class Codex:
    """How Codex resumes."""

    kind = "codex"
    program = "codex"

    def as_it_is(self, source_id: str, path: Path, place: Place) -> tuple[str, ...] | None:
        """Return what resumes its own rollout, where that is none of its archive."""
        sessions = codex_home(place.environment, place.home) / "sessions"
        resumed = (self.program, "resume", source_id)
        return resumed if sessions.resolve() in path.resolve().parents else None

    def file(self, db: Database, session: SessionRow, place: Place) -> CodexFile:
        """Return the session as a rollout."""
        return codex_file(read_session(db, session.id, "context"), cwd=place.cwd)

    def path(self, file: CodexFile, place: Place) -> Path:
        """Return where the rollout belongs."""
        return rollout_path(codex_home(place.environment, place.home), file)

    def command(self, file: CodexFile, path: Path) -> tuple[str, ...]:
        """Return what goes on with the rollout."""
        return (self.program, "resume", file.session_id) if file.lines else (self.program,)


plan = partial(planned, Codex())
