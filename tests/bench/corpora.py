"""The same seeded conversations as ``claude_corpus`` makes, as trees of Codex and opencode.

Each row with a message becomes what the agent writes for it: lines of a rollout with the
events around them, or rows of ``message`` and ``part``.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.bench import claude_corpus
from tests.bench.claude_corpus import Conversation

_OPENCODE = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text,
    time_created integer NOT NULL, time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
    slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer,
    time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session ON message(session_id, time_created, id);
CREATE INDEX part_message ON part(message_id, id);
CREATE INDEX part_session ON part(session_id);
"""


class Corpus(NamedTuple):
    """A tree of sessions of one agent.

    Attributes:
        kind: The source's kind.
        make: Writes so many sessions of so many rows below a folder where they are not there
            whole yet, and returns their bytes.
    """

    kind: str
    make: Callable[[Path, int, int], int]


def _made_once(
    write: Callable[[Path, int, int], int],
) -> Callable[[Path, int, int], int]:
    def make(folder: Path, files: int, rows: int) -> int:
        done, wanted = folder / "made", f"1 {files} {rows}\n"
        if done.exists() and done.read_text().startswith(wanted):
            return int(done.read_text().split("\n")[1])
        total = write(folder, files, rows)
        done.write_text(f"{wanted}{total}\n")
        return total

    return make


def _at(row: dict[str, Any]) -> int:
    return round(datetime.fromisoformat(row["timestamp"]).timestamp() * 1000)


def write_codex(folder: Path, files: int, rows: int) -> int:
    """Write a Codex home of so many rollouts; return their bytes.

    Args:
        folder: Takes the place of ``~/.codex``.
        files: Sessions.
        rows: Rows with a message, of each session.
    """
    total = 0
    for number in range(files):
        made = claude_corpus.conversation(1, number, rows)
        begun = datetime.fromisoformat(made.rows[0]["timestamp"])
        stamp = round(begun.timestamp() * 1000)
        name = str(uuid.UUID(int=(stamp << 80) | (7 << 76) | (2 << 62) | number))
        place = folder / "sessions" / begun.strftime("%Y/%m/%d")
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"rollout-{begun.strftime('%Y-%m-%dT%H-%M-%S')}-{name}.jsonl"
        lines = [
            orjson.dumps({"timestamp": time, "ordinal": place, "type": kind, "payload": payload})
            for place, (time, kind, payload) in enumerate(_rollout(made, name))
        ]
        total += path.write_bytes(b"\n".join(lines) + b"\n")
        os.utime(path, ns=(made.at_ms * 1_000_000,) * 2)
    return total


