"""The agents that a session can go on in; their code is loaded when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from store.engine.database import Database
from store.errors import Refused
from store.resume.planning import ResumePlan
from store.resume.provenance import source_of
from store.rows import SessionRow

Planner = Callable[[Database, SessionRow, Mapping[str, str], Path], ResumePlan]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent.

    Attributes:
        kind: As in ``metadata_json.source.kind``, and as ``resume --in`` takes it.
        label: Its name, for people.
        module: Holds its ``plan``.
    """

    kind: str
    label: str
    module: str


AGENTS = {
    agent.kind: agent
    for agent in (
        Agent("claude-code", "Claude Code", "store.resume.claude_code"),
        Agent("codex", "Codex", "store.resume.codex"),
        Agent("opencode", "opencode", "store.resume.opencode"),
        Agent("gemini", "Gemini CLI", "store.resume.gemini"),
        Agent("pi", "pi", "store.resume.pi"),
    )
}


def agent_of(session: SessionRow) -> str:
    """Return the agent that a session goes on in when nobody names one: its own, if it can."""
    names = (source_of(session).get("kind"), session.agent)
    return next((name for name in names if name in AGENTS), "claude-code")


def plan(
    db: Database,
    session: SessionRow,
    environment: Mapping[str, str],
    home: Path,
    agent: str | None = None,
) -> ResumePlan:
    """Plan how to go on with a session; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: For ``PATH`` and the agent's own variables.
        home: The user's home folder.
        agent: The agent's kind; None takes the session's own.

    Raises:
        Refused: There is no such agent, or nothing to go on from.
    """
    name = agent or agent_of(session)
    if name not in AGENTS:
        raise Refused(f"there is no agent {name!r}; there are {', '.join(AGENTS)}")
    planner: Planner = import_module(AGENTS[name].module).plan
    return planner(db, session, environment, home)
