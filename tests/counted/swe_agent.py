"""SWE-agent's trajectories: requests with usage, or the sums of a run when its file was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, parted


def counted(root: Path) -> list[Counted]:
    found = []
    for path in sorted(root.glob("*.traj.json")):
        run = json.loads(path.read_text())
        model = run["info"]["config"]["model"]["model_name"].partition("/")[2]
        at = 0
        for message in run["messages"]:
            extra = message.get("extra") or {}
            response = extra.get("response") or {}
            at = round((extra.get("timestamp") or response.get("created") or at / 1000) * 1000)
            if message["role"] == "assistant" or response:
                found.append(Counted(model, at, _tokens(response.get("usage") or {}),
                                     extra.get("cost") or None))  # fmt: skip
    for path in sorted(root.glob("*.traj")):
        run = json.loads(path.read_text())
        model = json.loads(run["replay_config"])["agent"]["model"]["name"].partition("/")[2]
        at, stats = path.stat().st_mtime_ns // 1_000_000, run["info"]["model_stats"]
        found += [Counted(model, at) for _ in run["trajectory"]]
        found.append(Counted(model, at, parted(stats["tokens_sent"], stats["tokens_received"])))
    return found


def _tokens(usage: dict[str, Any]) -> tuple[int, int, int, int, int]:
    return parted(
        usage["prompt_tokens"], usage["completion_tokens"],
        reasoning=usage["completion_tokens_details"]["reasoning_tokens"],
        read=usage["prompt_tokens_details"]["cached_tokens"],
    )  # fmt: skip
