"""Amp: the usage of each answer behind a fork's point."""

from __future__ import annotations

import json
from pathlib import Path

from tests.counted.answers import Counted, ms


def counted(root: Path) -> list[Counted]:
    found = []
    for path in sorted(root.glob("T-*.json")):
        thread = json.loads(path.read_text())
        at, model = thread["created"], "unknown"
        own = thread.get("forkPointIndex", -1) + 1
        for place, message in enumerate(thread["messages"]):
            at = (message.get("meta") or {}).get("sentAt") or at
            if message["role"] != "assistant":
                continue
            used = message.get("usage") or {}
            at = ms(used["timestamp"]) if used.get("timestamp") else at
            model = used.get("model") or model
            if place >= own:
                found.append(Counted(model, at, (
                    used.get("inputTokens") or 0, used.get("outputTokens") or 0, 0,
                    used.get("cacheReadInputTokens") or 0,
                    used.get("cacheCreationInputTokens") or 0,
                )))  # fmt: skip
    return found
