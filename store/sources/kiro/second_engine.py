"""The two files of a session of Kiro's second engine to its draft.

Source: the Kiro format page, section "K2". Lines are written when they are complete, and only
prompts have a time; what a turn spent is in the document beside them.
"""

from __future__ import annotations

import os
import re
from typing import Any

from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.growing import LINES, Depends
from store.sources.base.json_lines import Record
from store.sources.base.plain_parts import data_part, reasoning_part, text_part
from store.sources.base.protocol import Library
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, string, utc_ms
from store.sources.kiro.relatives import Parent
from store.sources.kiro.talk import (
    INTERRUPTED,
    KIND,
    Ended,
    Talk,
    call_of,
    credits_of,
    image_part,
    last_model,
    model_of,
    output_of,
    time_ms,
    tokens_of,
)

_DENIED = "User denied tool execution"
_STEER = re.compile(r"<user_message id=\"steer-[^\"<>]*\">\s*(.*?)\s*</user_message>", re.S)
_KINDS = frozenset({"Prompt", "AssistantMessage", "ToolResults", "Compaction", "Clear",
                    "CancelledPrompt"})  # fmt: skip


def is_line(data: dict[str, Any]) -> bool:
    """Return whether a record is a line of this engine."""
    return data.get("kind") in _KINDS and string(data.get("version")) is not None


def lines_draft(
    path: str, lines: list[Record], records: list[bytes], state: SideFile,
    library: Library, depends: Depends,
) -> SessionDraft | None:
    """Return the session of a file of lines; None where nothing was said in it.

    Args:
        path: The file.
        lines: Its lines that are JSON objects.
        records: All its lines.
        state: The document beside it.
        library: Has the sessions whose files are gone.
        depends: Takes what it would want to know of others.
    """
    taken = _Lines()
    for line in lines:
        taken.take(line.data, line.number)
    messages, said = taken.talk.found, state.data
    if not any(one.role != "system" for one in messages):
        return None
    name = string(said.get("session_id")) or os.path.basename(path).removesuffix(LINES)
    created = time_ms(said.get("created_at")) or min(taken.times, default=0)
    draft = SessionDraft(
        name, path, KIND, created,
        time_ms(said.get("updated_at")) or max(taken.times, default=0) or created,
        workspace_root=string(said.get("cwd")), messages=messages,
        records=[*records, *([state.body] if state.body is not None else [])],
        tells_title=state.body is not None,
    )  # fmt: skip
    title = string(said.get("title"))
    draft.title = shortened(title) if title else first_prompt(messages)
    draft.title_from = "title" if title else FIRST_PROMPT if draft.title else None
    spent = _count(draft, said, _link(draft, said, library, depends))
    session = mapping(said.get("session_state"))
    model = mapping(mapping(session.get("rts_model_state")).get("model_info"))
    draft.model = last_model(draft.messages, model.get("model_id"))
    extra: dict[str, Any] = {"credits": spent} if spent else {}
    if said.get("exported_from_v1"):
        extra["exported_from_v1"] = True
    if string(session.get("agent_name")):
        extra["agent"] = session["agent_name"]
    draft.metadata["backscroll"] = extra
    activity = taken.activity(draft.updated_at)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


