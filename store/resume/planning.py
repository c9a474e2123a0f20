"""Plans how to resume a session in an agent, and carries the plan out.

Each agent has a module with its command line; ``store.resume.registry`` lists them.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from store.conversation.copy_marks import COPY_OF
from store.engine.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.noting import note_export
from store.resume.provenance import doubt, metadata_of, source_of
from store.rows import SessionRow
from store.sources.base.one_file import is_named_as_copy
from store.system.files import AlreadyThere, write_whole
from store.system.programs import CommandLine, absolute, find, quoted, run
from store.text.neutral import neutral

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""The format of most agents' ids."""


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
        """A person's prompt at the session's end, which is sent again and not in ``lines``."""
        ...


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """Everything needed to resume a session.

    Attributes:
        command: The program and its arguments, with the opening prompt.
        cwd: The folder to start it in: an absolute path.
        file: A session file to write first; None to resume the agent's own file.
        path: The path of that file, or of the agent's own.
        program: The agent's path on PATH; None if it is not there.
        kind: The agent's ``metadata_json.source.kind``.
        session_id: The session's id at the agent; if the agent makes a copy, the id of the
            original.
        before: A command to run first, which must succeed.
        prompt: The opening prompt at the end of ``command``, or None.
        withheld: Why the prompt is not part of ``command``; None if it is.
        base: ``command`` without the prompt.
        say: Adds a prompt to the end of ``base``.
        doubt: Why the user must confirm the plan before anything starts; None for a
            session of an agent's own files on this machine.
        variables: The agent's own environment variables that are set.
    """

    command: CommandLine
    cwd: str
    file: ResumeFile | None
    path: Path
    program: str | None
    kind: str
    session_id: str
    base: CommandLine
    say: Callable[[CommandLine, str], CommandLine]
    before: CommandLine | None = None
    prompt: str | None = None
    withheld: str | None = None
    doubt: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def started(self) -> str:
        """The name of the agent's program."""
        return self.command.program

    @property
    def commands(self) -> tuple[CommandLine, ...]:
        """The commands to run, in order."""
        return (self.command,) if self.before is None else (self.before, self.command)

    @property
    def shown_cwd(self) -> str:
        """The folder, with escapes for characters that a terminal does not show."""
        return self.cwd if neutral(self.cwd) == self.cwd else quoted(self.cwd)

    def shown(self, *, folder: bool = True) -> str:
        """Return the shell command that does the same.

        Args:
            folder: Whether it starts with ``cd`` to the folder.
        """
        steps = [command.shown() for command in self.commands]
        return " && ".join([f"cd {quoted(self.cwd)}", *steps] if folder else steps)


@dataclass(frozen=True, slots=True)
class Place:
    """The surroundings in which an agent resumes a session.

    Attributes:
        environment: Environment variables: ``PATH`` and the agent's own.
        home: The user's home folder.
        cwd: The folder to start the agent in.
    """

    environment: Mapping[str, str]
    home: Path
    cwd: str


FileT = TypeVar("FileT", bound=ResumeFile)


