"""Claude Code: one usage per API message, costs from the running totals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, largest, lines, ms


def counted(root: Path) -> list[Counted]:
    return [*largest(_answers(root)), *_costs(root)]


def _files(root: Path) -> list[Path]:
    return sorted(root.glob("projects/**/*.jsonl"))


def _answers(root: Path) -> Iterator[tuple[str, Counted]]:
    for path in _files(root):
        for row in lines(path):
            message = row.get("message")
            if row.get("type") != "assistant" or not isinstance(message, dict):
                continue
            usage: dict[str, Any] = message.get("usage") or {}
            details = usage.get("output_tokens_details") or {}
            thought = details.get("thinking_tokens") or 0
            output = usage.get("output_tokens") or 0
            tokens = (
                usage.get("input_tokens") or 0, output - thought, thought,
                usage.get("cache_read_input_tokens") or 0,
                usage.get("cache_creation_input_tokens") or 0,
            )  # fmt: skip
            yield message.get("id") or row["uuid"], Counted(
                message["model"], ms(row["timestamp"]), tokens, row.get("costUSD")
            )


def _costs(root: Path) -> Iterator[Counted]:
    """Yield what each note adds to the highest total of its counter and model before it.

    A counter is known by the start of its process; a fork goes on with its parent's.
    """
    notes: list[tuple[float, int, int, dict[str, Any]]] = []
    for path in _files(root):
        at = 0
        for row in lines(path):
            at = ms(row["timestamp"]) if isinstance(row.get("timestamp"), str) else at
            if row.get("type") == "cost-state":
                notes.append((row["totalCostUSD"], at, row["startTime"], row["modelUsage"]))
    so_far: dict[tuple[int, str], float] = {}
    for _, at, counter, models in sorted(notes, key=lambda note: note[:2]):
        for model, usage in models.items():
            before = so_far.get((counter, model), 0.0)
            if usage["costUSD"] > before:
                so_far[counter, model] = usage["costUSD"]
                yield Counted(model, at, usd=usage["costUSD"] - before, answers=0)
