"""y-agent: the answers of both transcripts of a session, once a message id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.counted.answers import Counted, largest, lines, ms


def counted(root: Path) -> list[Counted]:
    return largest(_answers(root))


def _answers(root: Path) -> Iterator[tuple[object, Counted]]:
    for path in sorted(root.glob("transcripts/*.jsonl")):
        for row in lines(path):
            if row["role"] != "assistant":
                continue
            said = row["metadata"]
            tokens = (said.get("input_tokens", 0), said.get("output_tokens", 0), 0,
                      said.get("cache_read_tokens", 0), said.get("cache_write_tokens", 0))
            stamp = row["timestamp"][:23] + "Z"
            yield row["message_id"], Counted(
                said.get("model", "unknown"), ms(stamp), tokens, said.get("cost_usd")
            )
