"""OpenHands: the requests of each conversation's own purposes, at the time of their answers."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, parted


def counted(root: Path) -> list[Counted]:
    found: list[Counted] = []
    for path in sorted(root.glob("**/base_state.json")):
        files = sorted(path.parent.glob("events/*.json"))
        events = [json.loads(each.read_text()) for each in files]
        at = {event["llm_response_id"]: event["timestamp"] for event in reversed(events)
              if event.get("llm_response_id")}  # fmt: skip
        metrics: dict[str, Any] = json.loads(path.read_text())["stats"]["usage_to_metrics"]
        for name, metric in metrics.items():
            if name.startswith("task:"):
                continue  # Its own state has it too.
            costs = [each["cost"] for each in metric["costs"]]
            for place, used in enumerate(metric["token_usages"]):
                local = datetime.fromisoformat(at[used["response_id"]])
                found.append(Counted(used["model"].partition("/")[2], _ms(local), parted(
                    used["prompt_tokens"], used["completion_tokens"],
                    reasoning=used["reasoning_tokens"], read=used["cache_read_tokens"],
                    write=used["cache_write_tokens"]),
                    costs[place] if costs else None))  # fmt: skip
    return found


def _ms(local: datetime) -> int:
    return round(local.timestamp() * 1000)
