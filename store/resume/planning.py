"""What going on with a session in some agent takes, and what is done for it.

Each agent's module says what its program takes; ``store.resume.registry`` knows them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import orjson

from store.database import Database
from store.errors import Refused
from store.exports.noting import note_export
from store.rows import SessionRow


class ResumeFile(Protocol):
    """A session file that an agent resumes."""

    @property
    def session_id(self) -> str:
        """The session's id at the agent."""
        ...

    @property
    def lines(self) -> list[str]:
        """Its lines without their newline."""
        ...

    @property
    def prompt(self) -> str | None:
        """A person's own prompt at the session's end, which is said again instead."""
        ...


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """What going on with a session takes.

    Attributes:
        command: The program and its arguments.
        cwd: The folder to start it in.
        file: A session file to write first; None where the session is resumed as it is.
        path: Where that file, or the agent's own, lies.
        program: Where the agent is on PATH, None where it is not there.
        kind: The agent, as sessions of it are named in ``metadata_json.source.kind``.
        prompt: What is said to it first, the end of ``command``; None says nothing.
    """

    command: tuple[str, ...]
    cwd: str
    file: ResumeFile | None
    path: Path
    program: str | None
    kind: str
    prompt: str | None = None

    @property
    def started(self) -> str:
        """The agent's program, by name; where a shell starts it, it is the script's ``$0``."""
        return self.command[3] if self.command[:2] == ("sh", "-c") else self.command[0]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent goes on.

    Attributes:
        environment: For ``PATH`` and the agent's own variables.
        home: The user's home folder.
        cwd: The folder that it is started in.
    """

    environment: Mapping[str, str]
    home: Path
    cwd: str


FileT = TypeVar("FileT", bound=ResumeFile)


class ResumingAgent(Protocol[FileT]):
    """What an agent's module says of it.

    Attributes:
        kind: As in ``metadata_json.source.kind``.
        program: Its name on ``PATH``.
    """

    kind: str
    program: str

    def as_it_is(self, source_id: str, path: Path, place: Place) -> tuple[str, ...] | None:
        """Return what resumes a session of its own; None where it does not look there."""
        ...

    def file(self, db: Database, session: SessionRow, place: Place) -> FileT:
        """Return a session as a file that it resumes."""
        ...

    def path(self, file: FileT, place: Place) -> Path:
        """Return where that file belongs.

        Raises:
            Refused: There is no folder for it.
        """
        ...

    def command(self, file: FileT, path: Path) -> tuple[str, ...]:
        """Return what goes on with that file; one without lines begins anew."""
        ...


def planned(
    agent: ResumingAgent[FileT],
    db: Database,
    session: SessionRow,
    environment: Mapping[str, str],
    home: Path,
) -> ResumePlan:
    """Plan how to go on with a session in an agent; writes nothing.

    Raises:
        Refused: There is nothing to go on from, or no folder to do it in.
    """
    program = shutil.which(agent.program, path=environment.get("PATH"))
    place = Place(environment, home, session.workspace_root or str(home))
    own = unchanged(db, session, agent.kind)
    command = agent.as_it_is(*own, place) if own is not None else None
    if own is not None and command is not None:
        return ResumePlan(command, place.cwd, None, own[1], program, kind=agent.kind)
    file = agent.file(db, session, place)
    prompt = opening_prompt(db, session, file)
    path = agent.path(file, place)
    command = agent.command(file, path)
    return with_prompt(
        ResumePlan(command, place.cwd, file, path, program, kind=agent.kind), prompt
    )


def opening_prompt(db: Database, session: SessionRow, file: ResumeFile) -> str:
    """Return what is said first: the prompt that ends the session, and a fork's draft.

    Raises:
        Refused: There is neither that nor anything in the file.
    """
    said = [text for text in (file.prompt, draft_prompt(db, session)) if text]
    if not file.lines and not said:
        raise Refused("this session has no message that an agent could go on from")
    return "\n\n".join(said)


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


def unchanged(db: Database, session: SessionRow, kind: str) -> tuple[str, Path] | None:
    """Return an agent's own id and file of a session that is as that agent has it.

    None for sessions of other agents, subagents, those whose file is gone, and those that
    a user rewound or restored here.
    """
    metadata = orjson.loads(session.metadata_json) if session.metadata_json else {}
    source = metadata.get("source") if isinstance(metadata, dict) else None
    if not isinstance(source, dict) or source.get("kind") != kind:
        return None
    lineage = metadata.get("lineage")
    if isinstance(lineage, dict) and lineage.get("kind") == "subagent":
        return None
    source_id, path = source.get("id"), Path(str(source.get("path", "")))
    if not isinstance(source_id, str) or not path.is_file():
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
    """Remember which session an exported file came from, so that sync links what follows."""
    if plan.file is not None:
        note_export(db, plan.kind, plan.file.session_id, session_id)
