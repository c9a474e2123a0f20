"""Converts a session's messages to Gemini CLI's records, one complete record each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from store.conversation.wrapping import wrapped
from store.exports.calls import UniqueIds
from store.exports.kept_records import KeptRecords
from store.exports.reading import MessageReading, SessionReading
from store.exports.steps import (
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
)
from store.exports.turns import iso, metadata_of, model_of
from store.usage import whole_counts

Record = dict[str, Any]
PROMPT = "backscroll-prompt"
"""Temporary key for the text of a person's prompt; never written to the file."""
_SNAPSHOT = "<state_snapshot>"
_CONTEXT = "<session_context>"
_NOT_SENT = ("/", "?", _CONTEXT, "<hook_context>")
"""Starts of user records that Gemini CLI does not send (``isIgnoredUserContent``)."""


class Records:
    """Makes records with the messages' own ids, so that sync recognizes them as copies."""

    def __init__(self, reading: SessionReading, model: str) -> None:
        """Start without records.

        Args:
            reading: The session, for what its store has kept.
            model: The session's model, for answers without one.
        """
        self._kept = KeptRecords(reading, "gemini")
        self._model = model
        self._calls = UniqueIds()

    def of(self, messages: Iterable[MessageReading]) -> Iterator[Record]:
        """Yield the records of the messages to and from the model, in order."""
        for item in messages:
            parts = [part["data"] for part in item.parts if isinstance(part["data"], dict)]
            summary = compaction_summary(parts)
            if summary is not None:
                if summary.strip():
                    yield _compacted(item, summary)
            elif item.message["role"] == "user":
                yield from self._prompt(item, parts)
            elif item.message["role"] == "assistant":
                yield from self._answer(item, parts)

    def _prompt(self, item: MessageReading, parts: list[Part]) -> Iterator[Record]:
        original = self._original(item, "user")
        content = original.get("content") if original else None
        if isinstance(content, str):
            content = [{"text": content}]
        if not isinstance(content, list) or not content:
            content = _told(parts, aside=is_aside(item.message["metadata"], "user"))
        if not content:
            return
        record = _record(item, "user", content)
        text = _leading_text(content)
        if original and text.startswith(_CONTEXT):
            # Gemini CLI recognizes its own context by this id.
            record["id"] = original["id"]
        if original and original.get("displayContent"):
            record["displayContent"] = original["displayContent"]
        if metadata_of(item).get("origin", "human") == "human":
            record[PROMPT] = handed_over(content if original else parts)
        yield record

    def _answer(self, item: MessageReading, parts: list[Part]) -> Iterator[Record]:
        original = self._original(item, "gemini")
        if original is not None:
            yield self._verbatim(item, original, parts)
            return
        for place, step in enumerate(steps_of(parts)):
            record = _record(item, "gemini", _text(step))
            if place:
                record["id"] = f"{record['id']}.{place + 1}"
            record["thoughts"] = _thoughts(step, record["timestamp"])
            record["tokens"] = None if place else _tokens(metadata_of(item).get("usage"))
            record["model"] = model_of(item, self._model)
            if step.calls:
                record["toolCalls"] = [self._call(call, item) for call in step.calls]
            yield {key: value for key, value in record.items() if value is not None}

    def _original(self, item: MessageReading, kind: str) -> Record | None:
        """Return the most complete record that Gemini CLI wrote for a message, or None."""
        source_id, rows = self._kept.of(item.message["id"])
        found: Record | None = None
        for row in rows:
            bag = row.get("$set")
            inner = bag.get("messages") if isinstance(bag, dict) else None
            for record in inner if isinstance(inner, list) else [row]:
                if not isinstance(record, dict) or record.get("type") != kind:
                    continue
                if str(record.get("id")) != source_id or _is_response(record):
                    continue
                found = record if record is row or found is None else {**record, **found}
        return found

    def _verbatim(self, item: MessageReading, original: Record, parts: list[Part]) -> Record:
        """Return an answer as Gemini CLI wrote it, with a result for every call."""
        record = {**original, "id": item.message["id"]}
        if not isinstance(original.get("timestamp"), str):
            record["timestamp"] = iso(item.message["created_at"])
        settled = {str(part.get("toolCallId")): part for part in parts if is_tool(part)}
        calls = original.get("toolCalls")
        if isinstance(calls, list) and calls:
            record["toolCalls"] = [
                call if call.get("result") else self._call(settled[str(call.get("id"))], item)
                for call in calls
                if isinstance(call, dict) and (call.get("result") or str(call.get("id")) in settled)
            ]
            self._calls.taken.update(str(call.get("id")) for call in record["toolCalls"])
        elif settled:
            record["content"] = _text(Step(parts))
            record["toolCalls"] = [self._call(part, item) for part in settled.values()]
        return record

    def _call(self, part: Part, item: MessageReading) -> Record:
        name, result = call_name(part), call_result(part)
        call_id = self._calls.take(str(part.get("toolCallId") or name))
        response = {"error": result.text} if result.failed else {"output": result.text}
        answer = {"functionResponse": {"id": call_id, "name": name, "response": response}}
        files = [block for file in result.files if (block := _content(file)) is not None]
        return {
            "id": call_id,
            "name": name,
            "args": call_input(part),
            "result": [answer, *files],
            "status": "error" if result.failed else "success",
            "timestamp": iso(item.message["updated_at"]),
            "resultDisplay": result.text[:2000],
            "displayName": name,
            "description": "",
        }


