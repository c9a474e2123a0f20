"""The folder of a session of Kiro's third engine to its draft.

Source: the Kiro format page, section "K3". The order of the file counts. A tombstone takes records
back: for the person too where a checkpoint was restored, for the model alone where it compacted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.growing import Depends, GrowingFile
from store.sources.base.json_lines import Record
from store.sources.base.plain_parts import data_part, reasoning_part, text_part
from store.sources.base.protocol import Library
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, number, string
from store.sources.kiro.relatives import Parent, converted_from
from store.sources.kiro.talk import (
    KIND,
    Ended,
    Talk,
    call_of,
    credits_of,
    image_part,
    model_of,
    time_ms,
)

STATE = "session.json"
BELOW = "sub-executions"
_NO_TITLE = "New Session"
_QUIET = frozenset({
    "turn_start", "session_start", "session_metadata", "pending_interaction",
    "interaction_resolved", "steering_inclusion", "ContextualHookInvoked", "session_event",
    "sub_agent_progress", "agent_note", "usage_summary", "turn_end", "tombstone",
})  # fmt: skip
"""Types that say nothing to show."""
_MODEL_ONLY = "summarization"


class Files(NamedTuple):
    """The files of a session.

    Attributes:
        lines: The records of its messages.
        records: All lines of messages.
        state: The document that tells what the session is.
        below: Files of what its subagents did, by their ids.
    """

    lines: list[Record]
    records: list[bytes]
    state: SideFile
    below: Mapping[str, GrowingFile]


def folder_draft(
    path: str, files: Files, library: Library, depends: Depends
) -> SessionDraft | None:
    """Return the session of a folder; None where nothing was said in it.

    Args:
        path: The file of its messages.
        files: What its files hold.
        library: Has the sessions whose files are gone.
        depends: Takes what it would want to know of others.
    """
    said, folder = files.state.data, os.path.dirname(path)
    taken = _Taken(files)
    if not any(one.role != "system" for one in taken.talk.found):
        return None
    name = string(said.get("id")) or os.path.basename(folder)
    times = taken.times
    created = time_ms(said.get("createdAt")) or min(times, default=0)
    folders = said.get("workspacePaths")
    places = [one for one in (folders if isinstance(folders, list) else ()) if string(one)]
    draft = SessionDraft(
        name, path, KIND, created,
        time_ms(said.get("lastModifiedAt")) or max(times, default=0) or created,
        workspace_root=places[0] if places else None, messages=taken.talk.found,
        model=model_of(said.get("modelId")), tells_title=files.state.body is not None,
        records=taken.records,
    )  # fmt: skip
    title = string(said.get("title"))
    if title is not None and (title != _NO_TITLE or said.get("titleSetByUser") is True):
        by_hand = said.get("titleSetByUser") is True
        draft.title, draft.title_from = shortened(title), "user" if by_hand else "title"
    else:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    theirs = _link(draft, said, library, depends)
    extra: dict[str, Any] = {"folders": places}
    spent = taken.credits(theirs)
    if spent:
        extra["credits"] = spent
    for key in ("agentMode", "effortLevel"):
        if string(said.get(key)):
            extra[key] = said[key]
    draft.metadata["backscroll"] = extra
    activity = taken.activity(said.get("status"), draft.updated_at)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


class _Taken:
    """The messages of a session's records.

    Attributes:
        times: What the records tell, epoch ms.
        records: Those of all files.
    """

    def __init__(self, files: Files) -> None:
        self.talk = Talk()
        state = files.state.body
        self.records = [*files.records, *([state] if state is not None else [])]
        self.times: list[int] = []
        self._below = files.below
        self._answer: MessageDraft | None = None
        self._spent: list[tuple[str, MessageDraft | None, float]] = []
        self._engine: set[str] = set()
        self._subagents: dict[str, PartDraft] = {}
        self._waiting: set[str] = set()
        self._end: str | None = None
        self._begun = False
        self._place = (0, False)
        self._hidden, self._forgotten = _taken_back(files.lines)
        for nth, line in enumerate(files.lines):
            self._take(nth, line)

    def _take(self, nth: int, line: Record) -> None:
        data, payload = line.data, mapping(line.data.get("payload"))
        at = time_ms(data.get("timestamp"))
        self.times += [at] if at else []
        self.talk.at = at or self.talk.at
        kind, name = string(payload.get("type")) or "record", string(data.get("id"))
        place = self._hidden.get(nth, 0), nth in self._forgotten
        if place != self._place:
            self._answer, self._place = None, place
        before = len(self.talk.found)
        self._turn(kind, name, payload)
        if kind == "user":
            self._said(name, payload, line.number)
        elif kind == "assistant":
            self._assistant(name, payload, line.number)
        elif kind == "tool_call":
            self._call(name, payload, line.number)
        elif kind == "tool_result":
            self._result(payload, line.number)
        elif kind in ("sub_agent_start", "sub_agent_complete"):
            self._subagent(name, kind, payload, line.number)
        elif kind == "error":
            words = string(payload.get("message")) or string(payload.get("content")) or "error"
            part = data_part("error", {"message": words}, self.talk.at, line.number)
            self.talk.add(name, "system", [part], line.number)
        elif kind not in _QUIET:
            event = {"name": kind, "details": {k: v for k, v in payload.items() if k != "type"}}
            part = data_part("event", event, self.talk.at, line.number)
            self.talk.add(name, "system", [part], line.number)
        for message in self.talk.found[before:]:
            self._mark(message)

    def _mark(self, message: MessageDraft) -> None:
        hidden, forgotten = self._place
        if hidden:
            message.metadata["hidden_at"] = hidden
        if forgotten and message.role != "system":
            message.metadata.setdefault("backscroll", {})["compacted_away"] = True

    def _turn(self, kind: str, name: str | None, payload: dict[str, Any]) -> None:
        """Follow where turns begin and end, what they spent, and what waits for the person."""
        call = string(payload.get("toolCallId")) or string(payload.get("executionId")) or ""
        if kind in ("user", "turn_start"):
            self._begun, self._end = True, None
        elif kind == "usage_summary":
            used = credits_of(payload.get("promptTurnSummaries"), "usage")
            self._spent.append((name or "", self._answer, used))
            if self._answer is not None and used:
                self._answer.metadata.setdefault("backscroll", {})["credits"] = used
        elif kind == "turn_end":
            self._begun, self._end = False, string(payload.get("stopReason"))
            self._waiting.clear()
            if self._answer is not None and self._end is not None:
                extra = self._answer.metadata.setdefault("backscroll", {})
                extra["finish_reason"] = self._end
                if self._end == "cancelled":
                    extra["aborted_at"] = self.talk.at
        elif kind == "pending_interaction":
            self._waiting.add(call)
        elif kind == "interaction_resolved":
            self._waiting.discard(call)

    def _said(self, name: str | None, payload: dict[str, Any], record: int) -> None:
        self._answer = None
        content, at = payload.get("content"), self.talk.at
        words = content if isinstance(content, str) else None
        parts = [text_part(words, at, record)] if words is not None else []
        if words is None and content is not None:
            parts.append(data_part("event", {"name": "content", "details": content}, at, record))
        images = payload.get("images")
        for image in images if isinstance(images, list) else ():
            parts.append(_image(image, at, record))
        for key in ("documents", "contextItems"):
            if payload.get(key):
                parts.append(data_part("event", {"name": key, "details": payload[key]}, at, record))
        origin = "meta" if payload.get("source") == "hook" else "human"
        self.talk.add(name, "user", parts, record, {"origin": origin})

    def _assistant(self, name: str | None, payload: dict[str, Any], record: int) -> None:
        content, kind = payload.get("content"), payload.get("operationType")
        if kind == "Summary":
            self._answer = None
            self.talk.compaction(name, content, record, auto=True)
            return
        if kind == "Reasoning":
            kept = {"model": payload["reasoningModelId"]} if payload.get("reasoningModelId") else {}
            self._think(name, reasoning_part(content, self.talk.at, record, KIND, kept), record)
            return
        text = text_part(content if isinstance(content, str) else "", self.talk.at, record)
        has_text = self._answer is not None and any(
            part.type == "text" for part in self._answer.parts)
        if has_text:
            self._answer = None
        self._put(name, text, record)

    def _think(self, name: str | None, part: PartDraft, record: int) -> None:
        """Put a thought before the text that it led to, which is written first."""
        if self._answer is not None and self._answer.parts[-1].type == "text":
            self._answer.parts.insert(len(self._answer.parts) - 1, part)
        else:
            self._put(name, part, record)

    def _put(self, name: str | None, part: PartDraft, record: int) -> None:
        """Put a part into the answer that is being written, else into a new one."""
        if self._answer is None:
            self._answer = self.talk.add(name, "assistant", [part], record)
            return
        self._answer.parts.append(part)
        self._answer.updated_at = max(self._answer.updated_at, self.talk.at)
        self.talk.know(self._answer, [part])

    def _call(self, name: str | None, payload: dict[str, Any], record: int) -> None:
        call_id = string(payload.get("toolCallId")) or name or f"call-{record}"
        if payload.get("executionId") == call_id:
            self._engine.add(call_id)
            details = {key: payload.get(key) for key in ("toolName", "args", "status")}
            event = {"name": "engine call", "details": details}
            part = data_part("event", event, self.talk.at, record)
            self.talk.add(name, "system", [part], record)
            return
        part = call_of(payload.get("toolName"), call_id, payload.get("args"),
                         self.talk.at, record)  # fmt: skip
        self._put(name, part, record)
        status = payload.get("status")
        if status == "denied":
            self.talk.settle(call_id, "denied", "", record)
        elif status in ("pending", "awaiting_approval"):
            self._waiting.add(call_id)

    def _result(self, payload: dict[str, Any], record: int) -> None:
        call_id = string(payload.get("toolCallId")) or ""
        if call_id in self._engine:
            return
        self._waiting.discard(call_id)
        ended: Ended = "ok" if payload.get("success") is not False else "error"
        took = number(payload.get("durationMs"))
        extra = {"duration_ms": took} if took > 0 else {}
        content = payload.get("content")
        self.talk.settle(call_id, ended, "" if content is None else content, record, extra)

    def _subagent(
        self, name: str | None, kind: str, payload: dict[str, Any], record: int
    ) -> None:
        """Show what a subagent was asked and answered, and in a message of its own what it did."""
        own = string(payload.get("subSessionId")) or name or ""
        told = {key: payload[key] for key in
                ("subAgentName", "prompt", "explanation", "status", "response")
                if string(payload.get(key))}  # fmt: skip
        known = self._subagents.get(own)
        if known is not None:
            known.data["data"]["details"] |= told
            known.records = tuple(dict.fromkeys((*known.records, record)))
            known.updated_at = max(known.updated_at, self.talk.at)
            return
        event = {"name": "subagent", "details": {"id": own, **told}}
        part = data_part("event", event, self.talk.at, record)
        self._subagents[own] = part
        self._put(name, part, record)
        file = self._below.get(own)
        if file is not None and file.lines:
            first = len(self.records)
            self.records += file.records
            did = {"name": "steps of the subagent", "details": {"id": own, "steps": _steps(file)}}
            numbers = range(first, len(self.records))
            part = data_part("event", did, self.talk.at, *numbers)
            self.talk.add(f"{own}:steps", "system", [part], first)

    def credits(self, theirs: frozenset[str]) -> float:
        """Return what the session's own turns spent, those too that were taken back.

        Args:
            theirs: The ids of the parent's records.
        """
        own = (used for name, answer, used in self._spent if name not in theirs
               and (answer is None or answer.inherited_from is None))  # fmt: skip
        return round(sum(own), 9)

    def activity(self, status: object, at: int) -> dict[str, Any] | None:
        """Return what the end of the file says, and the session's own word."""
        if self._begun or status in ("in_progress", "waiting_on_user"):
            if self._waiting:
                return {"state": "waiting-approval", "from": "stored", "since": at}
            if self._begun:
                return {"state": "running", "from": "guessed", "since": at}
        if status == "failed" or self._end in ("error", "refusal"):
            return {"state": "error", "from": "stored", "since": at}
        if self._end == "cancelled":
            return {"state": "interrupted", "from": "stored", "since": at}
        return None


