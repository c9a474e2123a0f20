"""How Claude Code goes on with a session: as it is, or from a new file of its own.

Source: the Claude Code format page, sections 2 (places, the folder's slug), 6 (resume).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from store.database import Database
from store.errors import Refused
from store.exports.claude_code.chain import claude_file
from store.exports.reading import read_session
from store.resume.planning import ResumePlan, opening_prompt, unchanged, with_prompt
from store.rows import SessionRow

PROGRAM = "claude"
KIND = "claude-code"
_SLUG_LENGTH = 200


def config_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return Claude Code's folder: the first of ``CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    named = environment.get("CLAUDE_CONFIG_DIR", "").split(",")[0].strip()
    return Path(named).expanduser() if named else home / ".claude"


def project_folder(config: Path, cwd: str) -> Path:
    """Return the folder that holds the sessions of a working folder.

    The slug is the real path with everything outside ``[A-Za-z0-9]`` as ``-``. Past 200
    characters a hash follows that differs between the program's builds, so it can only be
    taken from a folder that the program made itself.

    Raises:
        Refused: The path is that long, and Claude Code has made no folder for it yet.
    """
    slug = re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(cwd))
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


def plan(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> ResumePlan:
    """Plan how to go on with a session in Claude Code; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: For ``PATH`` and ``CLAUDE_CONFIG_DIR``.
        home: The user's home folder.

    Raises:
        Refused: There is nothing to go on from, or no folder to do it in.
    """
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    cwd = session.workspace_root or str(home)
    known = unchanged(db, session, KIND)
    if known is not None and known[1].stem == known[0]:
        command = (PROGRAM, "--resume", known[0])
        return ResumePlan(command, cwd, None, known[1], program, kind=KIND)
    file = claude_file(read_session(db, session.id, "context"), cwd=cwd)
    prompt = opening_prompt(db, session, file)
    folder = project_folder(config_folder(environment, home), cwd)
    resumed = (PROGRAM, "--resume", file.session_id) if file.lines else (PROGRAM,)
    bare = ResumePlan(resumed, cwd, file, folder / f"{file.session_id}.jsonl", program, kind=KIND)
    return with_prompt(bare, prompt)
