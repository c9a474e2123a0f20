"""Entries of the unified store to messages: who said it, calls with their results.

Source: the Mistral Vibe format page, sections "Unified store" and "Traps". Names of tools are the
qualified ones; calls of programs have no entry of their own.
"""

from __future__ import annotations

import os
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import mapping, ms_or_0, string

_DENIED = frozenset({"tool_denied", "tool_skipped", "tool_rejected"})
_STOPPED = ("cancel", "interrupt", "abort")
_WAITS = frozenset({"pending_approval", "awaiting_approval", "requires_approval"})
_RESULTS = "/tool-results/"


class Entries:
    """The messages of entries.

    Attributes:
        found: The drafts, in order.
        checkpoints: The rewinds among the entries: the first id that each took away, and when.
    """

    def __init__(self, model: dict[str, Any] | None) -> None:
        """Start without messages.

        Args:
            model: The session's model.
        """
        self.found: list[MessageDraft] = []
        self.checkpoints: dict[str, int] = {}
        self._model = model
        self._names: set[str] = set()
        self._answer: MessageDraft | None = None
        self._hidden = 0

    def take(self, entry: dict[str, Any], record: int, *, hidden_at: int = 0) -> None:
        """Take the next entry.

        Args:
            entry: The entry.
            record: The number of its record.
            hidden_at: When a rewind took it away, epoch ms; 0 where it is still there.
        """
        if hidden_at != self._hidden:
            self._answer, self._hidden = None, hidden_at
        at, kind = ms_or_0(entry.get("createdAt")), entry.get("type")
        if kind == "message" and entry.get("role") == "assistant":
            self._said(entry, at, record)
        elif kind == "message":
            self._asked(entry, at, record)
        elif kind == "reasoning":
            self._thought(entry, at, record)
        elif kind == "effect":
            self._put(entry, _effect(entry, at, record), at, record)
        elif kind == "checkpoint":
            self._checkpoint(entry, at, record)
        else:
            event = {"name": str(kind or "entry"), "details": entry}
            self._add(entry, "system", [data_part("event", event, at, record)], at, record)

    def _add(
        self, entry: dict[str, Any], role: Role, parts: list[PartDraft], at: int, record: int
    ) -> MessageDraft:
        name = string(entry.get("id")) or f"entry-{record}"
        own = name if name not in self._names else f"{name}:{record}"
        self._names.add(own)
        draft = MessageDraft(own, role, at, max(at, ms_or_0(entry.get("updatedAt"))), {}, parts)
        if not parts:
            draft.records = (record,)
        if self._hidden:
            draft.metadata["hidden_at"] = self._hidden
        self.found.append(draft)
        return draft

    def _put(self, entry: dict[str, Any], part: PartDraft, at: int, record: int) -> None:
        """Put a part into the answer that is being given, else into a new one."""
        if self._answer is None:
            self._answer = self._add(entry, "assistant", [part], at, record)
            if self._model is not None:
                self._answer.metadata["model"] = self._model
            return
        self._answer.parts.append(part)
        self._answer.updated_at = max(self._answer.updated_at, part.updated_at)

    def _has_text(self) -> bool:
        return self._answer is not None and any(part.type == "text" for part in self._answer.parts)

    def _said(self, entry: dict[str, Any], at: int, record: int) -> None:
        if self._has_text():
            self._answer = None
        parts = _contents(entry.get("content"), at, record) or [text_part("", at, record)]
        for part in parts:
            self._put(entry, part, at, record)
        outcome = mapping(entry.get("outcome"))
        if outcome.get("type") == "discarded" and self._answer is not None:
            extra = self._answer.metadata.setdefault("backscroll", {})
            extra["finish_reason"] = string(outcome.get("cause")) or "discarded"
            extra["aborted_at"] = ms_or_0(entry.get("updatedAt")) or at

    def _thought(self, entry: dict[str, Any], at: int, record: int) -> None:
        if self._has_text():
            self._answer = None
        text = string(entry.get("text"))
        if text is None:
            summary = entry.get("summary")
            lines = summary if isinstance(summary, list) else ()
            text = "\n".join(line for line in lines if isinstance(line, str))
        self._put(entry, reasoning_part(text, at, record), at, record)

    def _asked(self, entry: dict[str, Any], at: int, record: int) -> None:
        self._answer = None
        role: Role = "user" if entry.get("role") == "user" else "system"
        asked = self._add(entry, role, _contents(entry.get("content"), at, record), at, record)
        if role == "user":
            injected = entry.get("injected") is True or entry.get("source") == "injected"
            asked.metadata["origin"] = "meta" if injected else "human"

    def _checkpoint(self, entry: dict[str, Any], at: int, record: int) -> None:
        self._answer = None
        kind, details = string(entry.get("kind")) or "checkpoint", mapping(entry.get("details"))
        if kind != "compaction":
            first = string(details.get("entryId"))
            if kind == "rewind" and first is not None:
                self.checkpoints[first] = at
            event = {"name": kind, "details": {"message": entry.get("message"), **details}}
            self._add(entry, "system", [data_part("event", event, at, record)], at, record)
            return
        for message in self.found:
            if message.role != "system":
                message.metadata.setdefault("backscroll", {})["compacted_away"] = True
        words = string(details.get("summary")) or string(entry.get("message")) or ""
        body = {"summary": words, "tail_start_id": None,
                "auto": details.get("automatic") is True or details.get("auto") is True}
        part = data_part("compaction", body, at, record)
        self._add(entry, "system", [part], at, record).metadata["compaction"] = True


