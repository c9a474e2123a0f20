"""A seeded store with a long session and two shorter ones, shared by the benches.

In the list the session of ``SMALL_PARTS`` comes first, then the long one, then one of a
tenth of it. The first part of each begins with ``first_words``, the last with ``last_words``.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from store.engine.database import open_database
from tests.bench.kept import generator_key, kept_store

SESSION = "ses_000000000000bench000000000"
LAST_MESSAGE = "msg_lastlastlastlastlastlast00"
SMALL_PARTS = 100
START = 1_780_000_000_000
SEED = 20_261_127
PARTS_PER_MESSAGE = 4
_PROSE = (
    "worker retry token session index query cursor branch commit store reader writer page column "
    "the a of and to in is for on with that it was not from by at as when each"
)
_WORDS = _PROSE.split()


def first_words(parts: int) -> str:
    """Return what a session of so many parts begins with."""
    return f"Begin-of-{parts}"


def last_words(parts: int) -> str:
    """Return what the last part of a session of so many parts begins with."""
    return f"End-of-{parts}"


def long_store(parts: int) -> Path:
    """Return the kept store whose long session, ``SESSION``, has so many parts."""
    key = generator_key(sys.modules[__name__])
    return kept_store(f"long-session-{parts}", key, lambda path: write(path, parts))


def write(path: Path, parts: int) -> None:
    """Write the store to a new file.

    A third of the parts is prose, a sixth reasoning, half tool calls, of which three in a
    hundred have outputs of 800 lines; one text of a session is a line of 1 MB.
    """
    database = open_database(path, create=True)
    connection = database.connection
    connection.execute("BEGIN")
    for place, size in enumerate((parts // 10, parts, SMALL_PARTS)):
        _Session(size, START + place * 1_000, longest=size == parts).insert(connection)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


class _Session:
    def __init__(self, parts: int, end: int, *, longest: bool) -> None:
        self.parts = parts
        self.count = parts // PARTS_PER_MESSAGE
        self.longest = longest
        self.start = end - parts * 1_000
        self.id = SESSION if longest else f"ses_{parts:012x}other000000000"

    def insert(self, connection: Any) -> None:
        connection.execute(
            "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, metadata_json,"
            " created_at, updated_at) VALUES (?, 'bench', '/home/mira/bench', ?, ?, ?, ?)",
            (
                self.id, '{"provider_id":"anthropic","model_id":"sonnet"}',
                f'{{"title":"{self.parts} parts"}}', self.start, self.start + self.parts * 1_000,
            ),
        )  # fmt: skip
        connection.executemany(
            "INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, ?)", self._messages()
        )
        connection.executemany(
            "INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._parts()
        )

    def _message_id(self, number: int) -> str:
        if self.longest and number == self.count - 1:
            return LAST_MESSAGE
        return f"msg_{number:06x}{self.parts:06x}bench000000000"

    def _messages(self) -> Iterator[tuple[Any, ...]]:
        for number in range(self.count):
            at = self.start + number * PARTS_PER_MESSAGE * 1_000
            user = number % 4 == 0
            metadata = {} if user else {"usage": {"input": 12, "output": 340, "cache_read": 90_000}}
            role = "user" if user else "assistant"
            told = orjson.dumps(metadata).decode()
            yield self._message_id(number), self.id, role, told, at, at

    def _parts(self) -> Iterator[tuple[Any, ...]]:
        chance = random.Random(SEED)
        for number in range(self.parts):
            message, index = divmod(number, PARTS_PER_MESSAGE)
            data = self._data(chance, number, user=message % 4 == 0)
            state = data.get("state") if "toolCallId" in data else None
            at = self.start + number * 1_000
            yield (
                f"prt_{number:06x}{self.parts:06x}bench000000000", self._message_id(message),
                self.id, index, data["type"], orjson.dumps(data).decode(),
                data.get("toolCallId"), state, at, at + 900,
            )  # fmt: skip

    def _data(self, chance: random.Random, number: int, *, user: bool) -> dict[str, Any]:
        if number in (0, self.parts - 1):
            words = (last_words if number else first_words)(self.parts)
            text = f"{words} {_prose(chance, 30)}"
            return {"type": "text", "text": text, "state": "done"}
        if self.longest and number == self.parts // 2:
            return {"type": "text", "text": "x" * 1_000_000, "state": "done"}
        return _part(chance, number, user=user)


def _prose(chance: random.Random, words: int) -> str:
    picked = chance.choices(_WORDS, k=words)
    return " ".join(
        f"`{word}`\n\n" if position % 40 == 39 else word for position, word in enumerate(picked)
    )


def _part(chance: random.Random, number: int, *, user: bool) -> dict[str, Any]:
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
