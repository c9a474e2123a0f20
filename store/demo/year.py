"""A made-up year of small sessions, beside those of the demo: for the pictures of statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from store.engine.database import Database, open_database

DAYS = 364
DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000
_PLACES = (
    ("/home/mira/code/api", ("main", "backoff", "limits", "py313")),
    ("/home/mira/code/site", ("main", "search", "docs", "dark-theme")),
    ("/home/mira/code/tools", ("main", "port", "release")),
    ("/home/mira/notes", ("main",)),
)
_WORK = ("Fix", "Review", "Port", "Document", "Speed up", "Test", "Clean up")
_THINGS = ("the upload queue", "the search page", "the rate limits", "the release script",
           "the image pipeline", "the sign-up form", "the parser", "the nightly build")
_TOOLS = (("Bash", 40, 9), ("Read", 30, 1), ("Edit", 20, 4), ("Grep", 12, 1), ("Agent", 3, 2),
          ("WebFetch", 2, 12))
"""Names, how often each is called, and how many calls of a hundred fail."""


class _Agent(NamedTuple):
    """An agent that is used in the year.

    Attributes:
        weight: How often.
        since: Days after the start of the year from which on it is used.
        dollars: Of an answer, on average; None where it tells no cost.
    """

    name: str
    provider: str
    models: tuple[str, ...]
    weight: int
    since: int
    dollars: float | None


_AGENTS = (
    _Agent("claude-code", "anthropic", ("claude-opus-4-5", "claude-sonnet-4-5"), 11, 0, 0.55),
    _Agent("codex", "openai", ("gpt-5.2", "gpt-5.2-codex"), 6, 60, 0.4),
    _Agent("opencode", "zai", ("glm-5", "claude-sonnet-4-5"), 4, 130, 0.25),
    _Agent("gemini", "google", ("gemini-3-pro",), 2, 20, 0.2),
)


def add_year(path: Path, now: int) -> None:
    """Add the sessions to a store; the same ones each time.

    Args:
        path: The store, of our own form.
        now: Epoch ms; the last sessions are of this day.
    """
    database = open_database(path)
    try:
        database.connection.execute("BEGIN")
        for number, (agent, at) in enumerate(_times(Random(5), now)):
            _add_session(database, Random(number), agent, number, at)
        database.connection.execute("COMMIT")
    finally:
        database.close()


def _times(random: Random, now: int) -> Iterator[tuple[_Agent, int]]:
    """Yield which agent begins a session when: busy weeks and quiet ones, few at weekends."""
    busy = 1.0
    for day in range(DAYS):
        if day % 7 == 0:
            busy = random.choice((0.3, 0.7, 1.0, 1.4, 1.9))
        midnight = now - now % DAY_MS - (DAYS - 1 - day) * DAY_MS
        weekend = (midnight // DAY_MS + 3) % 7 >= 5
        begun = random.randrange(0, 2) if weekend else round(random.triangular(0, 7) * busy)
        for _ in range(begun):
            known = [agent for agent in _AGENTS if agent.since <= day]
            (agent,) = random.choices(known, [agent.weight for agent in known])
            at = midnight + round(random.triangular(7, 21, 13) * HOUR_MS)
            if at + HOUR_MS < now:
                yield agent, at


def _add_session(db: Database, random: Random, agent: _Agent, number: int, at: int) -> None:
    folder, branches = random.choices(_PLACES, (5, 3, 2, 1))[0]
    model = {"provider_id": agent.provider, "model_id": random.choice(agent.models)}
    session_id, end, spent = f"ses_year{number:022d}", at, 0
    title = f"{random.choice(_WORK)} {random.choice(_THINGS)}"
    metadata = {"title": title, "git_branch": random.choice(branches),
                "source": {"kind": agent.name, "id": f"year-{number}", "path": "/dev/null"}}
    db.connection.execute(
        "INSERT INTO chat_sessions (id, agent, workspace_root, model_json, metadata_json,"
        " created_at, updated_at) VALUES (?,?,?,?,?,?,?)",
        (session_id, agent.name, folder, json.dumps(model), json.dumps(metadata), at, at),
    )
    for turn in range(random.randrange(1, 6)):
        prompt, answer = (f"msg_year{number:018d}{turn:02d}{place:02d}" for place in range(2))
        took = round(random.triangular(1, 25, 3) * MINUTE_MS)
        usage = _usage(random, turn)
        spent += sum(usage.values())
        said: dict[str, Any] = {"model": model, "usage": usage}
        if agent.dollars is not None:
            said["cost_usd"] = round(agent.dollars * random.triangular(0.2, 3, 0.8), 4)
        rows = ((prompt, "user", {"origin": "human"}, end),
                (answer, "assistant", said, end + took))
        db.connection.executemany("INSERT INTO chat_messages VALUES (?,?,?,?,?,?)", [
            (message, session_id, role, json.dumps(data), when, when)
            for message, role, data, when in rows])
        _add_calls(db, random, session_id, answer, end, took)
        end += took + round(random.triangular(1, 12) * MINUTE_MS)
    db.connection.execute(
        "UPDATE chat_sessions SET updated_at = ?, total_tokens = ? WHERE id = ?",
        (end, spent, session_id))


def _usage(random: Random, turn: int) -> dict[str, int]:
    read = turn * random.randrange(9_000, 40_000)
    return {"input": random.randrange(400, 4_000), "output": random.randrange(200, 3_000),
            "reasoning": random.randrange(0, 900), "cache_read": read,
            "cache_write": random.randrange(1_000, 9_000)}


def _add_calls(
    db: Database, random: Random, session_id: str, message_id: str, at: int, took: int
) -> None:
    """Add the tool calls of an answer.

    Args:
        db: The store.
        random: Decides which.
        session_id: The session.
        message_id: The answer.
        at: When its turn began, epoch ms.
        took: How long it took, ms.
    """
    calls = random.randrange(1, 9)
    rows = []
    for index in range(calls):
        name, _, fails = random.choices(_TOOLS, [often for _, often, _ in _TOOLS])[0]
        failed = random.randrange(100) < fails
        state = "output-error" if failed else "output-available"
        data = {"type": f"tool-{name}", "toolCallId": f"{message_id}-{index}", "state": state,
                "input": {}, "errorText" if failed else "output": "made up"}
        begun = at + took * index // calls
        rows.append((f"prt{message_id[3:]}{index}", message_id, session_id, index, data["type"],
                     json.dumps(data), data["toolCallId"], state, begun,
                     begun + random.randrange(200, 9_000)))
    db.connection.executemany("INSERT INTO chat_parts VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
