"""Chats in VS Code: each turn that has an answer; nothing of what was spent is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted


def counted(root: Path) -> list[Counted]:
    """Return the answers of each chat, those of cut turns too."""
    found: list[Counted] = []
    files = [*root.rglob("chatSessions/*.json*"), *root.rglob("emptyWindowChatSessions/*.json*")]
    for path in sorted(files):
        if path.suffix == ".json" and path.with_suffix(".jsonl").exists():
            continue
        created, asked = _requests(path)
        at = created
        for request in asked.values():
            at = request.get("timestamp", at)
            model = request.get("modelId", "unknown")
            metadata = (request.get("result") or {}).get("metadata") or {}
            found.append(Counted(metadata.get("resolvedModel", model), at))
    return found


def _requests(path: Path) -> tuple[int, dict[str, Any]]:
    """Return when a chat was begun, and the last form of each of its requests."""
    if path.suffix == ".json":
        chat = json.loads(path.read_text())
        asked = {str(place): one for place, one in enumerate(chat["requests"])}
        return chat["creationDate"], asked
    found: dict[Any, Any] = {}
    created, live = 0, list[Any]()
    for line in path.read_text().splitlines():
        change = json.loads(line)
        if change["kind"] == 0:
            created, live = change["v"]["creationDate"], change["v"]["requests"]
        elif change["k"] == ["requests"]:
            live = [*live[: change.get("i")], *change.get("v", ())]
        elif change["k"][0] == "requests" and change["kind"] == 1:
            live[change["k"][1]][change["k"][2]] = change["v"]
        found |= {request["requestId"]: request for request in live}
    return created, found
