"""How Gemini CLI goes on with a session: as it is, or from a new file of its own.

Source: the Gemini CLI format page, sections 4.1 (places) and 4.5 (resume).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import orjson

from store.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.gemini.session_file import gemini_file
from store.exports.reading import read_session
from store.resume.planning import Place, planned
from store.rows import SessionRow


def config_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return ``.gemini`` of ``GEMINI_CLI_HOME``, which stands for the home folder, or of home."""
    named = environment.get("GEMINI_CLI_HOME", "").strip()
    return (Path(named).expanduser() if named else home) / ".gemini"


def chats_folder(config: Path, cwd: str) -> Path:
    """Return the folder that holds the sessions of a working folder.

    Its name is the program's own choice, so it is taken from what the program wrote.

    Raises:
        Refused: Gemini CLI has not been started in that folder yet.
    """
    real = os.path.realpath(cwd)
    for slug, path in _projects(config):
        if os.path.realpath(path) == real:
            return config / "tmp" / slug / "chats"
    raise Refused(
        f"Gemini CLI has no folder for {cwd} yet; start gemini there once, or export to a"
        " file with --out"
    )


def _projects(config: Path) -> list[tuple[str, str]]:
    """Return folder name and path of the projects that the program knows."""
    found: list[tuple[str, str]] = []
    try:
        data = orjson.loads((config / "projects.json").read_bytes())
        projects = data.get("projects") if isinstance(data, dict) else None
        if isinstance(projects, dict):
            found += [(slug, path) for path, slug in projects.items() if isinstance(slug, str)]
    except (OSError, orjson.JSONDecodeError):
        pass  # Each project's folder names its path too.
    for marker in sorted((config / "tmp").glob("*/.project_root")):
        path = marker.read_text("utf-8", "replace").strip()
        found.append((marker.parent.name, path))
    return [(slug, path) for slug, path in found if slug and slug == os.path.basename(slug)]


class Gemini:
    """How Gemini CLI resumes."""

    kind = "gemini"
    program = "gemini"

    def as_it_is(self, source_id: str, path: Path, place: Place) -> tuple[str, ...] | None:
        """Return what resumes its own file."""
        return (self.program, "--resume", source_id)

    def file(self, db: Database, session: SessionRow, place: Place) -> NamedFile:
        """Return the session as a file."""
        reading = read_session(db, session.id, "context")
        return gemini_file(reading, cwd=os.path.realpath(place.cwd))

    def path(self, file: NamedFile, place: Place) -> Path:
        """Return where the file belongs."""
        config = config_folder(place.environment, place.home)
        return chats_folder(config, place.cwd) / file.name

    def command(self, file: NamedFile, path: Path) -> tuple[str, ...]:
        """Return what goes on with the file."""
        return (self.program, "--resume", file.session_id) if file.lines else (self.program,)


plan = partial(planned, Gemini())
