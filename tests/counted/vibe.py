"""Mistral Vibe: what the snapshot of each session says that it spent, or its statistics."""

from __future__ import annotations

import json
from pathlib import Path

from tests.counted.answers import Counted, ms, parted


def counted(root: Path) -> list[Counted]:
    """Return the tokens of whole sessions; how many answers there were is told nowhere."""
    found = []
    for current in sorted(root.glob("unified/*/CURRENT")):
        folder, name = current.parent, json.loads(current.read_text())["generation"]
        state = json.loads((folder / "generations" / name / "projection-state.json").read_text())
        session = state["snapshot"]["session"]
        used = session["tokenUsage"] or {}
        meta = json.loads((folder / "meta.json").read_text())
        tokens = parted(used.get("inputTokens", 0), used.get("outputTokens", 0),
                        read=used.get("cachedInputTokens", 0))  # fmt: skip
        found.append(Counted(meta["config"]["model_name"], session["updatedAt"], tokens))
    for path in sorted(root.glob("session_*/meta.json")):
        meta = json.loads(path.read_text())
        stats = meta["stats"]
        tokens = parted(stats["session_prompt_tokens"], stats["session_completion_tokens"])
        found.append(Counted(meta["config"]["active_model"], ms(meta["end_time"]), tokens))
    return found
