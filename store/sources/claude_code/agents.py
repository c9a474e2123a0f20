"""How the files of subagents are named, and what they are called by."""

from __future__ import annotations

import os
import re

FOLDER = "subagents"
AGENT = "agent-"
ROWS = ".jsonl"
META = ".meta.json"
DEPTH = 2
"""Folders below ``subagents/`` that are looked into."""
RUN_MARK = "@"
"""Separates an agent's id from its workflow's run in a key."""


def agent_key(path: str) -> str:
    """Return what an agent's file, or its meta file, is known by within its session.

    That is the agent's id, and the run where it is one of a workflow's (seen:
    ``subagents/workflows/<run>/agent-<id>.jsonl``).
    """
    *folders, name = path.split(os.sep)
    name = name.removesuffix(ROWS).removesuffix(META).removeprefix(AGENT)
    of_run = folders[-3:-1] == [FOLDER, "workflows"]
    return f"{name}{RUN_MARK}{folders[-1]}" if of_run else name


_HELPER = re.compile(
    r"a(?:(prompt_suggestion|session_memory|extract_memories|agent_summary|away_summary"
    r"|magic_docs|auto_dream).*|(compact|speculation)[-_]?(?:[0-9a-f-]*|[a-z]*[0-9][0-9a-z]*))",
    re.DOTALL,
)
"""Agents may be called by names of a person's choice too, such as ``compact-reviewer``."""


def helper_of(agent_id: str) -> str | None:
    """Return what the program itself ran an agent for, such as ``prompt_suggestion``.

    None for a subagent that the model or a person started.
    """
    found = _HELPER.fullmatch(agent_id)
    return (found[1] or found[2]) if found else None


def session_folder(path: str) -> str | None:
    """Return the folder of the session that a file below ``subagents/`` belongs to."""
    folders = path.split(os.sep)[:-1]
    for depth in range(1, DEPTH + 2):
        if folders[-depth:][:1] == [FOLDER]:
            return os.sep.join(folders[:-depth])
    return None


def agent_source_id(key: str, session_id: str) -> str:
    """Return a subagent's source id; agents' ids alone repeat."""
    return f"{AGENT}{key}:{session_id}"
