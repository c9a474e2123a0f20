"""Makes a conversation for OpenHands: its state, and beside it a file for each event.

Source: the OpenHands format page, sections 2 to 4 and 7. An event may have no member that the
program does not know, so its id says which message it is a copy of. Calls of other agents' tools
take the form of an MCP server's, which is the same for every tool.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from store.conversation.event_ids import event_id_of, fits_in_event_id
from store.exports.agent_file import NamedFile, written
from store.exports.calls import CallIds, taken_name
from store.exports.kept_records import KeptRecords
from store.exports.reading import SessionReading
from store.exports.steps import (
    Part,
    Step,
    call_input,
    call_name,
    call_result,
    file_name,
    inline_data,
    is_tool,
)
from store.exports.turns import Turn, iso, model_of, turns_of, without_prompt
from store.exports.typed import typed
from store.text.exact_json import encode_for_output
from store.usage import whole_counts

Event = dict[str, Any]
STATE = "base_state.json"
_PROMPT = (
    "You are OpenHands agent, an assistant that works on a computer by means of its tools. The"
    " conversation so far was held with another agent, whose tools you may not have."
)
"""Takes the place of OpenHands' own prompt, which only its own conversations have."""
_COPIED = "backscroll"
"""What used the copies' tokens: the program calls by its first model all that ``agent`` uses."""
_RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")
_SYSTEM = "SystemPromptEvent"


def write_openhands(reading: SessionReading) -> Iterator[str]:
    """Yield a conversation's state; its events are beside it."""
    yield from written(openhands_file(reading), reading)


def state_name(export_id: str, created_at: int) -> str:
    """Return the path of a conversation's state in the folder of all.

    Args:
        export_id: A UUID.
        created_at: Epoch ms; not part of it.
    """
    return f"{uuid.UUID(export_id).hex}/{STATE}"


def openhands_file(
    reading: SessionReading, *, cwd: str | None = None, system: Event | None = None
) -> NamedFile:
    """Return a session as files that OpenHands can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
        system: The event with the system prompt of a conversation of its own.
    """
    reading = typed(reading)
    session = reading.session
    model = session["model"] if isinstance(session["model"], dict) else {}
    turns, prompt = without_prompt(turns_of(reading.messages))
    made = _Events(reading, str(model.get("model_id") or "unknown"))
    events = list(made.of(turns))
    name = state_name(reading.export_id, 0)
    folder = uuid.UUID(reading.export_id).hex
    if not events:
        return NamedFile(folder, name, [], prompt)
    first = _system_event(reading.export_id, int(session["created_at"]), system)
    beside = {
        f"{folder}/events/event-{place:05d}-{event['id']}.json": f"{encode_for_output(event)}\n"
        for place, event in enumerate([first, *events])
    }
    state = _state(reading.export_id, cwd or session["workspace_root"] or "/", made)
    return NamedFile(folder, name, [encode_for_output(state)], prompt, beside)


def is_system(event: object) -> bool:
    """Return whether an event holds a system prompt that the model can be given."""
    if not isinstance(event, dict) or event.get("kind") != _SYSTEM:
        return False
    prompt = event.get("system_prompt")
    text = prompt.get("text") if isinstance(prompt, dict) else None
    return isinstance(text, str) and bool(text.strip())


def _system_event(export_id: str, at: int, own: Event | None) -> Event:
    # The program compares the first event's time with those of others, which name no zone.
    stamp = datetime.fromtimestamp(at / 1000).isoformat(timespec="microseconds")
    prompt = own["system_prompt"]["text"] if own is not None else _PROMPT
    return {
        "id": str(uuid.uuid5(uuid.UUID(export_id), "system")), "timestamp": stamp,
        "source": "agent", "system_prompt": _text(prompt), "tools": [], "kind": _SYSTEM,
    }  # fmt: skip


def _state(export_id: str, cwd: str, made: _Events) -> dict[str, Any]:
    """Return the state; on resuming, the program's own agent takes the place of this one.

    Args:
        export_id: The conversation's id.
        cwd: The folder.
        made: The events that were made.
    """
    return {
        "id": export_id,
        "agent": {"llm": {"model": made.model, "usage_id": "agent"}, "tools": [],
                  "include_default_tools": [], "kind": "Agent"},
        "workspace": {"working_dir": cwd, "kind": "LocalWorkspace"},
        "persistence_dir": None, "max_iterations": 500, "stuck_detection": True,
        "execution_status": "finished", "confirmation_policy": {"kind": "AlwaysConfirm"},
        "activated_knowledge_skills": [], "blocked_actions": {}, "blocked_messages": {},
        "stats": {"usage_to_metrics": {_COPIED: _metrics(made.model, made.used)}},
        "secret_registry": {"secret_sources": {}}, "tags": {}, "agent_state": {},
    }  # fmt: skip


