"""Copilot CLI: usage records and the requests for summaries, once an event id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.counted.answers import Counted, largest, lines, ms, parted


def counted(root: Path) -> list[Counted]:
    return largest(_answers(root))


def _answers(root: Path) -> Iterator[tuple[object, Counted]]:
    for path in sorted(root.glob("session-state/*/events.jsonl")):
        for event in lines(path):
            data = event.get("data") or {}
            used = data.get("usage") or data.get("compactionTokensUsed")
            if used is None:
                continue
            tokens = parted(
                used["inputTokens"], used["outputTokens"], reasoning=used.get("reasoningTokens", 0),
                read=used["cacheReadTokens"], write=used["cacheWriteTokens"],
            )  # fmt: skip
            yield event["id"], Counted(used["model"], ms(event["timestamp"]), tokens)
