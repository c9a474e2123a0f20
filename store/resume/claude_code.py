"""How Claude Code goes on with a session: as it is, or from a new file of its own.

Source: the Claude Code format page, sections 2 (places, the folder's slug), 6 (resume).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from store.database import Database
from store.errors import Refused
from store.exports.claude_code.chain import ClaudeFile, claude_file
from store.exports.reading import read_session
from store.ids import derived_session_id
from store.rows import SessionRow

PROGRAM = "claude"
KIND = "claude-code"
_SLUG_LENGTH = 200


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """What going on with a session takes.

    Attributes:
        command: The program and its arguments.
        cwd: The folder to start it in.
        file: A session file to write first; None where the session is resumed as it is.
        path: Where that file, or the agent's own, lies.
        program: Where the agent is on PATH, None where it is not there.
        prompt: What is said to it first, the end of ``command``; None says nothing.
    """

    command: tuple[str, ...]
    cwd: str
    file: ClaudeFile | None
    path: Path
    program: str | None
    prompt: str | None = None


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
    unchanged = _unchanged(db, session)
    if unchanged is not None:
        source_id, path = unchanged
        cwd = session.workspace_root or str(home)
        return ResumePlan((PROGRAM, "--resume", source_id), cwd, None, path, program)
    cwd = session.workspace_root or str(home)
    file = claude_file(read_session(db, session.id, "context"), cwd=cwd)
    said = [text for text in (file.prompt, draft_prompt(db, session)) if text]
    if not file.lines and not said:
        raise Refused("this session has no message that an agent could go on from")
    folder = project_folder(config_folder(environment, home), cwd)
    resumed = (PROGRAM, "--resume", file.session_id) if file.lines else (PROGRAM,)
    bare = ResumePlan(resumed, cwd, file, folder / f"{file.session_id}.jsonl", program)
    return with_prompt(bare, "\n\n".join(said))


def with_prompt(plan: ResumePlan, prompt: str | None) -> ResumePlan:
    """Return a plan that says something else first; an empty prompt says nothing."""
    command = plan.command[:-1] if plan.prompt else plan.command
    if not prompt or not prompt.strip():
        return replace(plan, command=command, prompt=None)
    return replace(plan, command=(*command, prompt), prompt=prompt)


def draft_prompt(db: Database, session: SessionRow) -> str | None:
    """Return the text that a fork before a message handed over, while nothing followed it."""
    metadata = orjson.loads(session.metadata_json) if session.metadata_json else {}
    kept = metadata.get("backscroll") if isinstance(metadata, dict) else None
    draft = kept.get("draft_prompt") if isinstance(kept, dict) else None
    if not isinstance(draft, str):
        return None
    newest = db.connection.execute(
        f"SELECT {db.form.rare_fact('m', 'inherited_from')} FROM chat_messages m"
        f" WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session.id},
    ).fetchone()
    return draft if newest is not None and newest[0] is not None else None


def _unchanged(db: Database, session: SessionRow) -> tuple[str, Path] | None:
    """Return the agent's own id and file where the session is as the agent has it."""
    metadata = orjson.loads(session.metadata_json) if session.metadata_json else {}
    source = metadata.get("source") if isinstance(metadata, dict) else None
    if not isinstance(source, dict) or source.get("kind") != KIND:
        return None
    lineage = metadata.get("lineage")
    if isinstance(lineage, dict) and lineage.get("kind") == "subagent":
        return None
    source_id, path = source.get("id"), Path(str(source.get("path", "")))
    if not isinstance(source_id, str) or path.stem != source_id or not path.is_file():
        return None
    return None if _rewound(db, session.id) else (source_id, path)


def _rewound(db: Database, session_id: str) -> bool:
    """Tell whether the user's own rewind or restore makes the session differ."""
    row = db.connection.execute(
        "SELECT 1 FROM chat_messages m WHERE m.session_id = $1"
        f" AND {db.form.rare_fact('m', 'backscroll.hidden_by')} IS NOT NULL LIMIT 1",
        {"1": session_id},
    ).fetchone()
    return row is not None


def write_file(plan: ResumePlan) -> None:
    """Write the session file of a plan: a new file, 0600, never over another.

    Raises:
        FileExistsError: A file of that name is there already.
        OSError: It cannot be written.
    """
    if plan.file is None:
        return
    plan.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(plan.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in plan.file.lines)


def note_exported(db: Database, session_id: str, plan: ResumePlan) -> None:
    """Remember which session an exported file came from, so that sync links what follows.

    Only a store of our own form has a place for it.
    """
    if db.form.name == "own" and plan.file is not None:
        imported = derived_session_id(KIND, plan.file.session_id)
        db.connection.execute(
            "INSERT INTO exported_sessions(imported_id, session_id) VALUES ($1, $2)",
            {"1": imported, "2": session_id},
        )