class _Lines:
    """The messages of a file's lines.

    Attributes:
        times: When prompts were sent, epoch ms.
    """

    def __init__(self) -> None:
        self.talk = Talk()
        self.times: list[int] = []
        self._last: str | None = None

    def take(self, line: dict[str, Any], record: int) -> None:
        """Take the next line."""
        kind, data = line.get("kind"), mapping(line.get("data"))
        name = string(data.get("message_id"))
        self._last = "said"
        if kind == "Prompt":
            at = utc_ms(mapping(data.get("meta")).get("timestamp"))
            self.times += [at] if at else []
            self.talk.at = at or self.talk.at
            parts = self._parts(data, name, record)
            self.talk.add(name, "user", parts, record, {"origin": "human"})
            self._last = "waits"
        elif kind == "AssistantMessage":
            self._answer(data, name, record)
        elif kind == "ToolResults":
            self._results(data, name, record)
            self._last = "waits"
        elif kind == "Compaction":
            self._compact(data, record)
        elif kind == "Clear":
            self._forget(frozenset())
            self._event("clear", {}, record)
        elif kind == "CancelledPrompt":
            self._cancel(record)
        else:
            self._event(string(kind) or "record", line.get("data"), record)

    def _event(self, name: str, details: object, record: int) -> None:
        part = data_part("event", {"name": name, "details": details}, self.talk.at, record)
        self.talk.add(None, "system", [part], record)

    def _parts(self, data: dict[str, Any], name: str | None, record: int) -> list[PartDraft]:
        content, at = data.get("content"), self.talk.at
        found: list[PartDraft] = []
        blocks = [mapping(each) for each in content] if isinstance(content, list) else []
        for nth, block in enumerate(blocks):
            kind, value = block.get("kind"), block.get("data")
            bag = mapping(value)
            if kind == "text":
                if isinstance(value, str) and value:
                    found.append(text_part(value, at, record))
            elif kind == "thinking":
                kept = {key: bag[key] for key in ("signature", "redactedContent") if bag.get(key)}
                if string(bag.get("text")):
                    found.append(reasoning_part(bag["text"], at, record, KIND, kept))
            elif kind == "toolUse":
                call_id = string(bag.get("toolUseId")) or f"{name or record}:{nth}"
                found.append(call_of(bag.get("name"), call_id, bag.get("input"), at, record))
            elif kind == "image":
                found.append(image_part(value, at, record))
            else:
                event = {"name": string(kind) or "block", "details": value}
                found.append(data_part("event", event, at, record))
        return found

    def _answer(self, data: dict[str, Any], name: str | None, record: int) -> None:
        parts = self._parts(data, name, record)
        texts = [part.data["text"] for part in parts if part.type == "text"]
        if len(parts) == 1 and texts and texts[0] in INTERRUPTED:
            self.talk.notice(texts[0], record)
            self._last = "interrupted"
            return
        content = data.get("content")
        blocks = map(mapping, content if isinstance(content, list) else ())
        names = [mapping(one.get("data")).get("modelId") for one in blocks
                 if one.get("kind") == "thinking"]  # fmt: skip
        model = next(filter(None, map(model_of, names)), None)
        metadata = {"model": model} if model is not None else {}
        answer = self.talk.add(name, "assistant", parts, record, metadata)
        if self.talk.open_calls(answer):
            self._last = "waits"

    def _results(self, data: dict[str, Any], name: str | None, record: int) -> None:
        content = data.get("content")
        for block in map(mapping, content if isinstance(content, list) else ()):
            value = block.get("data")
            if block.get("kind") == "toolResult":
                self._result(mapping(value), record)
            elif block.get("kind") == "text" and isinstance(value, str):
                self._steer(value, name, record)
            else:
                self._event(string(block.get("kind")) or "block", value, record)

    def _result(self, result: dict[str, Any], record: int) -> None:
        content = result.get("content")
        blocks = [(str(one.get("kind")), one.get("data")) for one in
                  map(mapping, content if isinstance(content, list) else ())]  # fmt: skip
        output, extra = output_of(blocks, self.talk.at, record)
        ended: Ended = "error" if result.get("status") == "error" else "ok"
        if ended == "error" and output == _DENIED:
            ended = "denied"
        self.talk.settle(result.get("toolUseId"), ended, output, record, extra)

    def _steer(self, text: str, name: str | None, record: int) -> None:
        """Add what was typed while the agent worked, without what the program says round it."""
        typed = _STEER.findall(text)
        for nth, words in enumerate(typed):
            own = None if name is None else f"{name}:steer-{nth}"
            part = text_part(words, self.talk.at, record)
            self.talk.add(own, "user", [part], record, {"origin": "human"})
        if not typed:
            part = text_part(text, self.talk.at, record)
            self.talk.add(name, "user", [part], record, {"origin": "meta"})

    def _compact(self, data: dict[str, Any], record: int) -> None:
        snapshot = data.get("messages_snapshot")
        kept = (string(mapping(one).get("id")) for one in
                (snapshot if isinstance(snapshot, list) else ()))  # fmt: skip
        self._forget(frozenset(filter(None, kept)))
        self.talk.compaction(None, data.get("summary"), record)

    def _forget(self, kept: frozenset[str]) -> None:
        """Mark what the model does not get any more."""
        for message in self.talk.found:
            if message.role != "system" and message.source_id.partition(":")[0] not in kept:
                message.metadata.setdefault("backscroll", {})["compacted_away"] = True

    def _cancel(self, record: int) -> None:
        asked = next((one for one in reversed(self.talk.found)
                      if one.metadata.get("origin") == "human"), None)  # fmt: skip
        if asked is not None:
            asked.metadata.setdefault("backscroll", {})["not_in_context"] = True
        self._event("prompt cancelled", {}, record)
        self._last = "interrupted"

    def activity(self, at: int) -> dict[str, Any] | None:
        """Return what the last line says; None where the turn ended."""
        if self._last == "waits":
            return {"state": "running", "from": "guessed", "since": at}
        if self._last == "interrupted":
            return {"state": "interrupted", "from": "stored", "since": at}
        return None


