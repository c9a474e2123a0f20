"""A seeded store with one long session, kept in the cache folder and shared by the benches."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from store.database import open_database

SESSION = "ses_000000000000bench000000000"
LAST_MESSAGE = "msg_lastlastlastlastlastlast00"
START = 1_780_000_000_000
SEED = 20_261_127
PARTS_PER_MESSAGE = 4
_WORDS = [
    "worker",
    "retry",
    "token",
    "session",
    "index",
    "query",
    "cursor",
    "branch",
    "commit",
    "store",
    "reader",
    "writer",
    "page",
    "column",
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "is",
    "for",
    "on",
    "with",
    "that",
    "it",
    "was",
    "not",
    "from",
    "by",
    "at",
    "as",
    "when",
    "each",
]


def make_store(path: Path, parts: int) -> Path:
    """Make the store where it is missing: one session of so many parts.

    A third of the parts is prose, a sixth reasoning, half tool calls, of which three in a
    hundred have outputs of 800 lines; one text is a line of 1 MB.
    """
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    database = open_database(partial, create=True)
    connection = database.connection
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, metadata_json,"
        " created_at, updated_at) VALUES (?, 'bench', '/home/mira/bench', ?, ?, ?, ?)",
        (
            SESSION,
            '{"provider_id":"anthropic","model_id":"sonnet"}',
            f'{{"title":"A session of {parts} parts"}}',
            START,
            START + parts * 1000,
        ),
    )
    connection.executemany("INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, ?)", _messages(parts))
    connection.executemany(
        "INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _parts(parts)
    )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    partial.rename(path)
    return path


def _message_id(number: int, count: int) -> str:
    return LAST_MESSAGE if number == count - 1 else f"msg_{number:012x}bench000000000"


def _messages(parts: int) -> Iterator[tuple[Any, ...]]:
    count = parts // PARTS_PER_MESSAGE
    for number in range(count):
        at = START + number * PARTS_PER_MESSAGE * 1000
        user = number % 4 == 0
        metadata = {} if user else {"usage": {"input": 12, "output": 340, "cache_read": 90_000}}
        role = "user" if user else "assistant"
        yield (_message_id(number, count), SESSION, role, orjson.dumps(metadata).decode(), at, at)


def _parts(parts: int) -> Iterator[tuple[Any, ...]]:
    chance = random.Random(SEED)
    count = parts // PARTS_PER_MESSAGE
    for number in range(parts):
        message, index = divmod(number, PARTS_PER_MESSAGE)
        data = _part(chance, number, user=message % 4 == 0, giant=number == parts // 2)
        at = START + number * 1000
        yield (
            f"prt_{number:012x}bench000000000", _message_id(message, count), SESSION, index,
            data["type"], orjson.dumps(data).decode(), data.get("toolCallId"), data.get("state")
            if "toolCallId" in data else None, at, at + 900,
        )  # fmt: skip


def _prose(chance: random.Random, words: int) -> str:
    picked = chance.choices(_WORDS, k=words)
    return " ".join(
        f"`{word}`\n\n" if position % 40 == 39 else word for position, word in enumerate(picked)
    )


def _part(chance: random.Random, number: int, *, user: bool, giant: bool) -> dict[str, Any]:
    if giant:
        return {"type": "text", "text": "x" * 1_000_000, "state": "done"}
    kind = chance.random()
    if user or kind < 0.35:
        return {"type": "text", "text": _prose(chance, chance.randint(20, 160)), "state": "done"}
    if kind < 0.5:
        return {"type": "reasoning", "text": _prose(chance, 120), "state": "done"}
    lines = 800 if chance.random() < 0.03 else chance.randint(3, 60)
    output = "\n".join(
        f"{n:4} {chance.choice(_WORDS)} = {chance.random():.6f}" for n in range(lines)
    )
    return {
        "type": "tool-Bash",
        "toolCallId": f"call_{number}",
        "state": "output-available",
        "input": {"command": f"grep -n {chance.choice(_WORDS)} src/part_{number}.py"},
        "output": output,
    }
