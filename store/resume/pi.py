"""How pi goes on with a session: as it is, or from a new file of its own.

Source: the pi section of the format page.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from store.database import Database
from store.exports.pi.session_file import pi_file
from store.exports.reading import read_session
from store.resume.planning import ResumePlan, opening_prompt, unchanged, with_prompt
from store.rows import SessionRow

PROGRAM = "pi"
KIND = "pi"


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


def plan(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> ResumePlan:
    """Plan how to go on with a session in pi; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: For ``PATH`` and pi's folders.
        home: The user's home folder.

    Raises:
        Refused: There is nothing to go on from.
    """
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    cwd = session.workspace_root or str(home)
    own = unchanged(db, session, KIND)
    if own is not None:
        command = (PROGRAM, "--session", str(own[1]))
        return ResumePlan(command, cwd, None, own[1], program, kind=KIND)
    file = pi_file(read_session(db, session.id, "context"), cwd=cwd)
    prompt = opening_prompt(db, session, file)
    path = project_folder(sessions_folder(environment, home), cwd) / file.name
    resumed = (PROGRAM, "--session", str(path)) if file.lines else (PROGRAM,)
    bare = ResumePlan(resumed, cwd, file, path, program, kind=KIND)
    return with_prompt(bare, prompt)
