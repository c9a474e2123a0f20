"""lionagi: answers and requests that are no copies; tokens and cost of whole sessions."""

from __future__ import annotations

import json
from pathlib import Path

from tests.counted.answers import Counted, rows


def counted(path: Path) -> list[Counted]:
    found = []
    branches = rows(path, "SELECT p.collection, coalesce(b.model, s.model) AS model"
                          " FROM branches b JOIN sessions s ON s.id = b.session_id"
                          " JOIN progressions p ON p.id = b.progression_id")  # fmt: skip
    model_of = {one: row["model"] for row in branches for one in json.loads(row["collection"])}
    messages = rows(path, "SELECT id, created_at, node_metadata ->> '$.clone_from' AS origin"
                          " FROM messages WHERE lion_class IN (3, 4)")  # fmt: skip
    for row in messages:
        if row["origin"] is None and row["id"] in model_of:
            model = model_of[row["id"]].rpartition("/")[2]
            found.append(Counted(model, round(row["created_at"] * 1000)))
    for row in rows(path, "SELECT * FROM sessions WHERE input_tokens IS NOT NULL"):
        tokens = row["input_tokens"], row["output_tokens"], 0, 0, 0
        model, at = row["model"].rpartition("/")[2], round(row["created_at"] * 1000)
        found.append(Counted(model, at, tokens, row["total_cost_usd"], answers=0))
    return found
