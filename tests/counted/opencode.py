"""opencode and Kilo: the steps of messages that are no copies in a fork."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, rows


def counted(root: Path) -> list[Counted]:
    if root.is_dir() and not list(root.glob("*.db")):
        return _older(root)
    (path,) = [root] if root.is_file() else root.glob("*.db")
    # Kilo adds to a message what the subagent that it called cost; a step has its own cost alone.
    cost = "SELECT sum(p.data ->> '$.cost') FROM part p WHERE p.message_id = m.id" \
           " AND p.data ->> '$.type' = 'step-finish'"  # fmt: skip
    found = rows(path, f"SELECT m.data, ({cost}) FROM message m JOIN session s"
                       " ON s.id = m.session_id WHERE m.time_created >= s.time_created"
                       " AND m.data ->> '$.role' = 'assistant'")  # fmt: skip
    return [replace(_answer(json.loads(data)), usd=usd) for data, usd in found]


def _older(root: Path) -> list[Counted]:
    """Return the answers of a store of files: an early message has its last step's tokens alone."""
    found = []
    for path in [*root.glob("storage/message/*/*.json"),
                 *root.glob("project/*/storage/session/message/*/*.json")]:  # fmt: skip
        info = json.loads(path.read_text())
        if info["role"] != "assistant":
            continue
        storage, message = path.parents[2], path.stem
        parts = [json.loads(part.read_text()) for part in storage.glob(f"part/**/{message}/*.json")]
        steps = [_answer(info | part) for part in parts if part["type"] == "step-finish"]
        answer = _answer(info)
        if steps:
            sums = [sum(values) for values in zip(*(step.tokens for step in steps), strict=True)]
            one, two, three, four, five = sums
            answer = replace(answer, tokens=(one, two, three, four, five),
                             usd=sum(step.usd or 0.0 for step in steps))  # fmt: skip
        found.append(answer)
    return found


def _answer(info: dict[str, Any]) -> Counted:
    tokens = info["tokens"]
    return Counted(
        info["modelID"], info["time"]["created"],
        (tokens["input"], tokens["output"], tokens["reasoning"], tokens["cache"]["read"],
         tokens["cache"]["write"]),
        info["cost"],
    )  # fmt: skip