class ResumingAgent(Protocol[FileT]):
    """What each agent's module implements.

    Attributes:
        kind: As in ``metadata_json.source.kind``.
        program: Its name on ``PATH``.
        ids: The format of its session ids.
        variables: Environment variables that set the location of its files.
    """

    kind: str
    program: str
    ids: re.Pattern[str]
    variables: tuple[str, ...]

    def as_it_is(self, source_id: str, path: Path, place: Place) -> CommandLine | None:
        """Return the command that resumes the agent's own file; None if it would not find it.

        Args:
            source_id: The agent's id of the session.
            path: The agent's file of the session.
            place: Where the session is resumed.
        """
        ...

    def file(self, db: Database, session: SessionRow, place: Place) -> FileT:
        """Return a session as a file that the agent can resume.

        Args:
            db: The store.
            session: The session.
            place: Where the session is resumed.
        """
        ...

    def path(self, file: FileT, place: Place) -> Path:
        """Return the path to write the file to.

        Raises:
            Refused: There is no folder for it.
        """
        ...

    def before(self, file: FileT, path: Path) -> CommandLine | None:
        """Return the command to run before resuming the file, or None."""
        ...

    def command(self, file: FileT, path: Path, place: Place) -> CommandLine:
        """Return the command that resumes the file; without lines it starts a new session.

        Args:
            file: The session as the agent's file.
            path: Where the file is.
            place: Where the session is resumed.
        """
        ...

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Return a command with an opening prompt.

        Raises:
            Refused: The agent cannot be given this prompt.
        """
        ...


def planned(
    agent: ResumingAgent[FileT],
    db: Database,
    session: SessionRow,
    environment: Mapping[str, str],
    home: Path,
) -> ResumePlan:
    """Return a plan to resume a session in an agent; writes nothing.

    Args:
        agent: The agent.
        db: The store.
        session: The session.
        environment: The environment variables.
        home: The home folder.

    Raises:
        Refused: The session has nothing to resume from, or its folder cannot be used.
    """
    place = Place(environment, home, folder_of(session, home))
    common: dict[str, Any] = {
        "cwd": place.cwd, "program": find(agent.program, environment), "kind": agent.kind,
        "say": agent.say, "doubt": doubt(db, session, environment, home),
        "variables": {name: environment[name] for name in agent.variables if name in environment},
    }  # fmt: skip
    own = unchanged(db, session, agent.kind, agent.ids)
    command = agent.as_it_is(*own, place) if own is not None else None
    if own is not None and command is not None:
        return ResumePlan(command=command, base=command, file=None, path=own[1],
                          session_id=own[0], **common)  # fmt: skip
    file = agent.file(db, session, place)
    prompt = opening_prompt(db, session, file)
    path = agent.path(file, place)
    command = agent.command(file, path, place)
    made = ResumePlan(
        command=command, base=command, before=agent.before(file, path), file=file, path=path,
        session_id=file.session_id, **common,
    )  # fmt: skip
    return with_prompt(made, prompt)


def folder_of(session: SessionRow, home: Path) -> str:
    """Return the folder to resume a session in: its own, or the home folder.

    Raises:
        Refused: The session's folder is not a valid absolute path.
    """
    if not session.workspace_root:
        return str(home)
    try:
        return absolute(session.workspace_root)
    except Refused as error:
        raise Refused(f"the session's folder cannot be used: {error}") from error


def opening_prompt(db: Database, session: SessionRow, file: ResumeFile) -> str:
    """Return the opening prompt: the prompt at the session's end, and a fork's draft.

    Args:
        db: The store.
        session: The session.
        file: The session as the agent's file.

    Raises:
        Refused: There is no prompt, and the file is empty.
    """
    said = [text for text in (file.prompt, draft_prompt(db, session)) if text]
    if not file.lines and not said:
        raise Refused("this session has no message that an agent could resume from")
    return "\n\n".join(said)


def with_prompt(plan: ResumePlan, prompt: str | None) -> ResumePlan:
    """Return a plan with another opening prompt; an empty one removes it.

    A prompt that the agent cannot be given is left out; ``withheld`` is the reason.
    """
    if not prompt or not prompt.strip():
        return replace(plan, command=plan.base, prompt=None, withheld=None)
    prompt = prompt.replace("\r\n", "\n")
    try:
        command = plan.say(plan.base, prompt)
    except Refused as error:
        return replace(plan, command=plan.base, prompt=prompt, withheld=str(error))
    return replace(plan, command=command, prompt=prompt, withheld=None)


def draft_prompt(db: Database, session: SessionRow) -> str | None:
    """Return the draft prompt of a fork that has no messages of its own yet, or None."""
    kept = metadata_of(session).get("backscroll")
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


def unchanged(
    db: Database, session: SessionRow, kind: str, ids: re.Pattern[str]
) -> tuple[str, Path] | None:
    """Return an agent's own id and file of a session that is unchanged from that file.

    None for sessions of other agents, for subagents, for sessions without their file or with
    an id that is not the agent's, and for those that the user rewound or restored.

    Args:
        db: The store.
        session: The session.
        kind: The agent's kind.
        ids: The format of its session ids.
    """
    source = source_of(session)
    copied = COPY_OF in source or is_named_as_copy(source.get("path", ""))
    if source.get("kind") != kind or copied:
        # The agent itself only knows the file that has its own name, and not a copy beside it.
        return None
    lineage = metadata_of(session).get("lineage")
    if isinstance(lineage, dict) and lineage.get("kind") == "subagent":
        return None
    source_id, path = source.get("id", ""), Path(source.get("path", ""))
    if not ids.fullmatch(source_id) or not _is_file(path):
        return None
    return None if _rewound(db, session.id) else (source_id, path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_absolute() and path.is_file()
    except (OSError, ValueError):
        return False


def _rewound(db: Database, session_id: str) -> bool:
    """Return whether the user has rewound or restored messages of a session."""
    row = db.connection.execute(
        "SELECT 1 FROM chat_messages m WHERE m.session_id = $1"
        f" AND {db.form.rare_fact('m', 'backscroll.hidden_by')} IS NOT NULL LIMIT 1",
        {"1": session_id},
    ).fetchone()
    return row is not None


def write_file(plan: ResumePlan) -> None:
    """Write the session files of a plan: new ones (0600); existing files are not replaced.

    Raises:
        FileExistsError: A file of that name exists already.
        Refused: It cannot be written.
        OSError: Its folder cannot be created.
    """
    if plan.file is None or not plan.file.lines:
        return
    plan.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        write_whole(plan.path, (f"{line}\n" for line in plan.file.lines))
        if isinstance(plan.file, NamedFile):
            top = plan.path.parents[plan.file.name.count("/")]
            for name, text in plan.file.beside.items():
                (top / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(top / name, [text])
    except AlreadyThere as error:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(plan.path)) from error


def note_exported(db: Database, session_id: str, plan: ResumePlan) -> None:
    """Store which session was exported, so that sync can link the session that continues it.

    Args:
        db: The store, open for writing.
        session_id: The session that was exported.
        plan: How it is resumed.
    """
    if plan.file is not None:
        note_export(db, plan.kind, plan.file.session_id, session_id)


def start(plan: ResumePlan) -> int:
    """Run a plan's commands in this process's terminal and return the last exit code.

    Raises:
        Refused: It cannot be started.
    """
    code = 0
    for command in plan.commands:
        code = run(command, folder=plan.cwd).code
        if code != 0:
            break
    return code
