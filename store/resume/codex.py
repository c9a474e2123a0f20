"""How Codex goes on with a session: as it is, or from a new rollout of its own.

Source: the Codex format page, sections 3.1 (places, names) and 3.8 (resume).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from store.database import Database
from store.exports.codex.rollout import CodexFile, codex_file, file_name
from store.exports.reading import read_session
from store.resume.planning import ResumePlan, opening_prompt, unchanged, with_prompt
from store.rows import SessionRow

PROGRAM = "codex"
KIND = "codex"


def codex_home(environment: Mapping[str, str], home: Path) -> Path:
    """Return Codex's folder: ``CODEX_HOME``, else ``~/.codex``."""
    named = environment.get("CODEX_HOME", "").strip()
    return Path(named).expanduser() if named else home / ".codex"


def rollout_path(folder: Path, file: CodexFile) -> Path:
    """Return where a new rollout belongs: by its day, its time and id in its name."""
    at = datetime.fromtimestamp(file.created_at / 1000)
    name = file_name(file.session_id, file.created_at)
    return folder / "sessions" / f"{at:%Y}" / f"{at:%m}" / f"{at:%d}" / name


def plan(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> ResumePlan:
    """Plan how to go on with a session in Codex; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: For ``PATH`` and ``CODEX_HOME``.
        home: The user's home folder.

    Raises:
        Refused: There is nothing to go on from.
    """
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    folder, cwd = codex_home(environment, home), session.workspace_root or str(home)
    known = unchanged(db, session, KIND)
    if known is not None and (folder / "sessions").resolve() in known[1].resolve().parents:
        command = (PROGRAM, "resume", known[0])
        return ResumePlan(command, cwd, None, known[1], program, kind=KIND)
    file = codex_file(read_session(db, session.id, "context"), cwd=cwd)
    prompt = opening_prompt(db, session, file)
    resumed = (PROGRAM, "resume", file.session_id) if file.lines else (PROGRAM,)
    bare = ResumePlan(resumed, cwd, file, rollout_path(folder, file), program, kind=KIND)
    return with_prompt(bare, prompt)