class _Events:
    """Makes the events of a conversation.

    Attributes:
        model: The session's model, for answers without one.
        used: What each response used.
    """

    def __init__(self, reading: SessionReading, model: str) -> None:
        self.model = model
        self.used: list[dict[str, Any]] = []
        self._kept = KeptRecords(reading, "openhands")
        self._calls = CallIds()
        self._numbers: dict[str, int] = {}
        self._made = 1
        """How many events the model has seen so far, with the system prompt."""

    def of(self, turns: Iterable[Turn]) -> Iterator[Event]:
        """Yield the events of the messages to and from the model, in order."""
        for turn in turns:
            for event in self._events(turn):
                self._made += 1
                yield event

    def _events(self, turn: Turn) -> Iterator[Event]:
        own = self._own(turn) if turn.summary is None else None
        if turn.summary is not None:
            yield self._event(
                turn, "Condensation", "environment", forgotten_event_ids=[], summary=turn.summary,
                summary_offset=self._made, llm_response_id=self._id(turn))  # fmt: skip
        elif own is not None:
            self._count(turn, next((row["llm_response_id"] for row in own
                                    if "llm_response_id" in row), None))  # fmt: skip
            yield from own
        elif turn.role == "user":
            content = [_content(part) for part in turn.told]
            source = "environment" if turn.is_aside else "user"
            yield self._message(turn, source, {"role": "user", "content": content})
        else:
            counted = False
            for step in turn.steps:
                said = [_text(part["text"] if part.get("type") == "text" else file_name(part))
                        for part in step.said if part.get("type") != "reasoning"]  # fmt: skip
                if not said and not step.calls:
                    continue
                response = self._id(turn)
                self._count(turn, None if counted else response)
                counted = True
                yield from self._answer(turn, step, said, response)

    def _answer(
        self, turn: Turn, step: Step, said: list[Event], response: str
    ) -> Iterator[Event]:
        thoughts = [part["text"] for part in step.said if part.get("type") == "reasoning"]
        thought = {"reasoning_content": "\n\n".join(thoughts)} if thoughts else {}
        if not step.calls:
            message = {"role": "assistant", "content": said, **thought}
            yield self._message(turn, "agent", message, llm_response_id=response)
            return
        actions = []
        for place, part in enumerate(step.calls):
            actions.append(self._action(turn, part, said if not place else [], response,
                                        thought if not place else {}))  # fmt: skip
        yield from actions
        for action, part in zip(actions, step.calls, strict=True):
            yield self._observation(turn, part, action)

    def _action(
        self, turn: Turn, part: Part, said: list[Event], response: str, thought: Event
    ) -> Event:
        name, given = taken_name(call_name(part)), call_input(part)
        call_id = self._calls.take(part.get("toolCallId"))
        call = {"id": call_id, "name": name, "arguments": json.dumps(given, ensure_ascii=False),
                "origin": "completion"}  # fmt: skip
        return self._event(
            turn, "ActionEvent", "agent", thought=said, thinking_blocks=[], **thought,
            action={"data": given, "kind": "MCPToolAction"}, tool_name=name,
            tool_call_id=call_id, tool_call=call, llm_response_id=response)  # fmt: skip

    def _observation(self, turn: Turn, part: Part, action: Event) -> Event:
        result = call_result(part)
        # Without words the program would say by itself that something failed.
        content = [_text(result.text or " " if result.failed else result.text)]
        content += [_content(file) for file in result.files]
        return self._event(
            turn, "ObservationEvent", "environment", tool_name=action["tool_name"],
            tool_call_id=action["tool_call_id"], action_id=action["id"], at=turn.ended,
            observation={"content": content, "is_error": result.failed,
                         "tool_name": action["tool_name"], "kind": "MCPToolObservation"},
        )  # fmt: skip

    def _message(self, turn: Turn, source: str, message: Event, **more: Any) -> Event:
        return self._event(turn, "MessageEvent", source,
                           llm_message={**message, "thinking_blocks": []}, activated_skills=[],
                           extended_content=[], **more)  # fmt: skip

    def _event(
        self, turn: Turn, kind: str, source: str, *, at: int | None = None, **more: Any
    ) -> Event:
        return {"id": self._id(turn), "timestamp": iso(turn.begun if at is None else at),
                "source": source, **more, "kind": kind}  # fmt: skip

    def _id(self, turn: Turn) -> str:
        """Return an id that says which message it is of; where that is too long, any one."""
        number = self._numbers[turn.id] = self._numbers.get(turn.id, -1) + 1
        if fits_in_event_id(turn.id):
            return event_id_of(turn.id, number)
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn.id} {number}"))

    def _count(self, turn: Turn, response: str | None) -> None:
        if response is not None and turn.metadata.get("usage"):
            model = model_of(turn.item, self.model)
            self.used.append(_usage(whole_counts(turn.metadata["usage"]), model, response))

    def _own(self, turn: Turn) -> list[Event] | None:
        """Return OpenHands' own events of a message, under new ids; None where some are missing."""
        rows = [row for row in self._kept.of(turn.id).rows if row.get("kind") != _SYSTEM]
        if not rows or not all(_is_whole(row, turn.role) for row in rows):
            return None
        if turn.role == "user":
            return [self._copied(rows[0], turn, {})] if len(rows) == 1 else None
        calls = [row["tool_call_id"] for row in rows if row["kind"] == "ActionEvent"]
        answered = [row["tool_call_id"] for row in rows if row["kind"] in _RESULTS]
        known = [str(part.get("toolCallId")) for part in turn.parts if is_tool(part)]
        if sorted(calls) != sorted(known) or sorted(calls) != sorted(answered):
            return None
        if len(calls) != len(set(calls)) or self._calls.taken & set(calls):
            return None
        self._calls.taken |= set(calls)
        ids: dict[str, str] = {}
        return [self._copied(row, turn, ids) for row in rows]

    def _copied(self, row: Event, turn: Turn, ids: dict[str, str]) -> Event:
        ids[row["id"]] = own = self._id(turn)
        copied = {**row, "id": own, "timestamp": iso(turn.begun)}
        if "action_id" in row:
            copied["action_id"] = ids.get(str(row["action_id"]), row["action_id"])
        return copied


