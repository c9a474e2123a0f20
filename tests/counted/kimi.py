"""Kimi Code: each usage record after the last copied line, with the model that was asked."""

from __future__ import annotations

from pathlib import Path

from tests.counted.answers import Counted, lines


def counted(root: Path) -> list[Counted]:
    found: list[Counted] = []
    for path in root.glob("*/*/agents/*/wire.jsonl"):
        model, own = "unknown", list[Counted]()
        for row in lines(path):
            if row["type"] == "llm.request":
                model = row["model"]
            elif row["type"] == "forked":
                own = []
            elif row["type"] == "usage.record":
                used = row["usage"]
                own.append(Counted(model, row["time"], (
                    used["inputOther"], used["output"], 0, used["inputCacheRead"],
                    used["inputCacheCreation"])))  # fmt: skip
        found += own
    return found
