"""A session's lines as one list of events, with the payload that some lines lack.

Source: the viben format page. The program writes ``error``, ``question`` and ``result``
lines without what they say; the agent's own event, in another file with the same time
stamp, has it. The sessions of before have only the lines that were sent to the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.sources.base.growing import GrowingFile
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.viben.settings import snake

_SAME = {
    "id": "tool_use_id", "name": "tool_name", "input": "tool_input", "output": "tool_output",
}  # fmt: skip
"""Fields of an agent's tool events, and what a line calls the same."""


@dataclass(slots=True)
class Event:
    """One thing that happened.

    Attributes:
        data: Its fields, by keys as ``tool_use_id``.
        at: Epoch ms; 0 where the line has no time.
        records: Numbers of the lines it comes from.
    """

    id: str
    type: str
    task_id: str | None
    at: int
    data: dict[str, Any]
    records: tuple[int, ...]


def events_of(ui: GrowingFile, agent: GrowingFile | None, first: int, agent_first: int
              ) -> list[Event]:  # fmt: skip
    """Return the events of ``messages.ui.jsonl``.

    Args:
        ui: That file.
        agent: ``messages.agent.jsonl``.
        first: Number of the first record of ``ui``.
        agent_first: Number of the first record of ``agent``.
    """
    said: dict[tuple[str, str], list[tuple[dict[str, Any], int]]] = {}
    for line in agent.lines if agent is not None else ():
        raw = mapping(line.data.get("raw"))
        key = (str(line.data.get("timestamp")), str(raw.get("type")))
        said.setdefault(key, []).append((raw, agent_first + line.number))
    found: list[Event] = []
    for line in ui.lines:
        data = {snake(key): value for key, value in line.data.items()}
        kind = string(data.get("type")) or string(data.get("role")) or "event"
        records: tuple[int, ...] = (first + line.number,)
        matching = said.get((str(data.get("timestamp")), kind))
        if matching:
            raw, number = matching.pop(0)
            records = (*records, number)
            data = {**_payload(kind, raw), **data}
        found.append(_event(data, kind, line.name, records))
    return found


def _payload(kind: str, raw: dict[str, Any]) -> dict[str, Any]:
    named = {snake(key): value for key, value in raw.items()}
    if kind in ("tool_use", "tool_result", "question"):
        return {_SAME.get(key, key): value for key, value in named.items()}
    named.pop("id", None)
    return named


def _event(data: dict[str, Any], kind: str, placed: str, records: tuple[int, ...]) -> Event:
    return Event(
        string(data.get("id")) or placed, kind, string(data.get("task_id")),
        epoch_ms(data.get("timestamp")) or 0, data, records,
    )  # fmt: skip


def older_events(files: Sequence[tuple[GrowingFile, int]]) -> list[Event]:
    """Return the events of ``messages.rollout.jsonl``, or of a board's ``messages.jsonl``.

    Args:
        files: The files with the number of their first record.
    """
    found: list[Event] = []
    for file, first in files:
        for line in file.lines:
            data = {snake(key): value for key, value in line.data.items()}
            records = (first + line.number,)
            for kind, more in _of_rollout(data):
                found.append(_event({**data, **more}, kind, line.name, records))
    return found


def _of_rollout(data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the events that a line of the older form is made of."""
    role, result = data.get("role"), data.get("tool_result")
    if string(data.get("type")) is not None:
        return [(str(data["type"]), {})]
    if role == "user":
        return [("user", {})]
    found: list[tuple[str, dict[str, Any]]] = []
    if isinstance(result, dict):
        named = {snake(key): value for key, value in result.items()}
        output = named.get("output", data.get("content"))
        return [("tool_result", {"tool_use_id": named.get("tool_use_id"), "tool_output": output,
                                 "is_error": named.get("is_error")})]  # fmt: skip
    if string(data.get("content")) is not None:
        found.append(("text", {}))
    calls = data.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        named = {snake(key): value for key, value in mapping(call).items()}
        named = {_SAME.get(key, key): value for key, value in named.items()}
        named.setdefault("tool_input", named.get("arguments"))
        found.append(("tool_use", named))
    return found or [("text", {})]
