"""Lines of a transcript as messages; a turn's one line as what happened in it, in order.

Source: the y-agent format page. An assistant line holds the texts, the reasonings and the
number of calls of each iteration: in one iteration the reasoning comes first, then the
text, then its calls; after them all the final response.
"""

from __future__ import annotations

from typing import Any

import orjson

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.early_results import EarlyResults
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.plain_parts import text_part
from store.sources.base.values import mapping, number, string, utc_ms

COMPACTION = "compaction_summary"
_ROLES: dict[str, Role] = {
    "user": "user", "assistant": "assistant", "tool": "assistant", "system": "system",
}  # fmt: skip
_OF_A_TURN = ("tool_results", "iteration_texts", "iteration_reasonings", "reasoning_content",
              "final_response", "stream_error")  # fmt: skip
_KEPT = ("context_window", "context_tokens_used", "trace_id", "orchestration", "kind", "skills",
         "generated_images")  # fmt: skip


class Transcript:
    """Makes the messages of one transcript.

    Attributes:
        messages: In order.
    """

    def __init__(self) -> None:
        """Start with nothing said."""
        self.messages: list[MessageDraft] = []
        self._open: dict[str, PartDraft] = {}
        self._early = EarlyResults()
        self._names: set[str] = set()
        self._lines: dict[str, dict[str, Any]] = {}
        self._at = 0

    def take(self, data: dict[str, Any], record: int, placed: str) -> None:
        """Add a line.

        Args:
            data: The line.
            record: Number of its original record.
            placed: Names a line without an id.
        """
        name = string(data.get("message_id"))
        before = self._lines.setdefault(name, data) if name is not None else data
        if before is not data and before == data:
            # A copy was appended to the file: the line says nothing new.
            return
        self._at = utc_ms(data.get("timestamp")) or self._at
        word, call_id = str(data.get("role")), string(data.get("tool_call_id"))
        if word not in _ROLES and _is_turn(data):
            word = "assistant"
        if call_id in self._open and word not in ("user", "assistant"):
            _give_result(self._open.pop(call_id or ""), data.get("content"), record, self._at)
            return
        draft = MessageDraft(
            self._name(name or placed),
            _ROLES.get(word, "system"), self._at, self._at, records=(record,),
        )  # fmt: skip
        draft.parts = list(_parts(data, word, self._at))
        self.messages.append(draft)
        for part in draft.parts:
            part.records = (record,)
            if word == "tool":
                self._early.hold(call_id or "", part, draft)
            elif part.tool_state == "input-available":
                name = part.tool_call_id or ""
                if self._early.join(name, part, draft, self.messages) is None:
                    self._open[name] = part
        _describe(draft, data, word)

    def _name(self, name: str) -> str:
        given, count = name, 2
        while name in self._names:
            name, count = f"{given}#{count}", count + 1
        self._names.add(name)
        return name


def _part(data: dict[str, Any], at: int) -> PartDraft:
    return PartDraft(data["type"], data, at, at)


def _parts(data: dict[str, Any], word: str, at: int) -> list[PartDraft]:
    content, metadata = data.get("content"), mapping(data.get("metadata"))
    text = content if isinstance(content, str) else ""
    if not text and content:
        text = orjson.dumps(content).decode()
    if metadata.get("type") == COMPACTION:
        summary = {"summary": text, "tail_start_id": None, "auto": True}
        return [_part({"type": "data-compaction", "data": summary}, at)]
    if word == "assistant":
        return _turn(data, metadata, text, at)
    if word == "tool":
        part = _call({"tool_call_id": data.get("tool_call_id")}, at)
        _give_result(part, content, None, at)
        return [part]
    parts = [text_part(text, at)]
    attached = metadata.get("attachments")
    for file in attached if isinstance(attached, list) else ():
        parts.append(_part(_file(mapping(file)), at))
    return parts


def _is_turn(data: dict[str, Any]) -> bool:
    """Return whether a line of an unknown role holds what lines of turns hold."""
    metadata = mapping(data.get("metadata"))
    return bool(data.get("tool_calls")) or any(map(metadata.get, _OF_A_TURN))


def _file(file: dict[str, Any]) -> dict[str, Any]:
    path, name = string(file.get("path")), string(file.get("filename"))
    data: dict[str, Any] = {
        "type": "file",
        "mediaType": string(file.get("mime_type")) or "application/octet-stream",
        "url": f"file://{path}" if path else "",
    }
    return data | ({"filename": name} if name else {})


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _turn(data: dict[str, Any], metadata: dict[str, Any], content: str, at: int) -> list[PartDraft]:
    """Return what happened in a turn, in order."""
    results = [one for one in _list(metadata.get("tool_results")) if isinstance(one, dict)]
    texts, counts = (
        _list(metadata.get("iteration_texts")),
        _list(metadata.get("iteration_tool_counts")),
    )
    thoughts = _list(metadata.get("iteration_reasonings"))
    spans = _list(metadata.get("iteration_reasoning_durations_ms"))
    parts: list[PartDraft] = []
    for place in range(max(len(texts), len(thoughts), len(counts))):
        parts += _thought(_at(thoughts, place), _at(spans, place), at)
        text = string(_at(texts, place))
        if text is not None:
            parts.append(text_part(text, at))
        taken = max(0, number(_at(counts, place)))
        parts += [_result(one, at) for one in results[:taken]]
        results = results[taken:]
    parts += [_result(one, at) for one in results]
    known = {part.tool_call_id for part in parts}
    for call in _list(data.get("tool_calls")):
        if string(mapping(call).get("id")) not in known:
            parts.append(_call(mapping(call), at))
    parts += _ending(metadata, content, parts, at)
    error = metadata.get("stream_error")
    if error:
        message = error if isinstance(error, str) else orjson.dumps(error).decode()
        failed = {"name": "stream error", "message": message}
        parts.append(_part({"type": "data-error", "data": failed}, at))
    return parts