def _taken_back(lines: Iterable[Record]) -> tuple[dict[int, int], set[int]]:
    """Return which records were taken back and when, and which only the model lost."""
    valid: list[tuple[int, str | None]] = []
    hidden: dict[int, int] = {}
    forgotten: set[int] = set()
    at = 0
    for nth, line in enumerate(lines):
        payload = mapping(line.data.get("payload"))
        at = time_ms(line.data.get("timestamp")) or at
        if payload.get("type") != "tombstone":
            valid.append((nth, string(line.data.get("id"))))
            continue
        target = payload.get("effectiveFromMessageId")
        place = next((place for place, (_, name) in enumerate(valid)
                      if name is not None and name == target), None)  # fmt: skip
        if place is None:
            continue
        gone = [each for each, _ in valid[place:]]
        del valid[place:]
        if payload.get("kind") == _MODEL_ONLY:
            forgotten.update(gone)
        else:
            hidden |= dict.fromkeys(gone, max(at, 1))
    return hidden, forgotten


def _steps(file: GrowingFile) -> list[dict[str, Any]]:
    """Return what a subagent said and called, from its own file."""
    steps: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    for line in file.lines:
        payload = mapping(line.data.get("payload"))
        kind = payload.get("type")
        if kind == "assistant" and string(payload.get("content")):
            steps.append({"text": payload["content"]})
        elif kind == "tool_call":
            steps.append({"tool": payload.get("toolName"), "input": payload.get("args")})
            calls[str(payload.get("toolCallId"))] = steps[-1]
        elif kind == "tool_result":
            call = calls.get(str(payload.get("toolCallId")))
            if call is not None:
                call |= {"output": payload.get("content"), "ok": payload.get("success")}
    return steps


