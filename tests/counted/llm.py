"""llm: one row a call of the model, in ``turns`` or, before 0.32, in ``responses``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, ms, parted, rows


def counted(root: Path) -> list[Counted]:
    path = root / "logs.db"
    tables = {row[0] for row in rows(path, "SELECT name FROM sqlite_master")}
    found: dict[str, Counted] = {}
    for table in sorted({"turns", "responses"} & tables):
        for row in rows(path, f"SELECT * FROM {table}"):
            found[row["id"]] = Counted(
                row["resolved_model"] or row["model"], ms(row["datetime_utc"]), _tokens(dict(row))
            )
    return list(found.values())


def _tokens(row: dict[str, Any]) -> tuple[int, int, int, int, int]:
    details = json.loads(row["token_details"] or "{}")

    def detail(side: str, key: str) -> int:
        names = {"in": ("prompt", "input"), "out": ("completion", "output")}[side]
        bags = (details.get(f"{name}_tokens_details") or {} for name in names)
        return next((bag[key] for bag in bags if bag.get(key)), 0)

    return parted(
        row["input_tokens"] or 0, row["output_tokens"] or 0,
        reasoning=detail("out", "reasoning_tokens"), read=detail("in", "cached_tokens"),
    )  # fmt: skip
