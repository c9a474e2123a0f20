"""How Gemini CLI goes on with a session: as it is, or from a new file of its own.

Source: the Gemini CLI format page, sections 4.1 (places) and 4.5 (resume).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import orjson

from store.database import Database
from store.errors import Refused
from store.exports.gemini.session_file import gemini_file
from store.exports.reading import read_session
from store.resume.planning import ResumePlan, opening_prompt, unchanged, with_prompt
from store.rows import SessionRow

PROGRAM = "gemini"
KIND = "gemini"


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


def plan(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> ResumePlan:
    """Plan how to go on with a session in Gemini CLI; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: For ``PATH`` and ``GEMINI_CLI_HOME``.
        home: The user's home folder.

    Raises:
        Refused: There is nothing to go on from, or no folder to do it in.
    """
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    cwd = session.workspace_root or str(home)
    own = unchanged(db, session, KIND)
    if own is not None:
        command = (PROGRAM, "--resume", own[0])
        return ResumePlan(command, cwd, None, own[1], program, kind=KIND)
    file = gemini_file(read_session(db, session.id, "context"), cwd=os.path.realpath(cwd))
    prompt = opening_prompt(db, session, file)
    path = chats_folder(config_folder(environment, home), cwd) / file.name
    resumed = (PROGRAM, "--resume", file.session_id) if file.lines else (PROGRAM,)
    bare = ResumePlan(resumed, cwd, file, path, program, kind=KIND)
    return with_prompt(bare, prompt)
