"""gptme: each distinct answer of a conversation's file, its branches and its whole history."""

from __future__ import annotations

from pathlib import Path

from tests.counted.answers import Counted, lines, ms


def counted(root: Path) -> list[Counted]:
    found: dict[tuple[str, str], Counted] = {}
    for path in sorted((*root.glob("*/conversation.jsonl"), *root.glob("*/branches/*.jsonl"),
                        *root.glob("*/lossless.jsonl"))):  # fmt: skip
        for row in lines(path):
            if row["role"] != "assistant":
                continue
            metadata = row.get("metadata") or {}
            used = metadata.get("usage") or {}
            thought = used.get("reasoning_tokens", 0)
            # A fork has copies of the lines, also of those that were taken back.
            found[row["timestamp"], row["content"]] = Counted(
                metadata["model"].partition("/")[2], ms(row["timestamp"] + "+00:00"),
                (used.get("input_tokens", 0), used.get("output_tokens", 0) - thought, thought,
                 used.get("cache_read_tokens", 0), used.get("cache_creation_tokens", 0)),
                metadata.get("cost"),
            )  # fmt: skip
    return list(found.values())
