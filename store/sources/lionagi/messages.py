"""A branch's messages as messages of a session; a call and its response as one part."""

from __future__ import annotations

from typing import Any

import orjson

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.early_results import EarlyResults
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.values import mapping, number, string
from store.sources.lionagi.history import Turn
from store.sources.lionagi.stored import StoredMessage, StoredSession

_PRUNED = "lion_content_pruned"
_ROLES: dict[str, Role] = {
    "System": "system",
    "Instruction": "user",
    "AssistantResponse": "assistant",
    "ActionRequest": "assistant",
    "ActionResponse": "assistant",
}
_CODES = ("exit_code", "returncode", "exitCode")


class Conversation:
    """Makes the messages of one branch.

    Attributes:
        messages: In order.
        names: The message that a row became part of, by the row's id.
    """

    def __init__(
        self,
        stored: StoredSession,
        model: dict[str, Any] | None,
        parent_model: dict[str, Any] | None,
    ) -> None:
        """Start with nothing said.

        Args:
            stored: The session.
            model: What answers in the branch.
            parent_model: What answered in the one that it was made from.
        """
        self.messages: list[MessageDraft] = []
        self.names: dict[str, str] = {}
        self._stored, self._models = stored, (model, parent_model)
        self._open: dict[str, PartDraft] = {}
        self._parts: dict[int, MessageDraft] = {}
        self._early = EarlyResults()

    def take(self, turn: Turn) -> None:
        """Add a row of the branch."""
        message = turn.message
        if message.kind == "ActionResponse" and _PRUNED not in message.content:
            part = self._request_of(message)
            if part is not None:
                _give_output(part, message)
                owner = self._parts[id(part)]
                owner.updated_at = max(owner.updated_at, message.at)
                self.names[message.id] = owner.source_id
                return
        draft = self._draft(turn)
        draft.parts = _parts(message)
        self.messages.append(draft)
        for part in draft.parts:
            if message.kind == "ActionResponse" and part.tool_call_id is not None:
                self._early.hold(self._first(message.content), part, draft)
            elif part.tool_state == "input-available" and not self._join(message, part, draft):
                self._parts[id(part)] = draft
                for name in self._chain(message.id):
                    self._open[name] = part

    def put_in_time(self) -> None:
        """Give a system message that was put first the time of what follows it."""
        first = self.messages[0] if self.messages else None
        if first is None or first.role != "system":
            return
        earliest = min(message.created_at for message in self.messages)
        if first.created_at > earliest:
            own = first.metadata.setdefault("backscroll", {})
            own["true_created_at"], first.created_at = first.created_at, earliest

    def _draft(self, turn: Turn) -> MessageDraft:
        message, name = turn.message, turn.message.id
        if name in self.names:
            name = f"{name}#{len(self.messages)}"
        self.names[message.id] = name
        role = _ROLES.get(message.kind)
        if role is None:
            named = message.role
            role = "user" if named == "user" else (
                "assistant" if named == "assistant" else "system")  # fmt: skip
        draft = MessageDraft(
            name, role, message.at, message.at, inherited_from=turn.original,
            records=(message.record,),
        )  # fmt: skip
        _describe(draft, message)
        model = self._models[turn.original is not None]
        if role == "assistant" and model is not None:
            draft.metadata["model"] = model
        return draft

    def _chain(self, name: str) -> list[str]:
        """Return a message's id, and those of what it is a copy of, copy by copy."""
        found = [name]
        while (message := self._stored.messages.get(found[-1])) is not None:
            if message.clone_from is None or message.clone_from in found:
                break
            found.append(message.clone_from)
        return found

    def _first(self, content: dict[str, Any]) -> str:
        """Return the request that a response names, or the first of which that is a copy."""
        asked = string(content.get("action_request_id"))
        return self._chain(asked)[-1] if asked is not None else ""

    def _join(self, request: StoredMessage, part: PartDraft, draft: MessageDraft) -> bool:
        """Give a request the response that is before it; return whether there was one."""
        first = self._chain(request.id)[-1]
        holder = self._early.join(first, part, draft, self.messages)
        if holder is not None:
            for name, owner in self.names.items():
                self.names[name] = draft.source_id if owner == holder.source_id else owner
        return holder is not None

    def _request_of(self, response: StoredMessage) -> PartDraft | None:
        """Return the open call that a response answers.

        Copied responses name the first request, so the copies are followed to it.
        """
        asked = string(response.content.get("action_request_id"))
        for name in self._chain(asked) if asked is not None else ():
            part = self._open.get(name)
            if part is not None:
                self._open = {key: one for key, one in self._open.items() if one is not part}
                return part
        return None


