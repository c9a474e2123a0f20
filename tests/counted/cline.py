"""Cline: of sessions the metrics of each message once; of tasks what each request counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.counted.answers import Counted, largest, parted


def counted(root: Path) -> list[Counted]:
    return largest([*_sessions(root), *_tasks(root)])


def _sessions(root: Path) -> Iterator[tuple[object, Counted]]:
    for path in sorted(root.glob("sessions/*/*.messages.json")):
        for message in json.loads(path.read_text())["messages"]:
            if message["role"] != "assistant" or "metadata" in message:
                continue
            used = message.get("metrics", {})
            given, said, read, write = (used[f"{name}Tokens"] for name in (
                "input", "output", "cacheRead", "cacheWrite"))
            tokens = parted(given, said, read=read, write=write)
            yield message["id"], Counted(
                message["modelInfo"]["id"], message["ts"], tokens, used.get("cost"))


def _tasks(root: Path) -> Iterator[tuple[object, Counted]]:
    is_cline = not root.name.startswith(("roo", "kilo"))
    for path in sorted(root.glob("tasks/*/ui_messages.json")):
        history = json.loads(path.with_name("api_conversation_history.json").read_text())
        for place, message in enumerate(json.loads(path.read_text())):
            if message.get("say") != "api_req_started":
                continue
            used = json.loads(message["text"])
            read, write = used["cacheReads"], used["cacheWrites"]
            info = message.get("modelInfo", {})
            whole = not is_cline or info["providerId"] != "anthropic"
            given = used["tokensIn"] + (0 if whole else read + write)
            model = info.get("modelId") or _named(history, message["ts"])
            tokens = parted(given, used["tokensOut"], read=read, write=write)
            yield (path, place), Counted(model, message["ts"], tokens, used["cost"] or None)


def _named(history: list[dict[str, object]], at: int) -> str:
    """Return the model that Kilo named in the last message before a request."""
    model = "unknown"
    for message in history:
        text = json.dumps(message["content"])
        if message["role"] == "user" and int(str(message["ts"])) <= at and "<model>" in text:
            model = text.rpartition("<model>")[2].partition("</model>")[0]
    return model
