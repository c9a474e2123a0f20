"""Converts a session's messages to Qwen Code's records, each answer with its tool results."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from store.exports.calls import UniqueIds
from store.exports.kept_records import KeptRecords
from store.exports.reading import MessageReading, SessionReading
from store.exports.steps import (
    SUMMARY,
    Part,
    Step,
    as_aside,
    call_input,
    call_name,
    call_result,
    compaction_summary,
    file_name,
    handed_over,
    inline_data,
    is_aside,
    is_tool,
    steps_of,
    with_file_texts,
)
from store.exports.turns import iso, metadata_of, model_of
from store.usage import whole_counts

Record = dict[str, Any]
NOTE = "backscroll"
"""The key under which a record says which message it is a copy of; Qwen Code ignores it."""
_OWN_KEYS = ("subtype", "provenance", "model", "message", "usageMetadata", "contextWindowSize",
             "systemPayload", "toolCallResult")  # fmt: skip
"""What is kept of an original record, beside its id and time."""
_TYPES = {"user": "user", "assistant": "assistant"}


class Records:
    """Makes records from messages.

    Attributes:
        made: The records, not linked yet.
        prompt: An unanswered last prompt of a person, which is not in ``made``.
    """

    def __init__(self, reading: SessionReading, model: str) -> None:
        """Start without records.

        Args:
            reading: The session, for what its store has kept.
            model: The session's model, for answers without one.
        """
        self.made: list[Record] = []
        self.prompt: str | None = None
        self._kept = KeptRecords(reading, "qwen")
        self._model = model
        self._ids: set[str] = set()
        self._calls = UniqueIds()
        self._last_prompt = ""

    def take(self, messages: Iterable[MessageReading]) -> None:
        """Add the messages to and from the model, in order."""
        for item in messages:
            parts = [part["data"] for part in item.parts if isinstance(part["data"], dict)]
            role, summary = item.message["role"], compaction_summary(parts)
            if summary is not None:
                if summary.strip():
                    self._add(item, "user", [{"text": SUMMARY + summary}],
                              note={"compaction": True})  # fmt: skip
                continue
            if role not in _TYPES:
                continue
            if role == "user" and metadata_of(item).get("origin", "human") == "human":
                self._last_prompt = item.message["id"]
            if self._verbatim(item, parts):
                continue
            if role == "user":
                self._said(item, parts)
            else:
                self._answer(item, parts)
        self._hand_over()

    def _said(self, item: MessageReading, parts: list[Part]) -> None:
        aside = is_aside(item.message["metadata"], "user")
        parts = as_aside(parts) if aside else parts
        content = [block for part in with_file_texts(parts) if (block := _block(part)) is not None]
        if content:
            self._add(item, "user", content, note={"aside": True} if aside else {})

    def _answer(self, item: MessageReading, parts: list[Part]) -> None:
        usage: object = metadata_of(item).get("usage")
        for step in steps_of(parts):
            ids = [self._calls.take(str(part.get("toolCallId") or "call")) for part in step.calls]
            content = _spoken(step) + [
                {"functionCall": {"id": name, "name": call_name(part), "args": call_input(part)}}
                for name, part in zip(ids, step.calls, strict=True)
            ]
            if not content:
                continue
            self._add(item, "assistant", content, usageMetadata=usage_of(usage),
                      model=model_of(item, self._model))  # fmt: skip
            usage = None
            for name, part in zip(ids, step.calls, strict=True):
                self._result(item, part, name)

    def _add(
        self, item: MessageReading, kind: str, content: list[Record], *,
        note: Record | None = None, **more: Any,
    ) -> None:  # fmt: skip
        note = {"message": item.message["id"], **(note or {})}
        role = "model" if kind == "assistant" else "user"
        self.made.append({
            "uuid": self._id(item.message["id"]), "timestamp": iso(item.message["created_at"]),
            "type": kind, "message": {"role": role, "parts": content}, **more, NOTE: note,
        })  # fmt: skip

    def _result(self, item: MessageReading, part: Part, call_id: str) -> None:
        result, name = call_result(part), call_name(part)
        response = {"error": result.text} if result.failed else {"output": result.text}
        content = [{"functionResponse": {"id": call_id, "name": name, "response": response}}]
        content += [block for file in result.files if (block := _block(file)) is not None]
        word = "error" if result.failed else "success"
        told = {"callId": call_id, "status": word, "resultDisplay": result.text[:2000],
                "executionStatus": word}  # fmt: skip
        self.made.append({
            "uuid": self._id(f"{item.message['id']} {call_id}"),
            "timestamp": iso(item.message["updated_at"]), "type": "tool_result",
            "message": {"role": "user", "parts": content}, "toolCallResult": told,
        })  # fmt: skip

    def _verbatim(self, item: MessageReading, parts: list[Part]) -> bool:
        """Add Qwen's own original record of a message; return whether there is one."""
        source_id, rows = self._kept.of(item.message["id"])
        if source_id is None:
            return False
        name = source_id.partition(":")[0]
        if name != source_id and name in self._ids:
            return True  # The files beside a prompt are in its record.
        kind = _TYPES[item.message["role"]]
        own = [row for row in rows if row.get("uuid") == name and row.get("type") == kind]
        if len(own) != 1 or name in self._ids or name != source_id:
            return False
        contents = _contents(own[0])
        calls = _calls_of(contents) if contents else None
        if calls is None or any(call in self._calls.taken for call in calls):
            return False
        tools = {str(part.get("toolCallId")): part for part in parts if is_tool(part)}
        if set(calls) != set(tools) or len(calls) != len(set(calls)):
            return False
        self._ids.add(name)
        self._calls.taken.update(calls)
        record = self._own(own[0], item)
        if kind == "assistant":
            usage = own[0].get("usageMetadata")
            record["usageMetadata"] = usage if isinstance(usage, dict) and usage else usage_of(None)
            if not isinstance(record.get("model"), str):
                record["model"] = model_of(item, self._model)
        self.made.append(record | {NOTE: {"message": item.message["id"]}})
        for call in calls:
            self._kept_result(item, tools[call], call, rows)
        return True

    def _kept_result(
        self, item: MessageReading, part: Part, call_id: str, rows: list[Record]
    ) -> None:
        """Add a call's result: Qwen's original one, else one made from the part."""
        for row in rows:
            responses = [each.get("functionResponse") for each in _contents(row)]
            named = any(isinstance(each, dict) and each.get("id") == call_id for each in responses)
            name = row.get("uuid")
            if row.get("type") != "tool_result" or not named or not isinstance(name, str):
                continue
            if name not in self._ids:
                self._ids.add(name)
                self.made.append(self._own(row, item))
                return
        self._result(item, part, call_id)

    def _own(self, row: Record, item: MessageReading) -> Record:
        at = row.get("timestamp")
        time = at if isinstance(at, str) else iso(item.message["created_at"])
        record = {"uuid": row["uuid"], "timestamp": time, "type": row["type"]}
        return record | {key: row[key] for key in _OWN_KEYS if key in row}

    def _id(self, name: str) -> str:
        """Return an unused UUID, derived from a name."""
        number = 0
        while (made := str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {number}"))) in self._ids:
            number += 1
        self._ids.add(made)
        return made

    def _hand_over(self) -> None:
        """Move an unanswered last prompt from the records to ``prompt``."""
        last = self.made[-1] if self.made else {}
        if last.get("type") == "user" and last[NOTE]["message"] == self._last_prompt:
            self.prompt = handed_over(last["message"]["parts"])
            if self.prompt is not None:
                self.made.pop()


def usage_of(usage: object) -> Record:
    """Return the five token buckets in Qwen Code's form; without any, an answer is cut off."""
    counts = whole_counts(usage)
    prompt = counts["input"] + counts["cache_read"] + counts["cache_write"]
    answer = counts["output"] + counts["reasoning"]
    return {
        "promptTokenCount": prompt, "candidatesTokenCount": answer,
        "thoughtsTokenCount": counts["reasoning"], "totalTokenCount": prompt + answer,
        "cachedContentTokenCount": counts["cache_read"],
    }  # fmt: skip


def _contents(row: Record) -> list[Record]:
    """Return the parts of a record's message; none where they are not what they should be."""
    message = row.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return []
    return parts


def _calls_of(contents: list[Record]) -> list[str] | None:
    """Return the ids of the calls in a message; None where one is no whole call."""
    found: list[str] = []
    for part in contents:
        call = part.get("functionCall")
        if call is None:
            continue
        if not isinstance(call, dict) or not all(
            isinstance(call.get(key), kind) and (call[key] or kind is dict)
            for key, kind in (("id", str), ("name", str), ("args", dict))
        ):
            return None
        found.append(call["id"])
    return found


def _block(part: Part) -> Record | None:
    """Return a text or file part as a part of a message; None for parts not sent to a model."""
    if part.get("type") == "text":
        text = part.get("text")
        return {"text": text} if isinstance(text, str) and text.strip() else None
    if part.get("type") != "file":
        return None
    inline = inline_data(part)
    if inline is not None and not inline[0].startswith("text/"):
        return {"inlineData": {"mimeType": inline[0], "data": inline[1]}}
    return {"text": file_name(part)}


def _spoken(step: Step) -> list[Record]:
    """Return what an answer says; its files are named, as a model's own part cannot hold them."""
    found: list[Record] = []
    for part in step.said:
        if part.get("type") == "file":
            found.append({"text": file_name(part)})
        elif part.get("type") == "reasoning":
            found.append({"text": part["text"], "thought": True})
        elif part.get("type") == "text":
            found.append({"text": part["text"]})
    return found
