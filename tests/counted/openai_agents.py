"""OpenAI Agents SDK: what the model made between prompts and results, and the usage of turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, ms, parted, rows


def counted(root: Path) -> list[Counted]:
    found: list[Counted] = []
    items = [(row, json.loads(row["message_data"])) for row in rows(
        root, "SELECT * FROM agent_messages ORDER BY session_id, id")]  # fmt: skip
    # Only chat-completions models are named: other answers of a session are counted with them.
    named = {row["session_id"]: item["provider_data"]["model"] for row, item in items
             if "provider_data" in item}  # fmt: skip
    before: tuple[Any, Any] | None = None
    for row, item in items:
        told = item.get("provider_data") or {}
        made = item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")
        now = (row["session_id"], told.get("response_id")) if made else None
        if now is not None and now != before:
            found.append(Counted(
                named.get(row["session_id"], "unknown"), ms(f"{row['created_at']}+00:00")))
        before = now
    tables = {row[0] for row in rows(root, "SELECT name FROM sqlite_master")}
    for row in rows(root, "SELECT * FROM turn_usage") if "turn_usage" in tables else ():
        given, said = (json.loads(row[f"{side}_tokens_details"]) for side in ("input", "output"))
        tokens = parted(row["input_tokens"], row["output_tokens"], read=given["cached_tokens"],
                        reasoning=said["reasoning_tokens"])  # fmt: skip
        # What several requests used together is of no one answer.
        found.append(Counted(named.get(row["session_id"], "unknown"), ms(
            f"{row['created_at']}+00:00"), tokens, answers=int(row["requests"] > 1)))  # fmt: skip
    return found
