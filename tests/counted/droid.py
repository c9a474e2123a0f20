"""Factory Droid: answers once a message id; tokens of whole sessions, less a parent's."""

from __future__ import annotations

import json
from pathlib import Path

from tests.counted.answers import Counted, largest, lines, ms


def counted(root: Path) -> list[Counted]:
    answers: list[tuple[object, Counted]] = []
    used: dict[str, list[int]] = {}
    last: dict[str, Counted] = {}
    parents: dict[str, str] = {}
    for path in sorted(root.glob("**/*.jsonl")):
        settings = json.loads(path.with_suffix(".settings.json").read_text())
        usage = settings.get("tokenUsage") or {}
        at = 0
        for row in lines(path):
            at = ms(row["timestamp"]) if "timestamp" in row else at
            if row["type"] == "session_start" and "forkedAtMessageId" not in row:
                parents[path.stem] = row.get("parent", "")
            message = row.get("message") or {}
            if message.get("role") == "assistant" and message.get("visibility") != "user_only":
                model = message.get("modelId") or settings["model"]
                answers.append((row["id"], Counted(model, at)))
        thought = usage.get("thinkingTokens", 0)
        used[path.stem] = [
            usage.get("inputTokens", 0), usage.get("outputTokens", 0) - thought, thought,
            usage.get("cacheReadTokens", 0), usage.get("cacheCreationTokens", 0),
        ]  # fmt: skip
        last[path.stem] = Counted(settings["model"], at, answers=0)
    found = largest(answers)
    for name, tokens in used.items():
        # What /compress makes goes on with the numbers of its parent.
        before = used.get(parents.get(name, ""), [0] * 5)
        one, two, three, four, five = (a - b for a, b in zip(tokens, before, strict=True))
        # No answer has numbers of its own; the library has the session's as one more answer.
        found.append(Counted(last[name].model, last[name].at, (one, two, three, four, five),
                             answers=int(any((one, two, three, four, five)))))  # fmt: skip
    return found
