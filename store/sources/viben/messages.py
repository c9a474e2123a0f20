"""Events as messages: a prompt, then all that its task did as one answer.

Tasks run beside one another, so what a line belongs to is known by its task, not by the
line before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.values import mapping, string
from store.sources.viben.lines import Event

_STEPS = {"failed": "cancelled"}
"""A plan's states that a list of things to do calls otherwise."""


@dataclass(slots=True)
class Thread:
    """Makes the messages of one session.

    Attributes:
        messages: In the order in which they began.
        answers: The open answer of each task.
        calls: The calls without a result, and the questions without an answer.
        notes: What lines say of the session.
    """

    messages: list[MessageDraft] = field(default_factory=list)
    answers: dict[str | None, MessageDraft] = field(default_factory=dict)
    calls: dict[str, PartDraft] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    early: EarlyResults = field(default_factory=EarlyResults)
    _names: set[str] = field(default_factory=set)
    _at: int = 0

    def take(self, event: Event) -> None:
        """Add what an event tells."""
        self._at = event.at = event.at or self._at
        if event.type == "user":
            self._prompt(event)
            return
        if event.type == "sdk_session":
            name = string(event.data.get("sdk_session_id"))
            if name is not None:
                self.notes["sdk_session_id"] = name
            answer = self._answer(event)
            answer.records = (*answer.records, *event.records)
            return
        answer = self._answer(event)
        answer.updated_at = max(answer.updated_at, event.at)
        if event.type == "tool_result" and self._settle(event):
            return
        part = _part_of(event)
        asked = string(event.data.get("tool_use_id")) if event.type == "question" else None
        call_id = part.tool_call_id or asked or ""
        if event.type == "tool_result":
            self.early.hold(call_id, part, answer)
        elif self.early.join(call_id, part, answer, self.messages) is not None:
            if asked is not None:
                _give_answer(part)
        elif part.tool_state == "input-available" or asked is not None:
            self.calls[call_id] = part
        answer.parts.append(part)
        _describe(answer, event)

    def _prompt(self, event: Event) -> None:
        message = self._begin(event, "user")
        message.metadata["origin"] = "human"
        message.parts.append(_text("text", event))
        attached = event.data.get("attachments")
        for file in attached if isinstance(attached, list) else ():
            message.parts.append(_draft(_attached(mapping(file)), event))
        self.answers.pop(event.task_id, None)

    def _answer(self, event: Event) -> MessageDraft:
        answer = self.answers.get(event.task_id)
        if answer is None:
            answer = self.answers[event.task_id] = self._begin(event, "assistant")
        return answer

    def _begin(self, event: Event, role: Any) -> MessageDraft:
        name, number = event.id, 2
        while name in self._names:
            name, number = f"{event.id}#{number}", number + 1
        self._names.add(name)
        message = MessageDraft(name, role, event.at, event.at)
        if event.task_id is not None:
            message.metadata["backscroll"] = {"task_id": event.task_id}
        self.messages.append(message)
        return message

    def _settle(self, event: Event) -> bool:
        """Give an open call its result; return whether there was one."""
        part = self.calls.pop(string(event.data.get("tool_use_id")) or "", None)
        if part is None:
            return False
        if part.tool_call_id is None:
            part.data["data"]["answer"] = event.data.get("tool_output")
        else:
            _give_result(part, event)
        part.records = (*part.records, *event.records)
        part.updated_at = max(part.created_at, event.at)
        return True


def _give_answer(question: PartDraft) -> None:
    """Put what came before a question as a call's result into the question."""
    said = question.data.pop("output", question.data.pop("errorText", None))
    question.data["data"]["answer"] = said
    for key in ("state", "resultProviderMetadata"):
        question.data.pop(key, None)
    question.tool_state = None


def _draft(data: dict[str, Any], event: Event) -> PartDraft:
    return PartDraft(data["type"], data, event.at, event.at, records=event.records)


