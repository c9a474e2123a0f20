"""viben: one answer a run, costs in results; no tokens and no models."""

from __future__ import annotations

from pathlib import Path

from tests.counted.answers import Counted, lines, ms


def counted(root: Path) -> list[Counted]:
    found = []
    for folder in sorted(root.glob("agents/*/.agent_sessions/*")):
        shown = list(lines(folder / "messages.ui.jsonl"))
        if not shown:
            shown = list(lines(folder / "messages.rollout.jsonl"))
        events = [row["raw"] for row in lines(folder / "messages.agent.jsonl")]
        costs = [row["cost"] for row in [*events, *shown] if "cost" in row]
        said = [row for row in shown if row.get("type") == "text" or row.get("role") == "assistant"]
        found += [Counted("unknown", ms(row["timestamp"])) for row in said]
        found += [Counted("unknown", ms(said[-1]["timestamp"]), usd=cost, answers=0)
                  for cost in costs]  # fmt: skip
    return found
