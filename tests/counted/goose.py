"""Goose: per session and bucket the larger of the ledger's sum and the running total."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from tests.counted.answers import Counted, lines, ms, rows

Tokens = tuple[int, int, int, int, int]


def counted(root: Path) -> list[Counted]:
    """Return tokens and costs; how many answers there were, the files do not tell."""
    path = root / "sessions.db"
    ledgers = defaultdict(list)
    for row in rows(path, "SELECT * FROM usage_ledger"):
        ledgers[row["session_id"]].append(row)
    found: list[Counted] = []
    ids = set()
    for session in rows(path, "SELECT * FROM sessions"):
        ids.add(session["id"])
        model = json.loads(session["model_config_json"] or "{}").get("model_name", "unknown")
        at = ms(session["created_at"] + "+00:00")
        told = _buckets([session[f"accumulated_{name}"] or 0 for name in _NAMES])
        noted = [
            Counted(row["model"] or model, row["created_timestamp"] * 1000,
                    _buckets([row[name] or 0 for name in _NAMES]), row["cost"], answers=0)
            for row in ledgers[session["id"]]
        ]  # fmt: skip
        found += noted
        one, two, three, four, five = (
            max(0, whole - sum(each.tokens[place] for each in noted))
            for place, whole in enumerate(told)
        )
        usd = (session["accumulated_cost"] or 0.0) - sum(each.usd or 0.0 for each in noted)
        if any((one, two, three, four, five)) or usd > 1e-9:
            found.append(Counted(model, at, (one, two, three, four, five),
                                 usd if usd > 1e-9 else None, answers=0))  # fmt: skip
    for older in sorted(root.glob("*.jsonl")):
        first, *said = lines(older)
        if older.stem not in ids:
            used = _buckets([first.get(f"accumulated_{name}") or 0 for name in _NAMES])
            found.append(Counted("unknown", said[-1]["created"] * 1000, used, answers=0))
    return found


_NAMES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def _buckets(values: list[int]) -> Tokens:
    given, output, read, written = values
    return given - read - written, output, 0, read, written
