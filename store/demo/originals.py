"""Original records for the demo's sessions, in the form in which Claude Code writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from store.demo.rows import Player
from store.engine.database import Database

MOST_MESSAGES = 100
"""A longer session gets no records, so that the demo stays quick to make."""


def write_originals(db: Database, player: Player) -> None:
    """Write the records of a session and what refers to them."""
    if player.scene.agent != "claude-code" or len(player.messages) > MOST_MESSAGES:
        return
    from store.sync.blocks import cut_blocks, write_blocks

    records: list[bytes] = []
    for message_id, _, role, *_ in player.messages:
        groups: list[list[int]] = []
        for part in player.parts:
            if part[1] == message_id:
                rows = _rows(player, role, message_id, orjson.loads(part[5]), part[8], part[9])
                groups.append(list(range(len(records), len(records) + len(rows))))
                records += [orjson.dumps(row) for row in rows]
        db.connection.execute(
            "INSERT INTO record_refs VALUES (?, ?)",
            (message_id, orjson.dumps([*groups, []]).decode()),
        )
    write_blocks(db.connection, player.id, cut_blocks(records, compress=True))


def _rows(
    player: Player, role: str, message_id: str, data: dict[str, Any], begun: int, ended: int
) -> list[dict[str, Any]]:
    """Return the rows of one part; a tool call has a second one, with its result."""
    if str(data["type"]).startswith("data-"):
        return []  # No message of an API holds such a part.
    content = _content(data)
    message: dict[str, Any] = {"role": role, "content": [content]}
    if role == "assistant":
        message |= {"id": f"msg_01{message_id[16:]}", "type": "message",
                    "model": player.scene.model["model_id"]}
    rows = [_row(player, role, message, begun)]
    if content["type"] == "tool_use" and data["state"].startswith("output"):
        reason = data.get("approval", {}).get("reason", "The user does not want this.")
        output = data.get("output", data.get("errorText", reason))
        result = {"type": "tool_result", "tool_use_id": content["id"], "content": output}
        if data["state"] != "output-available":
            result["is_error"] = True
        rows.append(_row(player, "user", {"role": "user", "content": [result]}, ended))
    return rows


def _content(data: dict[str, Any]) -> dict[str, Any]:
    kind = str(data["type"])
    if kind.startswith("tool-"):
        return {"type": "tool_use", "id": data["toolCallId"], "name": kind.removeprefix("tool-"),
                "input": data["input"]}
    if kind == "reasoning":
        return {"type": "thinking", "thinking": data["text"], "signature": "demo"}
    return {"type": "text", "text": str(data.get("text", ""))}


def _row(player: Player, kind: str, message: dict[str, Any], at: int) -> dict[str, Any]:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return {
        "type": kind,
        "sessionId": player.scene.key,
        "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cwd": player.scene.workspace,
        "gitBranch": player.scene.branch,
        "isSidechain": player.scene.lineage == "subagent" and player.parent is not None,
        "message": message,
    }
