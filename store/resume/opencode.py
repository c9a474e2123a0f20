"""How opencode goes on with a session: as it is, or from a file that it imports first.

Source: the opencode format page, sections 2.1 (places) and 2.10 (import, then go on). Its
database is never written from here: ``opencode import`` does that, in the session's folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from store.database import Database
from store.exports.opencode.session_file import OpencodeFile, opencode_file
from store.exports.reading import read_session
from store.locations import cache_dir
from store.resume.planning import ResumePlan, opening_prompt, unchanged, with_prompt
from store.rows import SessionRow

PROGRAM = "opencode"
KIND = "opencode"
_PROMPT = '${%d+--prompt "$%d"}'
_IMPORTED = f'{PROGRAM} import "$1" && exec {PROGRAM} --session "$2" {_PROMPT % (3, 3)}'
_FRESH = f"exec {PROGRAM} {_PROMPT % (1, 1)}"


def data_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return opencode's data folder: below ``XDG_DATA_HOME``, else ``~/.local/share``."""
    data = environment.get("XDG_DATA_HOME")
    return (Path(data) if data else home / ".local" / "share") / "opencode"


def plan(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> ResumePlan:
    """Plan how to go on with a session in opencode; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: For ``PATH`` and ``XDG_DATA_HOME``.
        home: The user's home folder.

    Raises:
        Refused: There is nothing to go on from.
    """
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    folder, cwd = data_folder(environment, home), session.workspace_root or str(home)
    known = unchanged(db, session, KIND)
    if known is not None and _is_in_use(known[1], folder):
        command = (PROGRAM, "--session", known[0])
        return ResumePlan(command, cwd, None, known[1], program, kind=KIND)
    file = opencode_file(read_session(db, session.id, "display"), cwd=cwd, hand_over_prompt=True)
    prompt = opening_prompt(db, session, file)
    path = cache_dir() / "exports" / f"{file.session_id}.json"
    bare = ResumePlan(_command(file, path), cwd, file, path, program, kind=KIND)
    return with_prompt(bare, prompt)


def _command(file: OpencodeFile, path: Path) -> tuple[str, ...]:
    """Return what imports the file and goes on; a prompt may follow as one more argument."""
    if not file.lines:
        return ("sh", "-c", _FRESH, PROGRAM)
    return ("sh", "-c", _IMPORTED, PROGRAM, str(path), file.session_id)


def _is_in_use(path: Path, folder: Path) -> bool:
    """Tell whether a file is the database that the program opens, not a JSON store or copy."""
    return path.suffix == ".db" and path.resolve().parent == folder.resolve()
