"""Crush's rows as messages: one answer for each step of the model, with its calls' results.

Source: the Crush format page, section 3. A result is a row of its own, which the call's part
takes up; rows are in the order of their second, then of their writing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.plain_parts import data_part, settle_call, text_part
from store.sources.base.row_reader import Row
from store.sources.base.row_session import RowSession
from store.sources.base.stated_calls import file_data
from store.sources.base.values import mapping, string, utc_ms

DELEGATING = ("agent", "agentic_fetch")
"""The tools that start a session of their own."""
_DENIED = "User denied permission"
_CANCELLED = "Error: user cancelled assistant tool calling"
_EXIT = re.compile(r"\nExit code (\d{1,9})\s*\Z|\AExit code (\d{1,9})\s*\Z")
_TOO_LONG = "The previous session was interrupted because it got too long"
"""Begins the prompt with which Crush goes on by itself after it summed up."""
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


class Messages:
    """What a session's rows become."""

    def __init__(
        self, session: RowSession, children: Collection[str], summaries: Collection[str]
    ) -> None:
        """Start with no messages.

        Args:
            session: Takes records and problems.
            children: Ids of the sessions that calls of this one started.
            summaries: Ids of the rows that sum up what was before them.
        """
        self.session, self.children, self.summaries = session, children, summaries
        self.messages: list[MessageDraft] = []
        self.finish: dict[str, dict[str, Any]] = {}
        """By message: how its step ended."""
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}

    def add(self, row: Row) -> None:
        """Take the next row."""
        number = self.session.keep("messages", row | {"parts": decoded(row.get("parts"))})
        parts = self.session.listed(f"message {row['id']}", row.get("parts"))
        at = utc_ms(row.get("created_at")) or 0
        ended = max(at, utc_ms(row.get("updated_at")) or 0, utc_ms(row.get("finished_at")) or 0)
        if row.get("role") == "tool" and parts is not None:
            self._results(row, parts, at, number)
            return
        role = _ROLES.get(str(row.get("role")), "system")
        if role == "user" and parts:
            parts = self._shell_lines(row, parts, at, number)
            if parts is None:
                return
        draft = MessageDraft(str(row["id"]), role, at, ended, records=(number,))
        self.messages.append(draft)
        if parts is None:
            details = {"text": string(row.get("parts")) or ""}
            event = {"name": "unreadable message", "details": details}
            draft.parts.append(data_part("event", event, at, number))
            parts = []
        for each in parts:
            kind, data = string(mapping(each).get("type")), mapping(mapping(each).get("data"))
            self._part(draft, kind, data if kind else mapping(each), number)
        if role == "assistant":
            self._describe_answer(draft, row)
        elif role == "user":
            _describe_prompt(draft)
        elif row.get("role") != "system":
            _extra(draft)["role"] = string(row.get("role")) or "none"

    def _shell_lines(
        self, row: Row, parts: list[Any], at: int, number: int
    ) -> list[Any] | None:
        """Add the shell lines that a person typed in a row, and what each printed.

        Args:
            row: The row.
            parts: Its parts.
            at: Epoch ms.
            number: Its record.

        Returns:
            The other parts; None where nothing else was typed.
        """
        lines = [each for each in parts if mapping(each).get("type") == "shell_command"]
        for place, each in enumerate(lines, 1):
            data, name = mapping(each.get("data")), f"{row['id']}:shell{place}"
            command, printed = (string(data.get(key)) or "" for key in ("command", "output"))
            said: list[tuple[str, str, dict[str, Any]]] = [(name, command, {"shell": command})]
            extra: dict[str, Any] = {"output": True}
            if type(data.get("exit_code")) is int:
                extra["exit_code"] = data["exit_code"]
            said.append((f"{name}:output", printed, extra))
            for source_id, text, own in said:
                metadata = {"origin": "shell", "backscroll": own}
                words = [text_part(text, at, number)]
                self.messages.append(MessageDraft(source_id, "user", at, at, metadata, words))
        rest = [each for each in parts if each not in lines]
        typed = any(mapping(each).get("type") != "finish" for each in rest)
        return rest if typed or not lines else None

    def _part(
        self, draft: MessageDraft, kind: str | None, data: dict[str, Any], number: int
    ) -> None:
        at = draft.created_at
        if kind == "text":
            draft.parts.append(text_part(string(data.get("text")) or "", at, number))
        elif kind == "reasoning":
            if string(data.get("thinking")):
                draft.parts.append(_reasoning(data, at, number))
        elif kind == "tool_call":
            self._call(draft, data, number)
        elif kind in ("binary", "image_url"):
            file = file_data(_file(data))
            draft.parts.append(PartDraft("file", file, at, at, records=(number,)))
        elif kind == "finish":
            self.finish[draft.source_id] = data
        else:
            details = {"details": data} if data else {}
            event = {"name": kind or "part", **details}
            draft.parts.append(data_part("event", event, at, number))

    def _call(self, draft: MessageDraft, data: dict[str, Any], number: int) -> None:
        name, given = string(data.get("name")) or "unknown", data.get("input")
        call_id = string(data.get("id")) or f"{draft.source_id}:{len(draft.parts)}"
        settled = data.get("finished") is not False
        made: dict[str, Any] = {
            "type": f"tool-{name}", "toolCallId": call_id,
            "state": "input-available" if settled else "input-streaming", "input": {},
        }  # fmt: skip
        value = decoded(given)
        if isinstance(value, str):
            if value:
                made["rawInput"] = value
        elif value is not None:
            made["input"] = value
        if data.get("provider_executed") is True:
            made["providerExecuted"] = True
        part = PartDraft(made["type"], made, draft.created_at, draft.updated_at, call_id,
                         made["state"], (number,))  # fmt: skip
        draft.parts.append(part)
        self._calls[call_id] = part, draft
        if name in DELEGATING:
            child = f"{draft.source_id}$${call_id}"
            if child in self.children:
                extra = {"child_session_source_id": child}
                made["resultProviderMetadata"] = {"backscroll": extra}

    def _results(self, row: Row, parts: list[Any], at: int, number: int) -> None:
        """Give the calls what a row of results says; what answers no call is a message."""
        alone: MessageDraft | None = None
        taken = False
        for each in parts:
            kind, data = mapping(each).get("type"), mapping(mapping(each).get("data"))
            if kind == "finish":
                continue
            call_id = string(data.get("tool_call_id")) if kind == "tool_result" else None
            known = self._calls.get(call_id or "")
            if known is not None:
                part, owner = known
                _settle(part, data, at, number)
                owner.updated_at = max(owner.updated_at, part.updated_at)
                taken = True
                continue
            if alone is None:
                alone = MessageDraft(str(row["id"]), "assistant", at, at, records=(number,))
                self.messages.append(alone)
            if call_id is None:
                self._part(alone, string(kind), data, number)
                continue
            self.session.complain(f"result {row['id']} is of call {call_id}, which is missing")
            self._call(alone, {"id": call_id, "name": data.get("name"), "input": "{}"}, number)
            _settle(alone.parts[-1], data, at, number)
        if alone is None and not taken:
            alone = MessageDraft(str(row["id"]), "system", at, at, records=(number,))
            self.messages.append(alone)

    def _describe_answer(self, draft: MessageDraft, row: Row) -> None:
        model = string(row.get("model"))
        if model is not None:
            provider = string(row.get("provider")) or "unknown"
            draft.metadata["model"] = {"provider_id": provider, "model_id": model}
        finish = self.finish.get(draft.source_id, {})
        reason = string(finish.get("reason"))
        if reason is not None:
            _extra(draft)["finish_reason"] = reason
        if reason == "error":
            title = string(finish.get("message")) or "error"
            said = {"name": title, "message": string(finish.get("details")) or title}
            draft.parts.append(data_part("error", said, draft.updated_at, *draft.records))
            _extra(draft)["error"] = title
        elif reason == "canceled":
            _extra(draft)["aborted_at"] = draft.updated_at
        if draft.source_id in self.summaries:
            _sum_up(draft)

    def mark_automatic(self) -> None:
        """Say of the summaries that Crush made them by itself where its next prompt does."""
        summary: PartDraft | None = None
        for message in self.messages:
            for part in message.parts:
                if part.type == "data-compaction":
                    summary = part
            if message.role == "user":
                if summary is not None and message.metadata.get("origin") == "meta":
                    summary.data["data"]["auto"] = True
                summary = None