def _link(
    draft: SessionDraft, said: dict[str, Any], library: Library, depends: Depends
) -> frozenset[str]:
    """Say what the session was made from; that it was a subagent is only a default.

    Returns:
        The ids of the messages that it was made from.
    """
    parent = string(said.get("parent_session_id"))
    if parent is None or parent == draft.source_id:
        return frozenset()
    if said.get("session_created_reason") == "subagent":
        draft.lineage = LineageDraft("subagent", parent)
        return frozenset()
    sessions = os.path.dirname(os.path.dirname(draft.path))
    theirs = Parent(sessions, parent, library, depends).ids()
    copied = [one for one in draft.messages if one.source_id.partition(":")[0] in theirs]
    for message in copied:
        message.inherited_from = message.source_id
    at = copied[-1].source_id if copied else None
    draft.lineage = LineageDraft("fork", parent, at)
    return theirs


def _count(draft: SessionDraft, said: dict[str, Any], theirs: frozenset[str]) -> float:
    """Add what each turn spent as an answer without words; return the session's own credits.

    Args:
        draft: The session.
        said: The document beside the lines.
        theirs: The ids of the parent's messages, whose turns are copies.
    """
    metadata = mapping(mapping(said.get("session_state")).get("conversation_metadata"))
    turns = metadata.get("user_turn_metadatas")
    places = {one.source_id: one for one in draft.messages}
    spent = 0.0
    for nth, turn in enumerate(map(mapping, turns if isinstance(turns, list) else ())):
        given = turn.get("message_ids")
        ids = [one for one in (given if isinstance(given, list) else ()) if string(one)]
        found = [places[name] for name in ids if name in places]
        _end_turn([one for one in found if one.role == "assistant"], turn)
        if theirs.intersection(ids):
            continue
        spent += credits_of(turn.get("metering_usage"), "value")
        name = f"{ids[-1]}:usage" if ids else f"turn-{nth}:usage"
        used = _used(name, turn, draft)
        if used is not None:
            at = draft.messages.index(found[-1]) + 1 if found else len(draft.messages)
            draft.messages.insert(at, used)
    return round(spent, 9)


def _used(name: str, turn: dict[str, Any], draft: SessionDraft) -> MessageDraft | None:
    """Return what a turn spent; None where its tokens are not known."""
    tokens = tokens_of(turn)
    if tokens is None:
        return None
    at = time_ms(turn.get("end_timestamp")) or draft.updated_at
    used = MessageDraft(name, "assistant", at, at, {
        "usage": tokens, "backscroll": {"no_answer": True, "initiator": "turn"}},
        records=(len(draft.records) - 1,))  # fmt: skip
    if (model := model_of(turn.get("model"))) is not None:
        used.metadata["model"] = model
    return used


def _end_turn(answers: list[MessageDraft], turn: dict[str, Any]) -> None:
    """Tell answers which model gave them, and the last one when and how the turn ended."""
    for answer in answers:
        if (model := model_of(turn.get("model"))) is not None:
            answer.metadata.setdefault("model", model)
    at = time_ms(turn.get("end_timestamp"))
    if not answers:
        return
    last = answers[-1]
    if at is not None:
        last.created_at = last.updated_at = max(at, last.created_at)
        for part in last.parts:
            if part.tool_call_id is None:
                part.created_at = part.updated_at = last.created_at
    extra = last.metadata.setdefault("backscroll", {})
    used = credits_of(turn.get("metering_usage"), "value")
    if used:
        extra["credits"] = used
    if string(turn.get("end_reason")):
        extra["finish_reason"] = turn["end_reason"]
