"""A small store for the inspector's tests: seeded, always the same."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import zstandard

from store.engine.database import Database, open_database

START = 1_700_000_000_000


@dataclass
class Talk:
    """Writes one session row by row."""

    db: Database
    session_id: str = "ses_inspected"
    at: int = START
    count: int = 0
    parts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        metadata = {
            "title": "Inspected", "git_branch": "main",
            "source": {"kind": "claude-code", "id": "abc", "path": "/tmp/abc.jsonl"},
        }
        self.db.connection.execute(
            "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, permissions_json,"
            " metadata_json, prompt_tokens, completion_tokens, reasoning_tokens, cache_read,"
            " cache_write, total_tokens, cost_usd, created_at, updated_at)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (self.session_id, "claude-code", "/home/x/api",
             json.dumps({"provider_id": "anthropic", "model_id": "sonnet", "variant": "high"}),
             json.dumps([{"permission": "bash", "pattern": "git *", "action": "allow"}]),
             json.dumps(metadata), 100, 200, 50, 600, 50, 1000, 0.5, self.at, self.at + 60_000),
        )

    def message(self, role: str, *parts: dict[str, Any], **metadata: Any) -> str:
        self.count += 1
        message_id = f"msg_{self.session_id[4:]}_{self.count:05}"
        self.at += 1_000
        self.db.connection.execute(
            "INSERT INTO chat_messages VALUES (?,?,?,?,?,?)",
            (message_id, self.session_id, role, json.dumps(metadata), self.at, self.at),
        )
        for index, data in enumerate(parts):
            took = data.pop("took", 0)
            self.db.connection.execute(
                'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json,'
                " tool_call_id, tool_state, created_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?)",
                (f"prt_{message_id[4:]}_{index}", message_id, self.session_id, index,
                 data["type"], orjson.dumps(data).decode(), data.get("toolCallId"),
                 data.get("state"), self.at, self.at + took),
            )
        return message_id

    def records(self, message_id: str, *texts: str) -> None:
        raw = "\n".join(texts).encode()
        self.db.connection.execute(
            "INSERT INTO original_records(session_id, first, count, checksum, body)"
            " VALUES (?, 0, ?, 0, ?)",
            (self.session_id, len(texts), zstandard.ZstdCompressor().compress(raw)),
        )
        refs = [[number] for number in range(len(texts))]
        self.db.connection.execute(
            "INSERT INTO record_refs VALUES (?, ?)", (message_id, json.dumps([*refs, []]))
        )

    def attach(self, name: str, body: bytes) -> None:
        self.db.connection.execute(
            "INSERT INTO attachments VALUES (?, ?, 'text/plain', ?, ?)",
            (self.session_id, name, len(body), zstandard.ZstdCompressor().compress(body)),
        )


def text(body: str) -> dict[str, Any]:
    return {"type": "text", "text": body, "state": "done"}


def bash(command: str, output: str, exit_code: int = 0, **extras: Any) -> dict[str, Any]:
    status = "error" if exit_code else "ok"
    own = {"status": status, "exit_code": exit_code, "duration_ms": 3200, **extras}
    return {
        "type": "tool-Bash", "toolCallId": "toolu_01mdGEHb0000000000NyyF",
        "state": "output-available", "input": {"command": command, "timeout": 120000},
        "output": output, "resultProviderMetadata": {"backscroll": own}, "took": 3200,
    }


USAGE = {"input": 10, "output": 20, "reasoning": 5, "cache_read": 60, "cache_write": 5}
OUTPUT = "\n".join(f"line {number}" for number in range(38)) + "\nE   assert GiveUp\n"


def make_store(path: Path) -> Talk:
    """Make a library with a session, see ``fill_store``."""
    return fill_store(open_database(path, create=True))


def fill_store(db: Database) -> Talk:
    """Return a session with a prompt, an answer with three parts, and a second turn."""
    talk = Talk(db)
    talk.message("user", text("Find out why.\n\n```py\nprint(1)\n```"), origin="human")
    answer = talk.message(
        "assistant", text("I will **look**."), bash("pytest -q tests/sync", OUTPUT, 1),
        {"type": "data-weather", "data": {"sky": "blue"}},
        usage=USAGE, model={"provider_id": "anthropic", "model_id": "sonnet"},
        backscroll={"cost_usd": 0.25}, system_prompt_digest="d1",
    )
    talk.records(answer, '{"type":"assistant","n":1}', "no json at all", '{"n":3}')
    talk.message("user", text("meta"), origin="meta")
    talk.message("assistant", text("More."), usage=USAGE, system_prompt_digest="d1")
    talk.message("user", text("Second prompt"), origin="human")
    talk.message("assistant", text("Done."), usage=USAGE, system_prompt_digest="d2")
    talk.db.connection.execute("INSERT INTO system_prompts VALUES ('d1', 'You are **calm**.')")
    return talk


def make_long(path: Path, turns: int, seed: int = 7) -> Talk:
    """Return a session of many turns with tool calls, some of which fail."""
    chance = random.Random(seed)
    talk = Talk(open_database(path, create=True))
    talk.db.connection.execute("BEGIN")
    for number in range(turns):
        talk.message("user", text(f"Prompt {number + 1}"), origin="human")
        calls = [bash("make", "ok") for _ in range(chance.randint(0, 3))]
        if number % 10 == 0:
            calls.append({"type": "dynamic-tool", "toolName": "fetch", "toolCallId": "c",
                          "state": "output-error", "errorText": "gone"})
        talk.message("assistant", *calls, text("Done."), usage=USAGE)
    talk.db.connection.execute("COMMIT")
    return talk


def part_id(talk: Talk, message: int, index: int) -> str:
    return f"prt_{talk.session_id[4:]}_{message:05}_{index}"