def _extra(draft: MessageDraft) -> dict[str, Any]:
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    return extra


def _reasoning(data: dict[str, Any], at: int, number: int) -> PartDraft:
    made: dict[str, Any] = {"type": "reasoning", "text": data["thinking"], "state": "done"}
    began, ended = utc_ms(data.get("started_at")), utc_ms(data.get("finished_at"))
    if began and ended:
        took = {"duration_ms": max(0, ended - began)}
        made["providerMetadata"] = {"backscroll": took}
    began = began or at
    return PartDraft("reasoning", made, began, max(began, ended or 0), records=(number,))


def _file(data: dict[str, Any]) -> dict[str, Any]:
    """Return an attached file or picture as ``{mime, url, filename?}``."""
    url = string(data.get("url"))
    if url is not None:
        head = re.match(r"data:([\w.+/-]+)[;,]", url)
        return {"mime": head[1] if head else "image/*", "url": url}
    mime = string(data.get("MIMEType")) or "application/octet-stream"
    path = string(data.get("Path"))
    file = {"mime": mime, "url": f"data:{mime};base64,{string(data.get('Data')) or ''}"}
    if path is not None:
        file["filename"] = re.split(r"[/\\]", path)[-1] or path
    return file


def _describe_prompt(draft: MessageDraft) -> None:
    texts = (part.data["text"] for part in draft.parts if part.type == "text")
    made = next(texts, "").startswith(_TOO_LONG)
    draft.metadata["origin"] = "meta" if made else "human"


