"""Cursor: what listed bubbles count, one answer for each run of bubbles; the others count none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, ms, rows


def counted(root: Path) -> list[Counted]:
    return [*_editor(root), *_tabs(root), *_command_line(root), *_transcripts(root)]


def _editor(root: Path) -> Iterator[Counted]:
    path = root / "globalStorage/state.vscdb"
    stored = (
        rows(path, "SELECT * FROM cursorDiskKV WHERE value IS NOT NULL") if path.exists() else []
    )
    values = {row["key"]: row["value"] for row in stored}
    for key, value in values.items():
        if not key.startswith("composerData:"):
            continue
        chat = json.loads(value)
        prefix = f"bubbleId:{chat['composerId']}:"
        bubbles = {key.removeprefix(prefix): json.loads(value) for key, value in values.items()
                   if key.startswith(prefix)}  # fmt: skip
        listed = chat.get("conversation") or [
            bubbles[one["bubbleId"]] for one in chat["fullConversationHeadersOnly"]
            if one["bubbleId"] in bubbles]  # fmt: skip
        hidden = [one for one in bubbles.values() if one not in listed and listed]
        answers = [*_answers(listed, chat["createdAt"]),
                   *(Counted("unknown", ms(one["createdAt"])) for one in hidden
                     if one["type"] == 2)]  # fmt: skip
        named = [one.model for one in answers if one.model != "unknown"]
        yield from (replace(one, model=named[-1]) if one.model == "unknown" and named else one
                    for one in answers)  # fmt: skip


def _answers(listed: list[dict[str, Any]], created: int) -> Iterator[Counted]:
    """Yield the answers of a chat: words or a thought after a call are the next one."""
    at, called, model = created, False, "unknown"
    begun: int | None = None
    given = said = 0
    for one in [*listed, {"type": 1}]:
        told = one.get("timingInfo", {})
        start = told.get("clientStartTime", 0)
        if "createdAt" in one:
            at = ms(one["createdAt"])
        elif start:
            at = int(start if start > 1e11 else told["clientRpcSendTime"] - start)
        former = one.get("toolFormerData", {})
        call = "name" in former or one.get("capabilityType") == 15 and "_v" not in one
        words = bool(one.get("text") or one.get("thinking"))
        ends = one["type"] == 1 or one.get("capabilityType") == 22 or (words and called)
        if ends and begun is not None:
            yield Counted(model, begun, (given, said, 0, 0, 0))
            begun, called, model, given, said = None, False, "unknown", 0, 0
        if one["type"] == 2 and (call or words):
            begun, called = at if begun is None else begun, called or call
            used = one.get("tokenCount", {})
            given, said = given + used.get("inputTokens", 0), said + used.get("outputTokens", 0)
            named = one.get("modelInfo", {}).get("modelName", "default")
            model = model if named == "default" else named


def _tabs(root: Path) -> Iterator[Counted]:
    for path in sorted(root.glob("workspaceStorage/*/state.vscdb")):
        for row in rows(path, "SELECT value FROM ItemTable WHERE key LIKE '%aichat.chatdata'"):
            for tab in json.loads(row["value"])["tabs"]:
                yield from (Counted(one["modelType"], tab["lastSendTime"])
                            for one in tab["bubbles"] if one["type"] == "ai")  # fmt: skip


def _command_line(root: Path) -> Iterator[Counted]:
    for path in sorted(root.glob("chats/*/*/store.db")):
        (meta,) = rows(path, "SELECT value FROM meta")
        created = json.loads(bytes.fromhex(meta["value"]))["createdAt"]
        for row in rows(path, "SELECT data FROM blobs"):
            if row["data"][:1] == b"{":
                message = json.loads(row["data"])
                if message["role"] == "assistant":
                    yield Counted(message["providerOptions"]["cursor"]["modelName"], created)


def _transcripts(root: Path) -> Iterator[Counted]:
    chats = {path.parent.name for path in root.glob("chats/*/*/store.db")}
    for path in sorted(root.glob("projects/*/agent-transcripts/**/*.jsonl")):
        if path.stem not in chats:
            at = path.stat().st_mtime_ns // 1_000_000
            for line in path.read_text().splitlines():
                if json.loads(line).get("role") == "assistant":
                    yield Counted("unknown", at)
