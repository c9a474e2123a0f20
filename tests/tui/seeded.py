"""Small stores made for the transcript's tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.engine.database import open_database

START = 1_795_000_000_000
SESSION = "ses_000000000000000000000000aa"


@dataclass
class Said:
    """One message: a role, its parts, its metadata."""

    role: str
    parts: list[dict[str, Any]]
    metadata: dict[str, Any] = field(default_factory=dict)
    at: int | None = None


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool(
    name: str, given: Any, output: Any = None, *, state: str = "output-available",
    call: str = "call_1", **extra: Any,
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": f"tool-{name}", "toolCallId": call, "state": state, "input": given,
    }
    if output is not None:
        data["errorText" if state == "output-error" else "output"] = output
    if extra:
        data["resultProviderMetadata"] = {"backscroll": extra}
    return data


def make_store(
    path: Path, said: list[Said], *, session_id: str = SESSION,
    session: dict[str, Any] | None = None,
) -> Path:
    """Write a session; messages stand one second apart, parts last half a second."""
    database = open_database(path, create=True)
    connection = database.connection
    columns = {
        "id": session_id, "agent": "claude-code", "workspace_root": "/srv/api",
        "model_json": '{"provider_id":"anthropic","model_id":"claude-sonnet-4-5-20250929"}',
        "metadata_json": '{"title":"A session"}', "created_at": START, "updated_at": START,
        **(session or {}),
    }
    connection.execute("BEGIN")
    connection.execute(
        f"INSERT INTO chat_sessions ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})",
        list(columns.values()),
    )
    for number, message in enumerate(said):
        at = message.at if message.at is not None else START + number * 1000
        message_id = f"msg_{session_id[-2:]}{number:024d}"
        connection.execute(
            "INSERT INTO chat_messages VALUES (?,?,?,?,?,?)",
            (message_id, session_id, message.role, json.dumps(message.metadata), at, at),
        )
        connection.executemany(
            "INSERT INTO chat_parts VALUES (?,?,?,?,?,?,?,?,?,?)",
            [
                (f"prt_{session_id[-2:]}{number:018d}{index:06d}", message_id, session_id, index,
                 part["type"], json.dumps(part, ensure_ascii=False), part.get("toolCallId"),
                 part.get("state"), at, at + (500 if "toolCallId" in part else 0))
                for index, part in enumerate(message.parts)
            ],
        )
    connection.execute("COMMIT")
    database.close()
    return path


def message_id(number: int, session_id: str = SESSION) -> str:
    return f"msg_{session_id[-2:]}{number:024d}"


def long_talk(turns: int) -> list[Said]:
    """Turns of a prompt, and an answer with reasoning, words and two calls."""
    said: list[Said] = []
    for turn in range(turns):
        said.append(Said("user", [text(f"Prompt {turn}: please look at case {turn}.")]))
        said.append(Said("assistant", [
            {"type": "reasoning", "text": f"Thinking about case {turn}. " * (turn % 7 + 1)},
            text(f"Answer {turn}. " + "Some words that wrap over lines. " * (turn % 11)),
            tool("Read", {"file_path": f"/srv/api/src/file{turn}.py"},
                 "\n".join(f"line {n}" for n in range(turn % 30 + 1)), call=f"r{turn}"),
            tool("Bash", {"command": f"pytest -q tests/case{turn}"},
                 "\n".join(f"out {n} of {turn}" for n in range(turn % 13 + 1)),
                 call=f"b{turn}",
                 status="error" if turn % 50 == 49 else "ok"),
        ]))
    return said
