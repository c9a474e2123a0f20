"""Converts a session's messages to opencode's messages, with new ids."""

from __future__ import annotations

from typing import Any

from store.exports.kept_records import KeptRecords
from store.exports.opencode.ids import Ids
from store.exports.opencode.originals import Original, original_of
from store.exports.opencode.parts import part_of
from store.exports.reading import MessageReading, Row
from store.exports.steps import as_aside, is_aside, with_file_texts
from store.usage import whole_counts

Data = dict[str, Any]

AGENT = "build"
"""opencode's default agent."""
_WANTED = ("agent", "model", "mode", "path", "modelID", "providerID", "cost", "tokens")
"""Keys that import requires of a message, beside role, times and parent."""
_MARKED = ("text", "reasoning", "tool")
_UNKNOWN = {"providerID": "unknown", "modelID": "unknown"}


class Messages:
    """Converts messages in order.

    Attributes:
        messages: The converted messages: ``{info, parts}`` each.
    """

    def __init__(self, ids: Ids, session: Row, kept: KeptRecords) -> None:
        """Start without messages.

        Args:
            ids: Makes the new ids.
            session: The session's row.
            kept: Finds original records in the store.
        """
        self.messages: list[Data] = []
        self._ids, self._kept = ids, kept
        self._new: dict[str, str] = {}
        self._prompt: str | None = None
        self._cwd = session["workspace_root"] or "/"
        self._model = _model(session["model"]) or _UNKNOWN

    def add(self, item: MessageReading) -> None:
        """Add a message, unless opencode has no such kind of message."""
        original = original_of(self._kept, item.message["id"])
        if original is not None:
            self._add_original(item, original)
        elif any(part["type"] == "data-compaction" for part in item.parts):
            self._add_compaction(item)
        elif item.message["role"] in ("user", "assistant"):
            self._add_made(item)

    def _add_original(self, item: MessageReading, original: Original) -> None:
        parts = [self._renewed(part) for part in original.parts]
        info = self._complete(original.info, item.message, parts)
        if info.get("role") == "assistant":
            parent = self._new.get(str(info.get("parentID")), self._prompt)
            info["parentID"] = parent or self._ids.next("msg")
        self._append(info, parts, item.message, original.id)

    def _complete(self, info: Data, row: Row, parts: list[Data]) -> Data:
        """Return a message's info with the keys that import requires and old versions lack."""
        made = self._user(row) if info["role"] == "user" else self._assistant(row, parts)
        return {key: made[key] for key in _WANTED if key in made and key not in info} | info

    def _renewed(self, part: Data) -> Data:
        """Return a part with its reference to another message updated.

        The end of a step gets the reason that versions up to 0.5 did not write.
        """
        if part.get("type") == "step-finish":
            return {"reason": "stop", **part}
        if part.get("type") != "compaction" or "tail_start_id" not in part:
            return part
        tail = self._new.get(str(part["tail_start_id"]))
        rest = {key: value for key, value in part.items() if key != "tail_start_id"}
        return rest if tail is None else {**rest, "tail_start_id": tail}

    def _add_made(self, item: MessageReading) -> None:
        aside = is_aside(item.message["metadata"], item.message["role"])
        parts = []
        for part in item.parts:
            given = as_aside([part["data"]]) if aside else [part["data"]]
            for data in with_file_texts(given) if item.message["role"] == "user" else given:
                made = part_of(data, part["created_at"], part["updated_at"])
                parts += [] if made is None else [made]
        if not any(part["type"] != "step-start" for part in parts):
            return
        if item.message["role"] == "user":
            if aside:
                parts = [part | {"synthetic": True} if part["type"] == "text" else part
                         for part in parts]  # fmt: skip
            self._append(self._user(item.message), parts, item.message)
            return
        if parts[0]["type"] != "step-start":
            parts.insert(0, {"type": "step-start"})
        info = self._assistant(item.message, parts)
        parts.append(
            {
                "type": "step-finish",
                "reason": info["finish"],
                "cost": info["cost"],
                "tokens": info["tokens"],
            }
        )
        self._append(info, parts, item.message)

    def _user(self, row: Row) -> Data:
        metadata = _metadata(row)
        agent = metadata.get("agent")
        return {
            "role": "user",
            "time": {"created": row["created_at"]},
            "agent": agent if isinstance(agent, str) else AGENT,
            "model": _model(metadata.get("model")) or self._model,
        }

    def _assistant(self, row: Row, parts: list[Data]) -> Data:
        metadata = _metadata(row)
        agent = metadata.get("agent")
        agent = agent if isinstance(agent, str) else AGENT
        cost = metadata.get("cost_usd")
        calls = bool(parts) and parts[-1]["type"] == "tool"
        return {
            "role": "assistant",
            "parentID": self._prompt or self._ids.next("msg"),
            "mode": agent,
            "agent": agent,
            "path": {"cwd": self._cwd, "root": self._cwd},
            **(_model(metadata.get("model")) or self._model),
            "cost": cost if isinstance(cost, int | float) else 0,
            "tokens": _tokens(metadata.get("usage")),
            "time": {
                "created": row["created_at"],
                "completed": max(row["created_at"], row["updated_at"]),
            },
            "finish": "tool-calls" if calls else "stop",
        }

    def _add_compaction(self, item: MessageReading) -> None:
        """Add opencode's two messages for a compaction: the request and the summary."""
        for part in item.parts:
            data = part["data"].get("data") if isinstance(part["data"], dict) else None
            if part["type"] != "data-compaction" or not isinstance(data, dict):
                continue
            if not isinstance(data.get("summary"), str) or not data["summary"].strip():
                continue
            request: Data = {"type": "compaction", "auto": bool(data.get("auto"))}
            tail = self._new.get(str(data.get("tail_start_id")))
            if tail is not None:
                request["tail_start_id"] = tail
            self._append(self._user(item.message), [request], {**item.message, "id": ""})
            at = part["created_at"]
            text = {"type": "text", "text": data["summary"], "time": {"start": at, "end": at}}
            summary = self._assistant(item.message, [text])
            summary |= {"agent": "compaction", "mode": "compaction", "summary": True}
            self._append(summary, [text], item.message)

    def _append(self, info: Data, parts: list[Data], row: Row, known_as: str = "") -> None:
        """Append a message with new ids and a note of its origin."""
        name, session = self._ids.next("msg"), self._ids.session
        self._new[row["id"]] = name
        if known_as:
            self._new[known_as] = name
        if info["role"] == "user":
            self._prompt = name
        made = []
        marked = not row["id"]
        for part in parts:
            ids = {"id": self._ids.next("prt"), "sessionID": session, "messageID": name}
            part = {key: value for key, value in part.items() if key not in ids} | ids
            if not marked and part["type"] in _MARKED:
                marked = True
                note = {"session": session, "message": row["id"]}
                given = part.get("metadata")
                part["metadata"] = {
                    **(given if isinstance(given, dict) else {}), "backscroll": note,
                }  # fmt: skip
            made.append(self._with_attachments(part, ids))
        self.messages.append({"info": {**info, "id": name, "sessionID": session}, "parts": made})

    def _with_attachments(self, part: Data, ids: Data) -> Data:
        """Return a tool part with new ids for its attachments, which are parts too."""
        state = part.get("state")
        files = state.get("attachments") if isinstance(state, dict) else None
        if not isinstance(state, dict) or not isinstance(files, list):
            return part
        renewed = [
            {**file, **ids, "id": self._ids.next("prt")} for file in files if isinstance(file, dict)
        ]
        return {**part, "state": {**state, "attachments": renewed}}


def _metadata(row: Row) -> Data:
    return row["metadata"] if isinstance(row["metadata"], dict) else {}


def _model(model: Any) -> Data | None:
    if not isinstance(model, dict) or not isinstance(model.get("model_id"), str):
        return None
    return {"providerID": str(model.get("provider_id") or "unknown"), "modelID": model["model_id"]}


def _tokens(usage: Any) -> Data:
    counts = whole_counts(usage)
    return {
        "input": counts["input"],
        "output": counts["output"],
        "reasoning": counts["reasoning"],
        "cache": {"read": counts["cache_read"], "write": counts["cache_write"]},
    }
