"""Zed's messages to drafts: tagged ones since autumn 2025, and those of three versions before.

Source: the Zed format page, sections "The JSON" and "Older JSON". Messages have no times. Calls
are paired within one answer, as ids come again; until spring 2025 results were in the next prompt.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.plain_parts import data_part, is_open, settle_call, text_part
from store.sources.base.values import mapping, string

_DENIED = "Permission to run tool denied by user"
_CANCELLED = "Tool canceled by user"
_EXIT_CODE = re.compile(r"failed with exit code (\d{1,9})")


class Messages:
    """The messages of one thread."""

    def __init__(self, at: int) -> None:
        """Start without messages.

        Args:
            at: When the thread was created, epoch ms.
        """
        self._at = at
        self._found: list[MessageDraft] = []
        self._names: set[str] = set()
        self._prompt = ""
        self._since = 0
        self._open: dict[str, PartDraft] = {}
        self._compacted = 0

    def finished(self) -> list[MessageDraft]:
        """Return the messages; those before the last compaction are marked."""
        for message in self._found[: self._compacted]:
            if message.role != "system":
                message.metadata.setdefault("backscroll", {})["compacted_away"] = True
        return self._found

    def activity(self, since: int) -> dict[str, Any] | None:
        """Return what the end of the thread says; None where its turn ended."""
        last = next((each for each in reversed(self._found) if each.role != "system"), None)
        if last is None:
            return None
        calls = [part for part in last.parts if part.tool_call_id]
        if last.role == "user" or any(is_open(part) for part in calls):
            return {"state": "running", "from": "guessed", "since": since}
        if any(_status(part) == "interrupted" for part in calls):
            return {"state": "interrupted", "from": "stored", "since": since}
        return None

    def take(self, place: int, message: object) -> None:
        """Take the next message of the thread.

        Args:
            place: Its place, from 0; its record is the next number.
            message: The message, of any version.
        """
        record, data = place + 1, mapping(message)
        if "role" in data:
            self._older(data, record)
        elif "User" in data:
            self._user(mapping(data["User"]), record)
        elif "Agent" in data:
            self._agent(mapping(data["Agent"]), record)
        elif "Compaction" in data:
            self._compaction(mapping(data["Compaction"]), record)
        elif message == "Resume":
            self._event("continue", {}, record)
        else:
            self._event(next(iter(data), "message"), message, record)

    def _add(
        self, name: str | None, role: Role, metadata: dict[str, Any], parts: list[PartDraft],
        record: int,
    ) -> None:
        """Add a message; one without an id is named by its place behind its prompt."""
        self._since += 1
        name = name or f"{self._prompt}:{self._since}"
        if name in self._names:
            name = f"{name}:{record}"
        self._names.add(name)
        draft = MessageDraft(name, role, self._at, self._at, metadata, parts)
        if not parts:
            draft.records = (record,)
        self._found.append(draft)

    def _event(self, name: str, details: object, record: int) -> None:
        part = data_part("event", {"name": name, "details": details}, self._at, record)
        self._add(None, "system", {}, [part], record)

    def _compaction(self, data: dict[str, Any], record: int) -> None:
        body = {"summary": string(data.get("Summary")) or "", "tail_start_id": None, "auto": True}
        self._compacted = len(self._found)
        part = data_part("compaction", body, self._at, record)
        self._add(None, "system", {"compaction": True}, [part], record)

    def _user(self, data: dict[str, Any], record: int) -> None:
        parts: list[PartDraft] = []
        said: list[str] = []
        for tag, value in _tagged(data.get("content")):
            if tag == "Text":
                said.append(value if isinstance(value, str) else "")
            elif tag == "Mention":
                name, content = _mentioned(mapping(value))
                parts.append(self._context(name, content, record))
            elif tag == "Image":
                parts.append(self._image(mapping(value), record))
            else:
                parts.append(self._unknown(tag, value, record))
        if said:
            parts.insert(0, text_part("".join(said), self._at, record))
        self._begin(string(data.get("id")), record)
        self._add(self._prompt, "user", {"origin": "human"}, parts, record)

    def _begin(self, name: str | None, record: int) -> None:
        self._prompt, self._since = name or f"{record}", -1

    def _context(self, name: str, content: str, record: int) -> PartDraft:
        details = {"name": name, "content": content}
        return data_part("event", {"name": "context", "details": details}, self._at, record)

    def _unknown(self, tag: str, value: object, record: int) -> PartDraft:
        return data_part("event", {"name": tag, "details": value}, self._at, record)

    def _image(self, image: dict[str, Any], record: int) -> PartDraft:
        return PartDraft("file", _file(image), self._at, self._at, records=(record,))

    def _reasoning(self, text: object, kept: dict[str, Any], record: int) -> PartDraft:
        data: dict[str, Any] = {
            "type": "reasoning", "text": text if isinstance(text, str) else "", "state": "done",
        }  # fmt: skip
        kept = {key: value for key, value in kept.items() if value}
        if kept:
            data["providerMetadata"] = {"zed": kept}
        return PartDraft("reasoning", data, self._at, self._at, records=(record,))

    def _agent(self, data: dict[str, Any], record: int) -> None:
        results = mapping(data.get("tool_results"))
        parts: list[PartDraft] = []
        for nth, (tag, value) in enumerate(_tagged(data.get("content"))):
            if tag == "Text":
                parts.append(text_part(value if isinstance(value, str) else "", self._at, record))
            elif tag == "Thinking":
                thought = mapping(value)
                kept = {"signature": thought.get("signature")}
                parts.append(self._reasoning(thought.get("text"), kept, record))
            elif tag == "RedactedThinking":
                parts.append(self._reasoning("", {"redacted": value}, record))
            elif tag == "ToolUse":
                part = self._call(mapping(value), f"{record}:{nth}", record)
                parts.append(part)
                result = results.get(part.tool_call_id or "")
                if result is not None:
                    settle(part, mapping(result), record)
            else:
                parts.append(self._unknown(tag, value, record))
        self._add(None, "assistant", {}, parts, record)

    def _call(self, call: dict[str, Any], name: str, record: int) -> PartDraft:
        kind = f"tool-{string(call.get('name')) or 'unknown'}"
        call_id, given = string(call.get("id")) or name, call.get("input")
        torn = call.get("is_input_complete") is False
        state = "input-streaming" if torn else "input-available"
        data: dict[str, Any] = {"type": kind, "toolCallId": call_id, "state": state,
                                "input": {} if given is None else given}  # fmt: skip
        if torn and string(call.get("raw_input")):
            data["rawInput"] = call["raw_input"]
        return PartDraft(kind, data, self._at, self._at, call_id, state, (record,))

    def _older(self, data: dict[str, Any], record: int) -> None:
        """Take a message of versions before 0.3.0."""
        parts: list[PartDraft] = []
        segments = data.get("segments")
        text = string(data.get("text"))
        given = [{"type": "text", "text": text}] if text else []
        for segment in map(mapping, segments if isinstance(segments, list) else given):
            kind = string(segment.get("type")) or "segment"
            if kind == "text":
                if string(segment.get("text")):
                    parts.append(text_part(segment["text"], self._at, record))
            elif kind == "thinking":
                kept = {"signature": segment.get("signature")}
                parts.append(self._reasoning(segment.get("text"), kept, record))
            elif kind == "RedactedThinking":
                parts.append(self._reasoning("", {"redacted": segment.get("data")}, record))
            else:
                parts.append(self._unknown(kind, segment, record))
        if string(data.get("context")):
            parts.append(self._context("context", data["context"], record))
        role, known = data.get("role"), data.get("id")
        if role == "assistant":
            self._open = {}
            uses = data.get("tool_uses")
            for nth, use in enumerate(map(mapping, uses if isinstance(uses, list) else ())):
                part = self._call(use, f"{record}:{nth}", record)
                parts.append(part)
                self._open[part.tool_call_id or ""] = part
        folded = self._older_results(data, parts, record)
        name = str(known) if type(known) is int else None
        if role == "assistant":
            self._add(name, "assistant", {}, parts, record)
        elif parts or not folded:
            hidden = role != "user" or data.get("is_hidden") is True
            self._begin(name, record)
            origin = "meta" if hidden else "human"
            self._add(self._prompt, "user", {"origin": origin}, parts, record)

    def _older_results(
        self, data: dict[str, Any], parts: list[PartDraft], record: int
    ) -> bool:
        """Give the last answer's calls their results; return whether there were some.

        Args:
            data: The message.
            parts: Takes results whose calls are missing.
            record: The number of its record.
        """
        results = data.get("tool_results")
        given = [mapping(each) for each in results] if isinstance(results, list) else []
        for nth, result in enumerate(given):
            part = self._open.pop(string(result.get("tool_use_id")) or "", None)
            if part is None:
                details = {"result": result}
                parts.append(self._unknown(f"result {nth + 1} without its call", details, record))
                continue
            settle(part, result, record)
        return bool(given)


def _status(part: PartDraft) -> object:
    said = mapping(part.data.get("resultProviderMetadata"))
    return mapping(said.get("backscroll")).get("status")


def settle(part: PartDraft, result: dict[str, Any], record: int) -> None:
    """Put a result into the part of its call.

    Args:
        part: The call's part.
        result: What Zed stored of it; it has no time.
        record: The number of its record.
    """
    shown: Any
    texts, files = _contents(result.get("content"))
    text, output = "\n".join(texts), result.get("output")
    extra: dict[str, Any] = {}
    child = string(mapping(output).get("session_id"))
    if child is not None and part.type == "tool-spawn_agent":
        extra["child_session_source_id"] = child
    status, shown = "ok", text
    if result.get("is_error") is not True:
        shown = text or (output if output is not None else "")
        if files:
            shown = [{"type": "text", "text": text}, *files]
    elif text == _DENIED:
        status = "denied"
    else:
        status = "interrupted" if text == _CANCELLED else "error"
        code = _EXIT_CODE.search(text)
        if code is not None:
            extra["exit_code"] = int(code[1])
        shown = text or string(output) or "error"
    settle_call(part, status, shown, part.updated_at, record, extra)


def _contents(content: object) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts and files of a result: a list, one object, or a string."""
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for each in content if isinstance(content, list) else [content]:
        block = mapping(each)
        text = each if isinstance(each, str) else block.get("Text", block.get("text"))
        if isinstance(text, str):
            texts.append(text)
        elif "Image" in block:
            files.append(_file(mapping(block["Image"])))
    return texts, files


def _file(image: dict[str, Any]) -> dict[str, Any]:
    url = f"data:image/png;base64,{string(image.get('source')) or ''}"
    return {"type": "file", "mediaType": "image/png", "url": url}


def _tagged(content: object) -> list[tuple[str, Any]]:
    """Return the blocks of a message: each is one value by its tag."""
    found: list[tuple[str, Any]] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            found.append((block, {}))
        else:
            found += list(mapping(block).items())[:1]
    return found


def _mentioned(mention: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the content of what a person attached."""
    uri = mention.get("uri")
    tag, said = next(iter(mapping(uri).items()), (uri, None))
    path = mapping(said).get("abs_path") or mapping(said).get("name")
    return string(path) or string(tag) or "", string(mention.get("content")) or ""
