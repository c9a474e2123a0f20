"""Zed: the running total of each thread, at its last save; else the sum of its requests."""

from __future__ import annotations

import io
import json
from pathlib import Path

import zstandard

from tests.counted.answers import Counted, ms, rows

_NAMES = ("input_tokens", "output_tokens", "reasoning", "cache_read_input_tokens",
          "cache_creation_input_tokens")  # fmt: skip


def counted(root: Path) -> list[Counted]:
    """Return the answers of each thread, and its tokens as one more answer."""
    found: list[Counted] = []
    for row in rows(root / "threads" / "threads.db", "SELECT * FROM threads"):
        try:
            thread = json.loads(_unpacked(row["data"]) if row["data_type"] == "zstd"
                                else row["data"])  # fmt: skip
        except zstandard.ZstdError:
            continue
        answers = [one for one in thread["messages"] if "Agent" in one
                   or isinstance(one, dict) and one.get("role") == "assistant"]  # fmt: skip
        at, model = ms(row["created_at"]), (thread.get("model") or {}).get("model", "unknown")
        found += [Counted(model, at) for _ in answers]
        used = thread.get("cumulative_token_usage") or {}
        one, two, three, four, five = (used.get(name, 0) for name in _NAMES)
        if used:
            found.append(Counted(model, ms(row["updated_at"]),
                                 (one, two, three, four, five)))  # fmt: skip
    return found


def _unpacked(body: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(body)).read()