def _ending(
    metadata: dict[str, Any], content: str, parts: list[PartDraft], at: int
) -> list[PartDraft]:
    """Return the final response, where the iterations do not end with it already."""
    said = [part.data["text"] for part in parts if part.type == "text"]
    thought = [part.data["text"] for part in parts if part.type == "reasoning"]
    final = string(metadata.get("final_response")) or ("" if said else content)
    ending: list[PartDraft] = []
    last = string(metadata.get("reasoning_content"))
    if last is not None and last not in thought:
        ending += _thought(last, None, at)
    if final.strip() and (not said or said[-1].strip() != final.strip()):
        ending.append(text_part(final, at))
    return ending


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _thought(text: Any, milliseconds: Any, at: int) -> list[PartDraft]:
    if string(text) is None:
        return []
    data: dict[str, Any] = {"type": "reasoning", "text": text, "state": "done"}
    if number(milliseconds):
        data["providerMetadata"] = {"backscroll": {"duration_ms": number(milliseconds)}}
    return [_part(data, at)]


def _call(call: dict[str, Any], at: int) -> PartDraft:
    name = string(call.get("name")) or "unknown"
    call_id = string(call.get("tool_call_id")) or string(call.get("id")) or name
    given = call.get("arguments")
    if isinstance(given, str):
        try:
            given = parse_value(given)
        except LineError:
            given = {"arguments": given} if given else {}
    data = {
        "type": f"tool-{name}",
        "toolCallId": call_id,
        "state": "input-available",
        "input": given if given is not None else {},
    }
    part = _part(data, at)
    part.tool_call_id, part.tool_state = call_id, "input-available"
    return part


def _result(result: dict[str, Any], at: int) -> PartDraft:
    """Return a call with its result."""
    part, failed = _call(result, at), result.get("success") is False
    shown = result.get("result_preview")
    _settle(part, shown if shown is not None else result.get("result"), failed)
    own = part.data["resultProviderMetadata"]["backscroll"]
    if number(result.get("duration_ms")):
        own["duration_ms"] = number(result["duration_ms"])
    more = mapping(result.get("metadata"))
    if type(more.get("exit_code")) is int:
        own["exit_code"] = more["exit_code"]
        own["status"] = "error" if failed or more["exit_code"] else "ok"
    structured = {key: result[key] for key in ("url_meta", "metadata") if result.get(key)}
    if structured:
        own["structured"] = structured
    return part


def _settle(part: PartDraft, output: Any, failed: bool) -> None:
    part.tool_state = part.data["state"] = "output-error" if failed else "output-available"
    if failed:
        text = output if isinstance(output, str) else orjson.dumps(output).decode()
        part.data["errorText"] = "" if output is None else text
    else:
        part.data["output"] = "" if output is None else output
    status = {"status": "error" if failed else "ok"}
    part.data["resultProviderMetadata"] = {"backscroll": status}


def _give_result(part: PartDraft, content: Any, record: int | None, at: int) -> None:
    """Give an open call the line that answers it."""
    _settle(part, content, False)
    part.updated_at = max(part.created_at, at)
    if record is not None:
        part.records = (*part.records, record)


def _describe(draft: MessageDraft, data: dict[str, Any], word: str) -> None:
    metadata = mapping(data.get("metadata"))
    own: dict[str, Any] = {key: metadata[key] for key in _KEPT if metadata.get(key)}
    if draft.role == "user":
        draft.metadata["origin"] = "human"
    if metadata.get("type") == COMPACTION:
        draft.metadata["compaction"] = True
    if string(metadata.get("model")):
        provider = string(metadata.get("provider_id")) or "unknown"
        draft.metadata["model"] = {"provider_id": provider, "model_id": metadata["model"]}
    if word == "assistant":
        usage = usage_of(metadata)
        if usage is not None:
            draft.metadata["usage"] = usage
        cost = metadata.get("cost_usd")
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            draft.metadata["cost_usd"] = cost
        if metadata.get("stream_error"):
            own["error"] = "stream error"
    elif word not in _ROLES:
        own["role"] = word
    if own:
        draft.metadata["backscroll"] = own


def usage_of(metadata: dict[str, Any]) -> dict[str, int] | None:
    """Return a turn's tokens; None where it has none, as all but its last segment do."""
    if metadata.get("input_tokens") is None and metadata.get("output_tokens") is None:
        return None
    return {
        "input": number(metadata.get("input_tokens")),
        "output": number(metadata.get("output_tokens")),
        "reasoning": 0,
        "cache_read": number(metadata.get("cache_read_tokens")),
        "cache_write": number(metadata.get("cache_write_tokens")),
    }