def _describe(draft: MessageDraft, message: StoredMessage) -> None:
    if draft.role == "user":
        draft.metadata["origin"] = "human"
    own: dict[str, Any] = {}
    if message.kind == "Instruction":
        rest = {
            k: v
            for k, v in message.content.items()
            if k not in ("instruction", "images", _PRUNED) and v not in (None, [], {}, "")
        }
        if rest:
            own["instruction"] = rest
    if message.kind not in _ROLES:
        own["role"] = message.role
    for key in ("sender", "recipient", "channel"):
        value = string(message.row.get(key))
        if value is not None and value != "null":
            own[key] = value
    if own:
        draft.metadata["backscroll"] = own


def _parts(message: StoredMessage) -> list[PartDraft]:
    content, kind = message.content, message.kind
    if _PRUNED in content:
        details = mapping(content[_PRUNED])
        return [_part(message, {"type": "data-event",
                                "data": {"name": "pruned", "details": details}})]  # fmt: skip
    if kind == "System":
        return [_text(message, content.get("system_message"))]
    if kind == "AssistantResponse":
        return [_text(message, content.get("assistant_response"))]
    if kind == "Instruction":
        images = content.get("images")
        shown = [_image(message, one) for one in (images if isinstance(images, list) else ())]
        return [_text(message, content.get("instruction")), *shown]
    if kind in ("ActionRequest", "ActionResponse"):
        part = _call(message)
        if kind == "ActionResponse":
            _give_output(part, message)
        return [part]
    name = string(mapping(message.row.get("node_metadata")).get("lion_class")) or "unknown message"
    return [_part(message, {"type": "data-event", "data": {"name": name, "details": content}})]


def _part(message: StoredMessage, data: dict[str, Any]) -> PartDraft:
    return PartDraft(data["type"], data, message.at, message.at, records=(message.record,))


def _text(message: StoredMessage, value: Any) -> PartDraft:
    """Return a text part; anything but a text as its JSON."""
    text = value if isinstance(value, str) else "" if value is None else _json(value)
    return _part(message, {"type": "text", "text": text, "state": "done"})


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _image(message: StoredMessage, value: Any) -> PartDraft:
    url = string(value) or string(mapping(value).get("url")) or ""
    return _part(message, {"type": "file", "mediaType": "image/*", "url": url})


def _call(message: StoredMessage) -> PartDraft:
    """Return a call; it is named by its own request, so that forks may tell them apart."""
    name = string(message.content.get("function")) or "unknown"
    given = _given(message.content.get("arguments"))
    part = _part(
        message,
        {
            "type": f"tool-{name}",
            "toolCallId": message.id,
            "state": "input-available",
            "input": given if given is not None else {},
        },
    )
    part.tool_call_id, part.tool_state = message.id, "input-available"
    return part


def _given(arguments: Any) -> Any:
    """Return a call's arguments; those of a mirrored session are kept as a piece of JSON."""
    preview = mapping(arguments).get("_mirror_preview")
    if not isinstance(preview, str):
        return arguments
    try:
        return parse_value(preview)
    except LineError:
        return arguments  # It was cut.


def _give_output(part: PartDraft, response: StoredMessage) -> None:
    output, error = response.content.get("output"), response.content.get("error")
    if error:
        part.data["errorText"] = error if isinstance(error, str) else _json(error)
    else:
        part.data["output"] = "" if output is None else output
    part.tool_state = part.data["state"] = "output-error" if error else "output-available"
    guessed = not error and _seems_failed(output)
    own: dict[str, Any] = {"status": "error" if error or guessed or _failed(output) else "ok"}
    if guessed:
        own["guessed"] = True
    codes = [mapping(output).get(name) for name in _CODES]
    for code in codes:
        if type(code) is int:
            own["exit_code"] = code
    part.data["resultProviderMetadata"] = {"backscroll": own}
    part.updated_at = max(part.created_at, response.at)
    if response.record not in part.records:
        part.records = (*part.records, response.record)


def _seems_failed(output: Any) -> bool:
    """Guess whether a call failed by its text: the program does not mark it."""
    return isinstance(output, str) and output.lstrip().lower().startswith("error:")


def _failed(output: Any) -> bool:
    """Return whether an output says that its call failed."""
    found = mapping(output)
    return bool(found.get("error")) or any(number(found.get(name)) != 0 for name in _CODES)
