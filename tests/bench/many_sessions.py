"""A seeded store with many sessions, in an order that is known without reading it.

Session ``number`` 0 is the newest. Its title starts with ``#0000000``, so that it is found
among the bytes that a terminal gets. Grouped by workspace the list shows 0, ``FOLDERS``,
``2 * FOLDERS``… first: the first seven groups have no children.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store.engine.database import open_database
from tests.bench.kept import generator_key, kept_store

SEED = 7
FOLDERS = 40
NEWEST = 1_795_000_000_000
GAP_MS = 60_000
WITH_MESSAGES = 4_000
"""The newest sessions have messages: those whose rows a bench puts on the screen."""
MESSAGES_EACH = 6
_VERBS = ("Fix", "Add", "Find", "Explain", "Rename", "Test", "Move", "Speed up", "Review")
_THINGS = (
    "the retry loop", "a flaky test", "the session list", "Unicode widths", "the importer",
    "login on Windows", "the CSV export", "cache keys", "the release notes", "error pages",
)  # fmt: skip
_AGENTS = (
    ("claude-code", "claude-sonnet-4-5"), ("codex", "gpt-5-codex"), ("opencode", "claude-opus-4"),
    ("gemini", "gemini-2.5-pro"),
)  # fmt: skip
Row = tuple[Any, ...]


def title_start(number: int) -> str:
    """Return what the title of a session begins with."""
    return f"#{number:07d}"


def shown_number(position: int, count: int) -> int:
    """Return the session at a position of the list as it opens, within the first groups."""
    in_group = count // FOLDERS
    return position % in_group * FOLDERS + position // in_group


def active(count: int) -> int:
    """Return how many of the sessions are not archived."""
    return count - count // 10


def session_id(number: int) -> str:
    """Return the id of a session."""
    return f"ses_{number:012x}list0000000000"


def sessions(count: int) -> Iterator[Row]:
    """Yield the rows of ``chat_sessions``, the oldest first."""
    chance = random.Random(SEED)
    for number in range(count - 1, -1, -1):
        agent, model = _AGENTS[number % FOLDERS % len(_AGENTS)]
        updated = NEWEST - number * GAP_MS
        tokens = chance.randint(2_000, 900_000)
        child = number % 50 == 7 and number + FOLDERS < count
        lineage = ',"lineage":{"kind":"subagent"}' if child else ""
        yield (
            session_id(number), agent, f"/home/mira/code/project-{number % FOLDERS:02d}",
            f'{{"provider_id":"any","model_id":"{model}"}}',
            session_id(number + FOLDERS) if child else None,
            f'{{"title":"{title_start(number)} {chance.choice(_VERBS)} {chance.choice(_THINGS)}",'
            f'"source":{{"kind":"{agent}","id":"{number:x}","path":"/{number:x}.jsonl"}},'
            f'"git_branch":"main"{lineage}}}',
            tokens, tokens // 9, tokens + tokens // 9, tokens / 400_000,
            updated - chance.randint(60_000, 9_000_000), updated,
            updated if number % 10 == 9 and not child else None,
        )  # fmt: skip


def _messages(count: int) -> Iterator[Row]:
    for number in range(min(count, WITH_MESSAGES)):
        for place in range(MESSAGES_EACH):
            at = NEWEST - number * GAP_MS - (MESSAGES_EACH - place) * 1_000
            role = "assistant" if place % 2 else "user"
            yield f"msg_{number:07x}{place:05x}list0000000000", session_id(number), role, at, at


def _parts(count: int) -> Iterator[Row]:
    for message_id, session, role, at, _ in _messages(count):
        text = f'{{"type":"text","text":"What the {role} said","state":"done"}}'
        yield "prt" + message_id[3:], message_id, session, 0, "text", text, at, at


def write(path: Path, count: int) -> None:
    """Write the store to a new file; its indexes are made after its rows."""
    connection = open_database(path, create=True).file
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master"
        " WHERE type = 'index' AND tbl_name = 'chat_sessions' AND sql IS NOT NULL"
    ).fetchall()
    connection.execute("BEGIN")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    connection.executemany(
        "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, parent_id,"
        " metadata_json, prompt_tokens, completion_tokens, total_tokens, cost_usd, created_at,"
        " updated_at, archived_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        sessions(count),
    )
    connection.executemany(
        "INSERT INTO chat_messages(id, session_id, role, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?)", _messages(count),
    )  # fmt: skip
    connection.executemany(
        'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json,'
        " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _parts(count),
    )  # fmt: skip
    for _, statement in indexes:
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def list_store(count: int) -> Path:
    """Return the kept store with so many sessions."""
    key = generator_key(sys.modules[__name__])
    return kept_store(f"sessions-{count}", key, lambda path: write(path, count))