def _rollout(made: Conversation, name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield time, type and payload of each line."""
    yield made.rows[0]["timestamp"], "session_meta", {
        "id": name, "timestamp": made.rows[0]["timestamp"], "cwd": made.folder,
        "originator": "codex_cli_rs", "cli_version": "0.171.0", "source": "cli",
        "model_provider": "openai", "history_mode": "paginated",
    }  # fmt: skip
    for number, row in enumerate(made.rows):
        time, content = row["timestamp"], row["message"]["content"]
        if isinstance(content, str):
            turn = {"turn_id": row["uuid"], "cwd": made.folder, "model": "gpt-5.5"}
            yield time, "event_msg", {"type": "task_started", "turn_id": row["uuid"]}
            yield time, "turn_context", turn
        for block in [{"type": "prompt", "text": content}] if isinstance(content, str) else content:
            yield time, "response_item", _item(block)
            if block["type"] == "prompt":
                yield time, "event_msg", {"type": "user_message", "message": content}
        usage = row["message"].get("usage")
        if usage is not None and _is_last(made.rows, number):
            counted = {
                "input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"],
                "cached_input_tokens": usage["cache_read_input_tokens"],
                "output_tokens": usage["output_tokens"], "reasoning_output_tokens": 0,
            }  # fmt: skip
            counted["total_tokens"] = counted["input_tokens"] + counted["output_tokens"]
            yield time, "token_usage_record", {
                "thread_id": name, "response_id": row["message"]["id"], "usage": counted,
            }


def _item(block: dict[str, Any]) -> dict[str, Any]:
    kind = block["type"]
    if kind == "thinking":
        said = [{"type": "summary_text", "text": block["thinking"]}]
        return {"type": "reasoning", "summary": said, "encrypted_content": block["signature"]}
    if kind == "tool_use":
        arguments = orjson.dumps(block["input"]).decode()
        return {"type": "function_call", "name": block["name"], "arguments": arguments,
                "call_id": block["id"]}  # fmt: skip
    if kind == "tool_result":
        return {"type": "function_call_output", "call_id": block["tool_use_id"],
                "output": block["content"]}  # fmt: skip
    role, text = ("user", "input_text") if kind == "prompt" else ("assistant", "output_text")
    content = [{"type": text, "text": block["text"]}]
    return {"type": "message", "role": role, "content": content}


def _is_last(rows: list[dict[str, Any]], number: int) -> bool:
    """Return whether a row is the last one of its answer."""
    after = rows[number + 1]["message"].get("id") if number + 1 < len(rows) else None
    return bool(rows[number]["message"]["id"] != after)


def write_opencode(folder: Path, files: int, rows: int) -> int:
    """Write an opencode database of so many sessions; return the bytes of their rows.

    Args:
        folder: Takes the place of ``~/.local/share/opencode``.
        files: Sessions.
        rows: Rows with a message, of each session.
    """
    path, total = folder / "opencode.db", 0
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA synchronous = OFF;" + _OPENCODE)
    connection.execute("BEGIN")
    for number in range(files):
        made = claude_corpus.conversation(1, number, rows)
        project, session = f"project-{number % claude_corpus.PROJECTS:02d}", f"ses_{number:012x}"
        begun = _at(made.rows[0])
        connection.execute("INSERT OR IGNORE INTO project VALUES (?, ?, 'git', ?, ?, '[]')",
                           (project, made.folder, begun, begun))  # fmt: skip
        connection.execute(
            "INSERT INTO session VALUES (?, ?, NULL, 'slug', ?, ?, '1.18.33', ?, ?, NULL, NULL)",
            (session, project, made.folder, f"Session {number}", begun, made.at_ms),
        )
        for table, found in _rows(made, session):
            total += len(found[-1])
            marks = ", ".join("?" * len(found))
            connection.execute(f"INSERT INTO {table} VALUES ({marks})", found)
    connection.execute("COMMIT")
    connection.close()
    return total


def _rows(made: Conversation, session: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield table and values of each row of a session."""
    results = {
        block["tool_use_id"]: (_at(row), block) for row in made.rows if row["type"] == "user"
        for block in row["message"]["content"] if isinstance(block, dict)
    }  # fmt: skip
    prompt = message = ""
    for number, row in enumerate(made.rows):
        at, content, said = _at(row), row["message"]["content"], row["message"]
        if isinstance(content, str):
            prompt = message = f"msg_{session[4:]}{number:06x}"
            data: dict[str, Any] = {
                "role": "user", "time": {"created": at}, "agent": "build",
                "model": {"providerID": "anthropic", "modelID": "sonnet"},
            }  # fmt: skip
            yield "message", (message, session, at, at, _text(data))
            part = {"type": "text", "text": content}
            yield "part", (f"prt_{message[4:]}", message, session, at, at, _text(part))
        elif row["type"] == "assistant":
            if number == 0 or made.rows[number - 1]["message"].get("id") != said["id"]:
                message = f"msg_{session[4:]}{number:06x}"
                yield "message", (message, session, at, at, _text(_answer(row, at, prompt)))
            part = _part(content[0], at, results)
            yield "part", (f"prt_{session[4:]}{number:06x}", message, session, at, at, _text(part))


def _answer(row: dict[str, Any], at: int, prompt: str) -> dict[str, Any]:
    usage, reason = row["message"]["usage"], row["message"]["stop_reason"]
    read, write = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    return {
        "parentID": prompt, "role": "assistant", "mode": "build", "agent": "build",
        "path": {"cwd": row["cwd"], "root": row["cwd"]}, "cost": 0.01,
        "tokens": {"input": usage["input_tokens"], "output": usage["output_tokens"],
                   "reasoning": 0, "cache": {"read": read, "write": write}},
        "modelID": "sonnet", "providerID": "anthropic",
        "time": {"created": at, "completed": at + 100},
        "finish": "tool-calls" if reason == "tool_use" else "stop",
    }  # fmt: skip


def _part(
    block: dict[str, Any], at: int, results: dict[str, tuple[int, dict[str, Any]]]
) -> dict[str, Any]:
    time = {"start": at, "end": at + 50}
    if block["type"] == "text":
        return {"type": "text", "text": block["text"], "time": time}
    if block["type"] == "thinking":
        return {"type": "reasoning", "text": block["thinking"], "time": time}
    ended, result = results[block["id"]]
    output = result["content"]
    return {
        "type": "tool", "tool": block["name"].lower(), "callID": block["id"],
        "state": {"status": "completed", "input": block["input"], "output": output,
                  "metadata": {"output": output, "exit": 0}, "title": block["name"],
                  "time": {"start": at, "end": ended}},
    }  # fmt: skip


def _text(data: dict[str, Any]) -> str:
    return orjson.dumps(data).decode()


CLAUDE = Corpus("claude", claude_corpus.make)
CODEX = Corpus("codex", _made_once(write_codex))
OPENCODE = Corpus("opencode", _made_once(write_opencode))
