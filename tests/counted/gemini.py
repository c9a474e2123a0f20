"""Gemini CLI: each model's message once, however often the file repeats it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, largest, lines, ms, parted


def counted(root: Path) -> list[Counted]:
    return largest(_answers(root))


def _answers(root: Path) -> Iterator[tuple[str, Counted]]:
    told: set[str] = set()
    paths = [*root.glob("tmp/*/chats/**/*.jsonl"), *root.glob("tmp/*/chats/**/*.json")]
    for path in sorted(paths):
        model = "unknown"
        for message in _messages(path):
            if message.get("type") != "gemini":
                continue
            used = message.get("tokens") or {}
            said = _said(message)
            if not used and said in told:
                continue  # The history told again after a resume, with new ids.
            told.add(said)
            model = message.get("model") or model
            tokens = parted(used.get("input", 0) + used.get("tool", 0), used.get("output", 0),
                            read=used.get("cached", 0))  # fmt: skip
            tokens = (*tokens[:2], used.get("thoughts", 0), *tokens[3:])
            yield message["id"], Counted(
                message.get("model") or model, ms(message["timestamp"]), tokens
            )


def _said(message: dict[str, Any]) -> str:
    """Return the words of a message and the tools that it called."""
    content = message.get("content") or ""
    if isinstance(content, str):
        calls = [call["name"] for call in message.get("toolCalls") or ()]
        return "|".join(filter(None, [content, *calls]))
    pieces = [one.get("text") or (one.get("functionCall") or {}).get("name")
              for one in content if not one.get("thought")]  # fmt: skip
    return "|".join(filter(None, pieces))


def _messages(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".json":
        yield from json.loads(path.read_text())["messages"]
        return
    for row in lines(path):
        yield row
        yield from (row.get("$set") or {}).get("messages") or ()