def _is_whole(row: Event, role: str) -> bool:
    """Return whether an original event can be given back as it is."""
    kind = row.get("kind")
    wanted: dict[str, type] = {"id": str, "source": str}
    if role == "user":
        wanted["llm_message"] = dict
        if kind != "MessageEvent" or row.get("source") != "user":
            return False
    elif kind == "MessageEvent":
        wanted["llm_message"] = dict
    elif kind == "ActionEvent":
        wanted |= {"tool_call_id": str, "tool_name": str, "tool_call": dict, "thought": list,
                   "llm_response_id": str, "action": dict}  # fmt: skip
    elif kind in _RESULTS:
        wanted |= {"tool_call_id": str, "tool_name": str}
        wanted |= {"observation": dict} if kind == "ObservationEvent" else {}
    else:
        return False
    return all(isinstance(row.get(key), form) and row[key] for key, form in wanted.items()
               if key != "thought") and isinstance(row.get("thought", []), list)  # fmt: skip


def _text(text: str) -> Event:
    return {"cache_prompt": False, "type": "text", "text": text}


def _content(part: Part) -> Event:
    """Return a text or file part as content; other files than pictures are named."""
    if part.get("type") != "file":
        return _text(part["text"])
    inline = inline_data(part)
    if inline is None or not re.match(r"image/", inline[0]):
        return _text(file_name(part))
    url = f"data:{inline[0]};base64,{inline[1]}"
    return {"cache_prompt": False, "type": "image", "image_urls": [url]}


def _usage(counts: Mapping[str, int], model: str, response: str) -> dict[str, Any]:
    """Return what a response used: the prompt includes the caches, the completion its reasoning."""
    prompt = counts["input"] + counts["cache_read"] + counts["cache_write"]
    said = counts["output"] + counts["reasoning"]
    return {
        "model": model, "prompt_tokens": prompt, "completion_tokens": said,
        "cache_read_tokens": counts["cache_read"], "cache_write_tokens": counts["cache_write"],
        "reasoning_tokens": counts["reasoning"], "context_window": 0,
        "per_turn_token": prompt + said, "response_id": response,
    }  # fmt: skip


def _metrics(model: str, used: list[dict[str, Any]]) -> dict[str, Any]:
    total = _usage(dict.fromkeys(
        ("input", "output", "reasoning", "cache_read", "cache_write"), 0), model, "")  # fmt: skip
    for each in used:
        for key in total:
            if key.endswith("_tokens"):
                total[key] += each[key]
    return {
        "model_name": model, "accumulated_cost": 0.0, "accumulated_token_usage": total,
        "costs": [], "response_latencies": [], "token_usages": used,
    }  # fmt: skip
