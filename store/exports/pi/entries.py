"""Converts a session's messages to pi's entries, each with its tool results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from store.exports.kept_records import KeptRecords
from store.exports.pi.blocks import content_block
from store.exports.reading import MessageReading, SessionReading
from store.exports.steps import (
    NO_RESULT,
    Part,
    as_aside,
    call_input,
    call_name,
    call_result,
    handed_over,
    is_aside,
    is_tool,
    steps_of,
    with_file_texts,
)
from store.exports.turns import iso, metadata_of
from store.usage import whole_counts

Entry = dict[str, Any]
_APIS = {
    "anthropic": "anthropic-messages",
    "google": "google-generative-ai",
    "openai": "openai-responses",
}
ASIDE = "backscroll-context"
"""The ``customType`` of text that another agent's program sent to its model."""
_SAID = ("message", "custom_message", "branch_summary")


class Entries:
    """Makes entries from messages.

    Attributes:
        made: The entries, not linked yet.
        copies: The message that each entry is a copy of, by the entry's id.
        prompt: An unanswered last prompt of a person, which is not in ``made``.
    """

    def __init__(self, reading: SessionReading, model: dict[str, Any]) -> None:
        """Start without entries.

        Args:
            reading: The session, for what its store has kept.
            model: The session's model, for answers without one.
        """
        self.made: list[Entry] = []
        self.copies: dict[str, str] = {}
        self.prompt: str | None = None
        self._kept = KeptRecords(reading, "pi")
        self._model = model
        self._ids: set[str] = set()
        self._calls: set[str] = set()
        self._last_prompt = ""

    def take(self, messages: Iterable[MessageReading]) -> None:
        """Add the messages of the context view, in which a compaction precedes its tail."""
        marker: MessageReading | None = None
        tail: str | None = None
        for item in messages:
            parts = [part["data"] for part in item.parts if isinstance(part["data"], dict)]
            if any(part.get("type") == "data-compaction" for part in parts):
                marker = item
                continue
            if marker is not None and _place(item) > _place(marker):
                self._compact(marker, tail)
                marker = None
            before = len(self.made)
            self._message(item, parts)
            if marker is not None and tail is None and len(self.made) > before:
                tail = self.made[before]["id"]
        if marker is not None:
            self._compact(marker, tail)
        self._hand_over()

    def _message(self, item: MessageReading, parts: list[Part]) -> None:
        source_id, rows = self._kept.of(item.message["id"])
        role = item.message["role"]
        if role == "user" and metadata_of(item).get("origin", "human") == "human":
            self._last_prompt = item.message["id"]
        if source_id is not None and self._verbatim(item, source_id, rows, parts):
            return
        if role == "user":
            aside = is_aside(item.message["metadata"], role)
            parts = as_aside(parts) if aside else parts
            content = [
                block for part in with_file_texts(parts)
                if (block := content_block(part)) is not None
            ]  # fmt: skip
            if content and aside:
                self._aside(item, content)
            elif content:
                message = {"role": "user", "content": content}
                self._add(self._new(item, "message"), item, message)
        elif role == "assistant":
            for step in steps_of(parts):
                said = [block for part in step.said if (block := content_block(part)) is not None]
                calls = [self._call(part) for part in step.calls]
                if not said and not calls:
                    continue
                message = self._answer(item, [*said, *calls], bool(calls))
                self._add(self._new(item, "message"), item, message)
                for part, block in zip(step.calls, calls, strict=True):
                    self._result(item, part, block["id"])

    def _verbatim(
        self, item: MessageReading, source_id: str, rows: list[Entry], parts: list[Part]
    ) -> bool:
        """Add pi's own original entry of a message; return whether there is one."""
        wanted = source_id.removesuffix(":output")
        entry = next((row for row in rows if row.get("id") == wanted), None)
        if entry is None or entry.get("type") not in _SAID:
            return False
        if wanted != source_id:
            self.copies[source_id] = item.message["id"]
            return wanted in self._ids
        if wanted in self._ids:
            return False
        message = entry.get("message")
        self._ids.add(wanted)
        self._keep(entry, item)
        self.copies[wanted] = item.message["id"]
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else []
        calls = [str(block.get("id")) for block in blocks
                 if isinstance(block, dict) and block.get("type") == "toolCall"]  # fmt: skip
        self._results(item, calls, rows, parts)
        return True

    def _results(
        self, item: MessageReading, calls: list[str], rows: list[Entry], parts: list[Part]
    ) -> None:
        """Add each call's result: pi's original one, else one made from the part."""
        kept: dict[str, Entry] = {}
        for row in rows:
            message = row.get("message")
            if isinstance(message, dict) and message.get("role") == "toolResult":
                kept.setdefault(str(message.get("toolCallId")), row)
        tools = {str(part.get("toolCallId")): part for part in parts if is_tool(part)}
        for call_id in calls:
            self._calls.add(call_id)
            result = kept.get(call_id)
            result_id = result.get("id") if result is not None else None
            if result is not None and isinstance(result_id, str) and result_id not in self._ids:
                self._ids.add(result_id)
                self._keep(result, item)
            else:
                self._result(item, tools.get(call_id, {}), call_id)

    def _keep(self, entry: Entry, item: MessageReading) -> None:
        """Add an original entry of pi, with a time if it has none."""
        timed = isinstance(entry.get("timestamp"), str)
        time = {} if timed else {"timestamp": iso(item.message["created_at"])}
        self.made.append(entry | time)

    def _new(self, item: MessageReading, kind: str) -> Entry:
        return {
            "type": kind,
            "id": self._id(item.message["id"]),
            "timestamp": iso(item.message["created_at"]),
        }

    def _id(self, name: str) -> str:
        """Return an unused id of eight hexadecimal digits, derived from a name."""
        number = 0
        while True:
            made = hashlib.blake2b(f"{name} {number}".encode(), digest_size=4).hexdigest()
            if made not in self._ids:
                self._ids.add(made)
                return made
            number += 1

    def _add(self, entry: Entry, item: MessageReading, message: Entry) -> None:
        message["timestamp"] = item.message["created_at"]
        self.made.append(entry | {"message": message})
        self.copies[entry["id"]] = item.message["id"]

    def _aside(self, item: MessageReading, content: list[Entry]) -> None:
        """Add text of a program, which is sent to the model but is not a person's prompt."""
        entry = self._new(item, "custom_message")
        self.made.append(entry | {"customType": ASIDE, "content": content, "display": False})
        self.copies[entry["id"]] = item.message["id"]

    def _answer(self, item: MessageReading, content: list[Entry], calls: bool) -> Entry:
        metadata = metadata_of(item)
        named = metadata.get("model")
        model = named if isinstance(named, dict) else self._model
        provider = str(model.get("provider_id") or "unknown")
        first = item.message["id"] not in self.copies.values()
        return {
            "role": "assistant",
            "content": content,
            "api": _APIS.get(provider, "openai-completions"),
            "provider": provider,
            "model": str(model.get("model_id") or "unknown"),
            "usage": _usage(metadata.get("usage") if first else None),
            "stopReason": "toolUse" if calls else "stop",
        }

    def _call(self, part: Part) -> Entry:
        wanted = str(part.get("toolCallId") or "call")
        call_id, number = wanted, 2
        while call_id in self._calls:
            call_id, number = f"{wanted}-{number}", number + 1
        self._calls.add(call_id)
        return {
            "type": "toolCall",
            "id": call_id,
            "name": call_name(part),
            "arguments": call_input(part),
        }

    def _result(self, item: MessageReading, part: Part, call_id: str) -> None:
        result = call_result(part)
        content: list[Entry] = [{"type": "text", "text": result.text or NO_RESULT * (not part)}]
        content += [block for file in result.files if (block := content_block(file)) is not None]
        entry = self._new(item, "message") | {"timestamp": iso(item.message["updated_at"])}
        message = {
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": call_name(part) if part else "tool",
            "content": content,
            "isError": result.failed,
            "timestamp": item.message["updated_at"],
        }
        self.made.append(entry | {"message": message})

    def _compact(self, item: MessageReading, tail: str | None) -> None:
        data = next(
            (part["data"].get("data") for part in item.parts
             if isinstance(part["data"], dict) and part["data"].get("type") == "data-compaction"),
            None,
        )  # fmt: skip
        bag = data if isinstance(data, dict) else {}
        entry = self._new(item, "compaction")
        tokens = bag.get("pre_tokens")
        entry |= {
            "summary": str(bag.get("summary") or ""),
            # The first entry that is kept; the compaction itself if none is.
            "firstKeptEntryId": tail or entry["id"],
            "tokensBefore": tokens if isinstance(tokens, int) else 0,
        }
        self.made.append(entry)
        self.copies[entry["id"]] = item.message["id"]

    def _hand_over(self) -> None:
        """Move an unanswered last prompt from the entries to ``prompt``."""
        message = self.made[-1].get("message") if self.made else None
        if not isinstance(message, dict) or message.get("role") != "user":
            return
        if self.copies.get(self.made[-1]["id"]) != self._last_prompt:
            return
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        self.prompt = handed_over(blocks)
        if self.prompt is not None:
            self.copies.pop(self.made.pop()["id"], None)


def _place(item: MessageReading) -> tuple[int, str]:
    return item.message["created_at"], item.message["id"]


def _usage(usage: object) -> Entry:
    """Return the five token buckets in pi's form."""
    stored = whole_counts(usage)
    counts = {
        "input": stored["input"],
        "output": stored["output"] + stored["reasoning"],
        "cacheRead": stored["cache_read"],
        "cacheWrite": stored["cache_write"],
    }
    cost = dict.fromkeys((*counts, "total"), 0)
    return {**counts, "totalTokens": sum(counts.values()), "cost": cost}
