"""The agents that can resume a session; their modules are imported when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from store.engine.database import Database
from store.errors import Refused
from store.resume.own_sessions import OWN_SESSIONS, plan_own
from store.resume.planning import ResumePlan
from store.resume.provenance import source_of
from store.rows import SessionRow

Planner = Callable[[Database, SessionRow, Mapping[str, str], Path], ResumePlan]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that can resume sessions.

    Attributes:
        kind: As in ``metadata_json.source.kind`` and for ``resume --in``.
        label: Its name for people.
        module: The module with its ``plan``.
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
        Agent("qwen", "Qwen Code", "store.resume.qwen"),
        Agent("kimi", "Kimi Code", "store.resume.kimi"),
        Agent("continue", "Continue", "store.resume.continue_dev"),
        Agent("cline", "Cline", "store.resume.cline"),
        Agent("openhands", "OpenHands", "store.resume.openhands"),
    )
}


def label_of(kind: str) -> str:
    """Return the name of an agent for people."""
    return (AGENTS.get(kind) or OWN_SESSIONS[kind]).label


def agent_of(session: SessionRow) -> str:
    """Return the default agent to resume a session in: its own if possible."""
    names = (source_of(session).get("kind"), session.agent)
    return next((name for name in names if name in AGENTS), "claude-code")


def plan(
    db: Database,
    session: SessionRow,
    environment: Mapping[str, str],
    home: Path,
    agent: str | None = None,
) -> ResumePlan:
    """Return a plan to resume a session; writes nothing.

    Args:
        db: The store.
        session: The session.
        environment: Environment variables: ``PATH`` and the agent's own.
        home: The user's home folder.
        agent: The agent's kind; None for the session's own, or Claude Code where that cannot
            be given this session.

    Raises:
        Refused: There is no such agent, or the session has nothing to resume from.
    """
    own = plan_own(db, session, environment, home) if agent is None else None
    if own is not None:
        return own
    name = agent or agent_of(session)
    if name not in AGENTS:
        raise Refused(f"no agent named {name!r}; known: {', '.join(AGENTS)}")
    planner: Planner = import_module(AGENTS[name].module).plan
    return planner(db, session, environment, home)