def _record(item: MessageReading, kind: str, content: Any) -> Record:
    message = item.message
    return {
        "id": message["id"],
        "timestamp": iso(message["created_at"]),
        "type": kind,
        "content": content,
    }


def _leading_text(content: list[Any]) -> str:
    """Return the joined texts of a record's content."""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _compacted(item: MessageReading, summary: str) -> Record:
    """Return a summary in the form of Gemini CLI's ``/compress``.

    The model's acknowledgement, which follows it there, is left out: no model wrote one.
    """
    marked = summary if _SNAPSHOT in summary else f"{_SNAPSHOT}\n{summary}\n</state_snapshot>"
    return _record(item, "user", [{"text": marked}])


def _is_response(record: Record) -> bool:
    content = record.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and "functionResponse" in part for part in content
    )


def _told(parts: list[Part], *, aside: bool) -> list[Record]:
    """Return the content of a user's message, such that Gemini CLI sends it.

    Text that begins like a command would not be sent; it is put in a tag.
    """
    parts = as_aside(parts) if aside else parts
    content = [block for part in parts if (block := _content(part)) is not None]
    text = "".join(block.get("text", "") for block in content)
    if text.lstrip().startswith(_NOT_SENT):
        for block in content:
            if "text" in block:
                block["text"] = wrapped(block["text"], "prompt")
    return content


def _content(part: Part) -> Record | None:
    """Return a text or file part as content; None for parts not sent to a model."""
    if part.get("type") == "text":
        text = part.get("text")
        return {"text": text} if isinstance(text, str) and text.strip() else None
    if part.get("type") != "file":
        return None
    inline = inline_data(part)
    if inline is not None:
        return {"inlineData": {"mimeType": inline[0], "data": inline[1]}}
    return {"text": file_name(part)}


def _text(step: Step) -> str:
    said = [part for part in step.said if part.get("type") in ("text", "file")]
    return "\n\n".join(
        part["text"] if part.get("type") == "text" else file_name(part) for part in said
    )


def _thoughts(step: Step, timestamp: str) -> list[Record]:
    found = []
    for part in step.said:
        if part.get("type") == "reasoning":
            head, _, rest = str(part.get("text", "")).partition("\n\n")
            named = head.startswith("**") and head.endswith("**") and len(head) > 4
            found.append(
                {
                    "subject": head[2:-2] if named else "",
                    "description": rest if named else part["text"],
                    "timestamp": timestamp,
                }
            )
    return found


def _tokens(usage: object) -> Record | None:
    """Return the five token buckets in Gemini CLI's form."""
    if not isinstance(usage, dict):
        return None
    counts = whole_counts(usage)
    return {
        "input": counts["input"] + counts["cache_read"] + counts["cache_write"],
        "output": counts["output"],
        "cached": counts["cache_read"],
        "thoughts": counts["reasoning"],
        "tool": 0,
        "total": sum(counts.values()),
    }