def _settle(part: PartDraft, data: dict[str, Any], at: int, number: int) -> None:
    """Give a call its result."""
    text = data.get("content") if isinstance(data.get("content"), str) else ""
    assert isinstance(text, str)
    extra: dict[str, Any] = {}
    status, shown = "ok", text
    if data.get("is_error") is not True:
        shown = _output(text, data)
        stated = _EXIT.search(text)
        if stated and part.type == "tool-bash":
            extra["exit_code"] = int(stated[1] or stated[2])
    elif text.startswith(_DENIED):
        status = "denied"
    else:
        status = "interrupted" if text.startswith(_CANCELLED) else "error"
    structured = decoded(data.get("metadata") or None)
    if isinstance(structured, dict) and structured:
        began, ended = utc_ms(structured.get("start_time")), utc_ms(structured.get("end_time"))
        if began and ended:
            extra["duration_ms"] = max(0, ended - began)
        extra["structured"] = {
            key: value for key, value in structured.items()
            if not (key == "output" and value == text)
        }  # fmt: skip
    # Of several results the last one counts.
    for key in ("output", "errorText", "approval"):
        part.data.pop(key, None)
    part.tool_state = "input-available"
    settle_call(part, status, shown, at, number, extra)


def _output(text: str, data: dict[str, Any]) -> Any:
    """Return a result: its text, or with the picture that it brought a list."""
    body = string(data.get("data"))
    if body is None:
        return text
    mime = string(data.get("mime_type")) or "application/octet-stream"
    url = body if body.startswith("data:") else f"data:{mime};base64,{body}"
    return [{"type": "text", "text": text}, file_data({"mime": mime, "url": url})]


def _sum_up(draft: MessageDraft) -> None:
    """Make an answer the marker of a compaction, with its text as the summary."""
    texts = [part for part in draft.parts if part.type == "text" and part.data["text"].strip()]
    if not texts:
        return
    words = "\n\n".join(part.data["text"] for part in texts)
    body = {"summary": words, "tail_start_id": None, "auto": False}
    made = data_part("compaction", body, texts[0].created_at, *texts[0].records)
    first = draft.parts.index(texts[0])
    draft.parts = [part for part in draft.parts if part not in texts]
    draft.parts.insert(first, made)
    draft.metadata["compaction"] = True
