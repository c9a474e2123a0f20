"""The hub: what each assistant message says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, rows


def counted(path: Path) -> list[Counted]:
    found = rows(path, "SELECT data FROM messages WHERE role = 'assistant'")
    return [_answer(json.loads(data)) for (data,) in found]


def _answer(info: dict[str, Any]) -> Counted:
    tokens = info.get("tokens") or {}
    cache = tokens.get("cache") or {}
    return Counted(
        info["modelID"], info["time"]["created"],
        (tokens.get("input", 0), tokens.get("output", 0), tokens.get("reasoning", 0),
         cache.get("read", 0), cache.get("write", 0)),
        info.get("cost"),
    )  # fmt: skip
