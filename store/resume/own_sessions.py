"""How agents resume that only know their own sessions: with the command of an unchanged one.

A session that was forked or rewound here, or that is another agent's, cannot be handed to them.

Source: the format pages of each program. That ``kilo`` opens its screen with the same option as
opencode, which it is made from, is taken from there: on its own page only ``kilo run -s`` was run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from store.engine.database import Database
from store.errors import Refused
from store.resume.planning import UUID, Place, ResumePlan, folder_of, unchanged
from store.resume.provenance import doubt, source_of
from store.rows import SessionRow
from store.system.paths import real_path
from store.system.programs import CommandLine, find

_OPENCODE_ID = re.compile(r"ses_[0-9A-Za-z]{1,64}")
_GOOSE_ID = re.compile(r"\d{8}_\d{1,9}")
_FOLDER_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}")
_KIRO_DATABASES = {"kiro-cli": "kiro-cli", "amazon-q": "q"}
"""Programs by the folders of their databases."""
_ULID = re.compile(r"[0-9a-zA-Z]{26}")


@dataclass(frozen=True, slots=True)
class OwnSessions:
    """An agent that resumes its own sessions by their id.

    Attributes:
        kind: As in ``metadata_json.source.kind``.
        label: Its name for people.
        program: Its name on ``PATH``.
        ids: The format of the ids of sessions that it resumes.
        resume: Returns its command, to which the id is added.
        finds: Returns whether the agent, started in this place, looks into the session's file.
        variables: Environment variables that set the location of its files.
        of_folder: Returns the command of a session that is resumed without an id, as the only one
            of its folder; None for other sessions, and if the agent has no such command.
    """

    kind: str
    label: str
    program: str
    ids: re.Pattern[str]
    resume: Callable[[CommandLine, str], CommandLine]
    finds: Callable[[Path, Place], bool]
    variables: tuple[str, ...] = ()
    of_folder: Callable[[Path, Place, str], CommandLine | None] | None = None

    def say(self, command: CommandLine, prompt: str) -> CommandLine:
        """Raise Refused: none of these programs takes a prompt together with a session.

        Args:
            command: The command.
            prompt: What would be said.
        """
        raise Refused(f"{self.label} takes no prompt when it opens a session")


def _by_session(command: CommandLine, session_id: str) -> CommandLine:
    return command.separate("--session", session_id)


def _in_chat(command: CommandLine, session_id: str) -> CommandLine:
    return command.flag("chat").separate("--cid", session_id)


def _by_resume(command: CommandLine, session_id: str) -> CommandLine:
    return command.separate("--resume", session_id)


def _by_name(command: CommandLine, session_id: str) -> CommandLine:
    return command.separate("--name", session_id)


def _by_resume_id(command: CommandLine, session_id: str) -> CommandLine:
    return command.separate("--resume-id", session_id)


def _by_session_id(command: CommandLine, session_id: str) -> CommandLine:
    return command.flag("session").flag("--resume").separate("--session-id", session_id)


def _in_project(path: Path, place: Place) -> bool:
    """Return whether a Crush database is the one of the folder: the nearest ``.crush`` upwards."""
    folder = real_path(Path(place.cwd))
    nearest = next(
        (each for each in (folder, *folder.parents) if (each / ".crush").is_dir()), None)
    return nearest is not None and real_path(path) == nearest / ".crush" / "crush.db"


def _in_kilo_folder(path: Path, place: Place) -> bool:
    if place.environment.get("KILO_DB"):
        return real_path(path) == real_path(Path(place.environment["KILO_DB"]))
    data = place.environment.get("XDG_DATA_HOME")
    folder = (Path(data) if data else place.home / ".local" / "share") / "kilo"
    return real_path(path) == real_path(folder / "kilo.db")


def _in_llm_folder(path: Path, place: Place) -> bool:
    return path.name == "logs.db" and real_path(path).parent == _first_root("llm", place)


def _in_droid_folder(path: Path, place: Place) -> bool:
    return real_path(path).parent.parent == _first_root("droid", place)


def _in_cursor_folder(path: Path, place: Place) -> bool:
    folder = _first_root("cursor", place) / "chats"
    return path.name == "store.db" and real_path(path).parent.parent.parent == folder


def _in_goose_folder(path: Path, place: Place) -> bool:
    return path.name == "sessions.db" and real_path(path).parent == _first_root("goose", place)


def _in_kiro_folder(path: Path, place: Place) -> bool:
    """Return whether a session is one of the second engine, whose files are all in a folder."""
    return real_path(path).parent == _first_root("kiro", place) / "cli"


def _of_kiro_folder(path: Path, place: Place, session_id: str) -> CommandLine | None:
    """Return the command for a row of the databases, if it is the one of the current folder."""
    from store.sources.kiro import KiroSource

    kiro, file = KiroSource(), real_path(path)
    program = _KIRO_DATABASES.get(file.parent.name)
    roots = [real_path(root) for root in kiro.default_roots(place.environment, place.home)]
    if program is None or file.parent not in roots or file.name != kiro.patterns[0]:
        return None
    if kiro.newest_in(file, place.cwd) != session_id:
        return None
    command = (
        CommandLine.of("q", "chat") if program == "q" else CommandLine.of("kiro-cli", "chat")
    )
    return command.flag("--resume")


def _in_gptme_folder(path: Path, place: Place) -> bool:
    return real_path(path).parent.parent == _first_root("gptme", place)


def _in_vibe_folder(path: Path, place: Place) -> bool:
    """Return whether a session is in the unified store of the folder that Vibe looks into."""
    return real_path(path).parent.parent == _first_root("vibe", place) / "unified"


def _first_root(kind: str, place: Place) -> Path:
    from store.sources.registry import source

    return real_path(source(kind).default_roots(place.environment, place.home)[0])


OWN_SESSIONS = {
    agent.kind: agent
    for agent in (
        OwnSessions("crush", "Crush", "crush", UUID, _by_session, _in_project),
        OwnSessions("cursor", "Cursor", "agent", UUID, _by_resume, _in_cursor_folder,
                    ("CURSOR_CONFIG_DIR", "XDG_CONFIG_HOME")),
        OwnSessions("droid", "Factory Droid", "droid", UUID, _by_resume, _in_droid_folder,
                    ("FACTORY_HOME_OVERRIDE",)),
        OwnSessions("goose", "Goose", "goose", _GOOSE_ID, _by_session_id, _in_goose_folder,
                    ("GOOSE_PATH_ROOT", "XDG_DATA_HOME")),
        OwnSessions("gptme", "gptme", "gptme", _FOLDER_NAME, _by_name, _in_gptme_folder,
                    ("GPTME_LOGS_HOME", "XDG_DATA_HOME")),
        OwnSessions("kilo", "Kilo", "kilo", _OPENCODE_ID, _by_session, _in_kilo_folder,
                    ("KILO_DB", "XDG_DATA_HOME")),
        OwnSessions("kiro", "Kiro", "kiro-cli", UUID, _by_resume_id, _in_kiro_folder,
                    ("KIRO_HOME", "XDG_DATA_HOME"), _of_kiro_folder),
        OwnSessions("vibe", "Mistral Vibe", "vibe", UUID, _by_resume, _in_vibe_folder,
                    ("VIBE_HOME",)),
        OwnSessions("llm", "llm", "llm", _ULID, _in_chat, _in_llm_folder, ("LLM_USER_PATH",)),
    )
}  # fmt: skip


def plan_own(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> ResumePlan | None:
    """Return a plan to resume a session in the one agent that knows it; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: Environment variables: ``PATH`` and the agent's own.
        home: The user's home folder.

    Returns:
        None for a session that is not one of these agents', or that was changed here.

    Raises:
        Refused: The session's folder cannot be used.
    """
    agent = OWN_SESSIONS.get(source_of(session).get("kind", ""))
    own = unchanged(db, session, agent.kind, agent.ids) if agent is not None else None
    if agent is None or own is None:
        return None
    place = Place(environment, home, folder_of(session, home))
    session_id, path = own
    command: CommandLine | None = None
    if agent.finds(path, place):
        command = agent.resume(CommandLine.of(agent.program), session_id)
    elif agent.of_folder is not None:
        command = agent.of_folder(path, place, session_id)
    if command is None:
        return None
    return ResumePlan(
        command=command, base=command, cwd=place.cwd, file=None, path=path,
        program=find(command.program, environment), kind=agent.kind, session_id=session_id,
        say=agent.say, doubt=doubt(db, session, environment, home),
        variables={name: environment[name] for name in agent.variables if name in environment},
    )  # fmt: skip