def _text(kind: str, event: Event) -> PartDraft:
    text = event.data.get("content", event.data.get("text"))
    words = text if isinstance(text, str) else ""
    return _draft({"type": kind, "text": words, "state": "done"}, event)


def _attached(file: dict[str, Any]) -> dict[str, Any]:
    path, name = string(file.get("path")), string(file.get("name"))
    media = string(file.get("mimeType")) or string(file.get("mime_type"))
    image = file.get("type") == "image"
    data = {
        "type": "file",
        "mediaType": media or ("image/*" if image else "application/octet-stream"),
        "url": f"file://{path}" if path else "",
    }
    return data | ({"filename": name} if name else {})


def _part_of(event: Event) -> PartDraft:
    kind, data = event.type, event.data
    if kind in ("text", "assistant"):
        return _text("text", event)
    if kind in ("thinking", "reasoning"):
        return _text("reasoning", event)
    if kind in ("tool_use", "tool_result"):
        part = _call(event)
        if kind == "tool_result":
            _give_result(part, event)
        return part
    rest = {key: value for key, value in data.items()
            if key not in ("id", "task_id", "timestamp", "type", "role")}  # fmt: skip
    if kind == "plan":
        return _draft({"type": "data-plan", "data": _plan(mapping(data.get("plan")))}, event)
    if kind == "question":
        asked = data.get("questions")
        first = mapping(asked[0]).get("question") if isinstance(asked, list) and asked else None
        question = {"question": first} if isinstance(first, str) else {}
        return _draft({"type": "data-question", "data": {**question, **rest}}, event)
    if kind == "error":
        name = {"name": str(data["code"])} if data.get("code") else {}
        message = string(data.get("message")) or string(data.get("content")) or ""
        return _draft({"type": "data-error", "data": {**name, "message": message}}, event)
    if kind == "result":
        return _draft({"type": "data-result", "data": rest}, event)
    details = {"details": rest} if rest else {}
    return _draft({"type": "data-event", "data": {"name": kind, **details}}, event)


def _plan(plan: dict[str, Any]) -> dict[str, Any]:
    steps = plan.get("steps")
    items = [
        {"content": mapping(step).get("description"),
         "status": _STEPS.get(str(mapping(step).get("status")), mapping(step).get("status"))}
        for step in (steps if isinstance(steps, list) else ())
    ]  # fmt: skip
    return {**plan, "items": items}


def _call(event: Event) -> PartDraft:
    call_id = string(event.data.get("tool_use_id")) or event.id
    name = string(event.data.get("tool_name")) or "unknown"
    given = event.data.get("tool_input")
    data = {
        "type": f"tool-{name}",
        "toolCallId": call_id,
        "state": "input-available",
        "input": given if given is not None else {},
    }
    part = _draft(data, event)
    part.tool_call_id, part.tool_state = call_id, "input-available"
    return part


def _give_result(part: PartDraft, event: Event) -> None:
    output, failed = event.data.get("tool_output"), event.data.get("is_error") is True
    part.tool_state = part.data["state"] = "output-error" if failed else "output-available"
    if failed:
        part.data["errorText"] = output if isinstance(output, str) else _as_text(output)
    else:
        part.data["output"] = "" if output is None else output
    status = {"status": "error" if failed else "ok"}
    part.data["resultProviderMetadata"] = {"backscroll": status}


def _as_text(output: Any) -> str:
    import json

    return "" if output is None else json.dumps(output, ensure_ascii=False)


def _describe(answer: MessageDraft, event: Event) -> None:
    """Lay what a result or an error says over its message."""
    own = answer.metadata.setdefault("backscroll", {})
    if event.type == "error":
        own["error"] = string(event.data.get("code")) or "error"
    elif event.type == "result":
        cost = event.data.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            answer.metadata["cost_usd"] = answer.metadata.get("cost_usd", 0.0) + cost
        if string(event.data.get("subtype")):
            own["finish_reason"] = event.data["subtype"]
        if isinstance(event.data.get("duration"), int | float):
            own["duration_ms"] = event.data["duration"]
    if not own:
        del answer.metadata["backscroll"]
