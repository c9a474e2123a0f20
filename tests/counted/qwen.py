"""Qwen Code: every answer's usage; from the telemetry, requests that no answer of a file counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, lines, ms


def counted(root: Path) -> list[Counted]:
    found = [one for path in root.glob("projects/**/*.jsonl") for one in _of_records(path)]
    for path in root.glob("tmp/*/chats/session-*.json"):
        for row in json.loads(path.read_text())["messages"]:
            if row["type"] == "qwen":
                used = row["tokens"]
                found.append(Counted(row["model"], ms(row["timestamp"]), _buckets(
                    used["input"], used["cached"], used["output"], used["thoughts"])))
    return found


def _of_records(path: Path) -> Iterator[Counted]:
    agents = path.parent.parent / "subagents" / path.stem
    model = "unknown"
    beside = path.with_suffix(".meta.json")
    if beside.exists():
        model = json.loads(beside.read_text())["model"]
    for row in lines(path):
        if "forkedFrom" in row:
            continue
        at = ms(row["timestamp"])
        if row["type"] == "assistant":
            yield Counted(row.get("model") or model, at, _used(row.get("usageMetadata") or {}))
        event = (row.get("systemPayload") or {}).get("uiEvent") or {}
        is_answered = "########" in event.get("prompt_id", "########")
        is_counted = (agents / f"agent-{event.get('subagent_id')}.jsonl").exists()
        if event.get("event.name") == "qwen-code.api_response" and not (is_answered or is_counted):
            yield Counted(event["model"], at, _buckets(
                event["input_token_count"], event["cached_content_token_count"],
                event["output_token_count"], event["thoughts_token_count"]))


def _used(used: dict[str, Any]) -> tuple[int, int, int, int, int]:
    return _buckets(*(used.get(key, 0) for key in (
        "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount",
        "thoughtsTokenCount")))


def _buckets(prompt: int, cached: int, answer: int, thoughts: int) -> tuple[
    int, int, int, int, int]:  # fmt: skip
    return prompt - cached, answer - thoughts, thoughts, cached, 0