def _contents(content: object, at: int, record: int) -> list[PartDraft]:
    """Return the parts of a message's content."""
    parts: list[PartDraft] = []
    for block in map(mapping, content if isinstance(content, list) else ()):
        kind, text = block.get("type"), block.get("text")
        if kind == "text" and isinstance(text, str):
            parts.append(text_part(text, at, record))
        elif kind == "image" and (string(block.get("data")) or string(block.get("uri"))):
            media = string(block.get("mimeType")) or "image/png"
            data = string(block.get("data"))
            url = f"data:{media};base64,{data}" if data else block["uri"]
            file = {"type": "file", "mediaType": media, "url": url}
            parts.append(PartDraft("file", file, at, at, records=(record,)))
        elif kind == "resource_link" and string(block.get("uri")):
            file = {"type": "file", "url": block["uri"],
                    "mediaType": string(block.get("mimeType")) or "application/octet-stream"}
            if string(block.get("name")):
                file["filename"] = block["name"]
            parts.append(PartDraft("file", file, at, at, records=(record,)))
        else:
            event = {"name": str(kind or "block"), "details": block}
            parts.append(data_part("event", event, at, record))
    return parts


def _effect(entry: dict[str, Any], at: int, record: int) -> PartDraft:
    """Return a tool call with its result, as far as it is there."""
    detail, state = mapping(entry.get("detail")), mapping(entry.get("state"))
    call_id = string(entry.get("id")) or f"entry-{record}"
    name = detail.get("toolName") or entry.get("title")
    part = call_part(name, call_id, detail.get("input"), at, record)
    status, error = string(state.get("status")) or "", mapping(state.get("error"))
    code, words = string(error.get("code")) or "", string(error.get("message")) or ""
    output, extra = _output(state)
    ended = None
    if status == "completed":
        ended = "ok"
    elif status in _WAITS:
        part.data["state"] = part.tool_state = "approval-requested"
        part.data["approval"] = {"id": call_id}
    elif code in _DENIED or (status == "failed" and state.get("decision") == "skip"):
        ended, output = "denied", words
    elif status.startswith(_STOPPED) or any(each in code for each in _STOPPED):
        ended, output = "interrupted", words or "interrupted"
    elif status == "failed":
        ended, output = "error", words or str(output or "error")
    if ended is not None:
        settle_call(part, ended, output, ms_or_0(entry.get("updatedAt")), record, extra)
    return part


def _output(state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a result's own words, and its exit code and the name of the file with all of it."""
    given = mapping(state.get("output"))
    structured = given.get("structured_content")
    bag, extra = mapping(structured), dict[str, Any]()
    if type(bag.get("returncode")) is int:
        extra["exit_code"] = bag["returncode"]
    blocks = given.get("content")
    texts = [mapping(one).get("text") for one in (blocks if isinstance(blocks, list) else ())]
    text = "\n".join(one for one in texts if isinstance(one, str)) or string(
        state.get("outputText")) or ""  # fmt: skip
    saved = _saved(text)
    if saved is not None:
        extra["attachment"] = saved
    if "stdout" in bag or "stderr" in bag:
        said = (bag.get("stdout"), bag.get("stderr"))
        return "\n".join(one for one in said if isinstance(one, str) and one), extra
    return (structured if not text and structured is not None else text), extra


def _saved(text: str) -> str | None:
    """Return the name of the file that has all of a long output, as the excerpt tells."""
    head = text[:2000]
    at = head.find(_RESULTS)
    if not head.startswith("<system>") or at < 0:
        return None
    end = head.find(".json", at)
    return os.path.basename(head[at : end + len(".json")]) if end > 0 else None