def _image(image: object, at: int, record: int) -> PartDraft:
    bag = mapping(image)
    data = string(bag.get("data")) or string(bag.get("base64"))
    if data is None:
        return image_part(image, at, record)
    media = string(bag.get("mimeType")) or string(bag.get("mediaType")) or "image/png"
    url = data if data.startswith("data:") else f"data:{media};base64,{data}"
    file = {"type": "file", "mediaType": media, "url": url}
    return PartDraft("file", file, at, at, records=(record,))


def _link(
    draft: SessionDraft, said: dict[str, Any], library: Library, depends: Depends
) -> frozenset[str]:
    """Say what the session was made from; return the ids of the parent's records."""
    sessions = os.path.dirname(os.path.dirname(os.path.dirname(draft.path)))
    converted = converted_from(draft.source_id)
    parent = string(said.get("parentSessionId")) or converted
    if parent is None or parent == draft.source_id:
        return frozenset()
    if said.get("createdReason") == "subagent":
        draft.lineage = LineageDraft("subagent", parent)
        return frozenset()
    original = Parent(sessions, parent, library, depends)
    theirs = original.ids()
    copied = [one for one in draft.messages if one.source_id in theirs]
    for message in copied:
        message.inherited_from = message.source_id
    if not copied and parent == converted:
        copied = _converted(draft.messages, original.said())
    draft.lineage = LineageDraft("fork", parent, copied[-1].inherited_from if copied else None)
    return theirs


def _converted(
    messages: list[MessageDraft], said: list[tuple[str, str]]
) -> list[MessageDraft]:
    """Return the messages that were converted from another engine, known by their words."""
    copied: list[MessageDraft] = []
    left = list(said)
    for message in messages:
        words = "".join(part.data["text"] for part in message.parts if part.type == "text")
        if message.role == "system":
            continue
        while left and left[0][1] != words and not left[0][1]:
            left.pop(0)
        if not left or left[0][1] != words:
            break
        message.inherited_from = left.pop(0)[0] or None
        copied.append(message)
    return copied
