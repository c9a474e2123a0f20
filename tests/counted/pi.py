"""pi: the usage of every answer; forks copy entries with their ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.counted.answers import Counted, largest, lines, ms


def counted(root: Path) -> list[Counted]:
    return largest(_answers(root))


def _answers(root: Path) -> Iterator[tuple[object, Counted]]:
    for path in sorted(root.glob("**/*.jsonl")):
        model = "unknown"
        for row in lines(path):
            message = row.get("message") or row
            # A summary does not say who wrote it: the model that was chosen then.
            model = message.get("model") or row.get("modelId") or model
            used = message.get("usage")
            if not used:
                continue
            thought = used.get("reasoning", 0)
            yield row["id"], Counted(
                model, ms(row["timestamp"]),
                (used["input"], used["output"] - thought, thought, used["cacheRead"],
                 used["cacheWrite"]),
                used["cost"]["total"],
            )  # fmt: skip
