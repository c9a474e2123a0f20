"""From one conversation's files to its session: title, state, usage, lineage.

Source: the OpenHands format page, sections 2, 4 and 5. Usage is in the state alone: by request,
joined to answers by the id of the response, and as sums; what no answer has is one more answer.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.documents import parse_document
from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import Depends, entries_of
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.plain_parts import is_open
from store.sources.base.protocol import Fact, FileStamp, Library, Problem
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import (
    iso_ms,
    mapping,
    named_model,
    number,
    plausible_ms,
    string,
)
from store.sources.openhands.messages import Event, Messages, prompt_digest
from store.system.paths import read_regular

KIND = "openhands"
STATE, EVENTS = "base_state.json", "events"
_SUBAGENTS = "subagents"
_EVENT = re.compile(r"event-(\d{5,9})-([0-9A-Za-z-]{1,200})\.json")
_QUIET = ("", "idle", "finished", "deleting")
_STATES = {"paused": "interrupted", "error": "error", "stuck": "error"}
_OF_TASKS = "task:"
"""Begins the name of a subagent's usage, which its own state has too."""
_TOLD = "state:"
"""Begins the fact of what a state said last."""
_STARTED = "started-by:"
"""Begins the fact of a subagent, for the conversation that started it."""
_EVENTS_LOOKED_AT = 20
_QUARTER_S, _LARGEST_ZONE_S, _WRITTEN_WITHIN_S = 900, 14 * 3600, 5
_LEAST_COST = 1e-9
_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read_tokens",
           "cache_write_tokens")  # fmt: skip


def event_order(name: str) -> tuple[int, str] | None:
    """Return the number and the id that the name of an event's file says; None for others."""
    found = _EVENT.fullmatch(name)
    return None if found is None else (int(found[1]), found[2])


class Parsed:
    """The files of one conversation, each parsed once.

    Attributes:
        state: The state as it was last whole; None before.
        events: The events that are whole, in order.
        has_gaps: Whether events are missing between them, by their numbers.
        zone: The zone of most of them, in seconds; None where it is not known.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self.state: dict[str, Any] | None = None
        self.events: list[Event] = []
        self.has_gaps = False
        self.zone: int | None = None
        self._known: dict[str, tuple[bytes, dict[str, Any] | None, str | None]] = {}

    def take(
        self, bodies: Mapping[str, bytes], written: Mapping[str, int], problems: list[Problem]
    ) -> None:
        """Take the files as they are now.

        Args:
            bodies: Their bytes by path.
            written: When they were written, ns, by path.
            problems: Takes what is damaged.
        """
        found: list[tuple[tuple[int, str], str, dict[str, Any]]] = []
        for path, body in bodies.items():
            data, trouble = self._parsed(path, body)
            if trouble is not None:
                problems.append(Problem(path, 0, trouble))
            if data is None:
                continue
            order = event_order(os.path.basename(path))
            if order is None:
                self.state = data
            else:
                found.append((order, path, data))
        for gone in self._known.keys() - bodies.keys():
            del self._known[gone]
        found.sort(key=lambda each: each[0])
        zones = [_zone(data.get("timestamp"), written.get(path, 0)) for _, path, data in found]
        usual = Counter(zone for zone in zones if zone is not None).most_common(1)
        self.zone = usual[0][0] if usual else None
        self.has_gaps = bool(found) and found[-1][0][0] != len(found) - 1
        self.events = [
            Event(name, event_time(data, self.zone if zone is None else zone), data)
            for ((_, name), _, data), zone in zip(found, zones, strict=True)
        ]

    def _parsed(self, path: str, body: bytes) -> tuple[dict[str, Any] | None, str | None]:
        known = self._known.get(path)
        if known is None or known[0] is not body:
            try:
                data, trouble = parse_document(body)
            except LineError as error:
                data, trouble = None, str(error) if body else "empty"
            if data is not None and not isinstance(data, dict):
                data, trouble = None, "no JSON object"
            known = self._known[path] = body, data, trouble
        return known[1], known[2]


def _zone(stamp: object, written_ns: int) -> int | None:
    """Return the zone in which an event's time is, in seconds; None where its file was copied."""
    at = iso_ms(stamp, utc=True) if isinstance(stamp, str) else None
    if at is None:
        return None
    apart = at / 1000 - written_ns / 1e9
    zone = round(apart / _QUARTER_S) * _QUARTER_S
    is_known = abs(zone) <= _LARGEST_ZONE_S and abs(apart - zone) <= _WRITTEN_WITHIN_S
    return zone if is_known else None


def event_time(data: dict[str, Any], zone: int | None) -> int:
    """Return an event's time as epoch ms: without a zone in that zone, or of this machine."""
    stamp = data.get("timestamp")
    if not isinstance(stamp, str):
        return 0
    if zone is None:
        return _ms(stamp)
    try:
        if datetime.fromisoformat(stamp).tzinfo is not None:
            return _ms(stamp)
    except ValueError:
        return 0
    at = iso_ms(stamp, utc=True)
    return 0 if at is None else plausible_ms(at - zone * 1000) or 0


def _ms(stamp: str) -> int:
    return iso_ms(stamp) or 0


def conversation_drafts(
    folder: str, parsed: Parsed, library: Library, depends: Depends
) -> list[SessionDraft]:
    """Return the session of a conversation; none where it has no events.

    Args:
        folder: Its folder.
        parsed: What its files hold.
        library: Has what a state said before, and the subagents.
        depends: Takes what it tells others, and wants to know of them.
    """
    if not parsed.events:
        return []
    name = os.path.basename(folder)
    before = [mapping(json.loads(fact.value)) for fact in library.facts(_TOLD + name)]
    events = _with_lost(name, parsed, library, before)
    told = {**_told(parsed, before), "events": len(events)}
    depends.facts.append(Fact(_TOLD + name, name, json.dumps(told)))
    starts = any(event.data.get("tool_name") == "task" for event in events)
    built = Messages(_children(folder, library, depends) if starts else ())
    for record, event in enumerate(events):
        built.take(event, record)
    times = [event.at for event in events if event.at]
    draft = SessionDraft(
        name, os.path.join(folder, STATE), KIND, min(times, default=0), max(times, default=0),
        workspace_root=string(told.get("folder")), messages=built.finished(),
        records=[_record(event) for event in events],
    )  # fmt: skip
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    draft.model = named_model(told.get("model"))
    status = string(told.get("status"))
    if status is not None:
        draft.metadata["backscroll"] = {"status": status}
    activity = _activity(status, draft)
    if activity is not None:
        draft.metadata["activity"] = activity
    _count(draft, built.responses, mapping(told.get("usage")))
    _link(draft, folder, events, depends)
    return [draft]


def _with_lost(
    name: str, parsed: Parsed, library: Library, before: list[dict[str, Any]]
) -> list[Event]:
    """Return the events, with those whose files are gone or damaged as the library has them.

    Args:
        name: The conversation's id.
        parsed: What its files hold.
        library: Has the records of before.
        before: What was said of the conversation before.
    """
    found = list(parsed.events)
    known = max((number(one.get("events")) for one in before), default=0)
    if not parsed.has_gaps and len(found) >= known:
        return found
    ids = {string(event.data.get("id")) or event.name for event in found}
    places = {_record(event): place for place, event in enumerate(found)}
    lost: list[tuple[int, Event]] = []
    at = 0
    for record in library.records(name):
        data = mapping(decoded(record))
        event_id = string(data.get("id"))
        if record in places:
            at = places[record] + 1
        elif event_id is not None and event_id not in ids:
            lost.append((at, Event(event_id, event_time(data, parsed.zone), data)))
    for place, event in reversed(lost):
        found.insert(place, event)
    return found


def _children(folder: str, library: Library, depends: Depends) -> list[tuple[str, str]]:
    """Return the subagents in the order in which they began, each with its prompt's digest.

    Args:
        folder: The conversation's folder.
        library: Has those whose files are gone.
        depends: Takes what was looked at.
    """
    name, below = os.path.basename(folder), os.path.join(folder, _SUBAGENTS)
    depends.looked.append(FileStamp.now(below))
    depends.wants.add(_STARTED + name)
    found = {fact.session: fact.value for fact in library.facts(_STARTED + name)}
    for entry in entries_of(below):
        events = os.path.join(entry.path, EVENTS)
        listed = (each for each in entries_of(events) if event_order(each.name) is not None)
        for each in islice(listed, _EVENTS_LOOKED_AT):
            started = _started(each.path)
            if started is not None:
                depends.looked.append(FileStamp.now(each.path))
                found[entry.name] = started
                break
        else:
            depends.looked.append(FileStamp.now(events))
    return sorted((value, session) for session, value in found.items())


def _started(path: str) -> str | None:
    """Return the time and digest of the prompt in an event's file; None for other events."""
    try:
        return _prompted(mapping(parse_json(read_regular(path))[0]))
    except (OSError, LineError):
        return None


def _prompted(data: dict[str, Any]) -> str | None:
    if data.get("kind") != "MessageEvent" or data.get("source") != "user":
        return None
    content = mapping(data.get("llm_message")).get("content")
    blocks = map(mapping, content if isinstance(content, list) else ())
    text = "".join(each["text"] for each in blocks if isinstance(each.get("text"), str))
    return f"{string(data.get('timestamp')) or ''}:{prompt_digest(text)}"


def _record(event: Event) -> bytes:
    """Return an event as a record; of a system prompt only that there was one."""
    data = event.data
    if data.get("kind") == "SystemPromptEvent":
        data = {key: data.get(key) for key in ("id", "timestamp", "source", "kind")}
    return record_bytes(data)


def _told(parsed: Parsed, before: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is needed of the state; of one that cannot be read what it said before."""
    state = parsed.state
    if state is None:
        return before[-1] if before else {}
    metrics = mapping(mapping(state.get("stats")).get("usage_to_metrics"))
    return {
        "folder": string(mapping(state.get("workspace")).get("working_dir")),
        "model": string(mapping(mapping(state.get("agent")).get("llm")).get("model")),
        "status": string(state.get("execution_status")),
        "usage": {
            usage_id: _metric(mapping(metric)) for usage_id, metric in metrics.items()
            if not usage_id.startswith(_OF_TASKS)
        },
    }  # fmt: skip


def _metric(metric: dict[str, Any]) -> dict[str, Any]:
    """Return what was used for one purpose: its sum, its cost, and each request."""
    listed, costs = metric.get("token_usages"), metric.get("costs")
    requests = [mapping(each) for each in listed] if isinstance(listed, list) else []
    each_cost = [_dollars(mapping(each).get("cost")) for each in costs] if (
        isinstance(costs, list)) else []
    if len(each_cost) != len(requests):
        # They name no response: only their order says whose they are.
        each_cost = [0.0] * len(requests)
    return {
        "model": string(metric.get("model_name")),
        "sum": _counts(mapping(metric.get("accumulated_token_usage"))),
        "cost": _dollars(metric.get("accumulated_cost")),
        "requests": [
            [string(each.get("response_id")), string(each.get("model")), _counts(each), cost]
            for each, cost in zip(requests, each_cost, strict=True)
        ],
    }


def _dollars(value: object) -> float:
    """Return a cost; 0 where the price is not known."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e9 else 0.0


def _counts(usage: dict[str, Any]) -> list[int]:
    return [max(0, number(usage.get(name))) for name in _COUNTS]


def _buckets(counts: Iterable[int]) -> dict[str, int]:
    """Return disjoint buckets: the prompt includes caches, the completion its reasoning."""
    prompt, said, reasoning, read, write = counts
    return {
        "input": max(0, prompt - read - write), "output": max(0, said - reasoning),
        "reasoning": reasoning, "cache_read": read, "cache_write": write,
    }  # fmt: skip


def _count(
    draft: SessionDraft, responses: Mapping[str, MessageDraft], usage: dict[str, Any]
) -> None:
    """Give each answer what its request used, and add what belongs to no answer."""
    for usage_id, told in usage.items():
        metric = mapping(told)
        rest = [number(each) for each in metric.get("sum") or [0] * len(_COUNTS)]
        cost = float(metric.get("cost") or 0)
        for response, model, counts, own_cost in metric.get("requests") or ():
            answer = responses.get(response or "")
            if answer is None or "usage" in answer.metadata:
                continue
            answer.metadata["usage"] = _buckets(counts)
            if named_model(model) is not None:
                answer.metadata["model"] = named_model(model)
            rest = [max(0, had - own) for had, own in zip(rest, counts, strict=True)]
            if own_cost:
                answer.metadata["cost_usd"] = own_cost
                cost -= own_cost
        if not any(rest) and cost < _LEAST_COST:
            continue
        at = draft.updated_at
        used = MessageDraft(f"usage:{usage_id}", "assistant", at, at, {
            "usage": _buckets(rest),
            "backscroll": {"no_answer": True, "initiator": usage_id}})  # fmt: skip
        if named_model(metric.get("model")) is not None:
            used.metadata["model"] = named_model(metric["model"])
        if cost >= _LEAST_COST:
            used.metadata["cost_usd"] = cost
        used.records = (len(draft.records) - 1,)
        draft.messages.append(used)


def _activity(status: str | None, draft: SessionDraft) -> dict[str, Any] | None:
    """Return what the state says of the last turn; None where it ended.

    A killed process leaves ``running``, so that this is a guess.
    """
    since = draft.updated_at
    if status == "running":
        return {"state": "running", "from": "guessed", "since": since}
    if status == "waiting_for_confirmation":
        for part in (part for one in draft.messages for part in one.parts if is_open(part)):
            part.data["state"] = part.tool_state = "approval-requested"
            part.data["approval"] = {"id": part.tool_call_id}
        return {"state": "waiting-approval", "from": "stored", "since": since}
    if status is None or status in _QUIET:
        return None
    state = _STATES.get(status)
    word = {} if state is not None else {"word": status}
    return {"state": state or "unknown", "from": "stored", "since": since, **word}


def _link(draft: SessionDraft, folder: str, events: list[Event], depends: Depends) -> None:
    """Say which conversation started this one: its folder is in that one's."""
    above = os.path.dirname(folder)
    if os.path.basename(above) != _SUBAGENTS:
        return
    parent = os.path.basename(os.path.dirname(above))
    draft.lineage = LineageDraft("subagent", parent)
    started = next(filter(None, (_prompted(event.data) for event in events)), None)
    if started is not None:
        depends.facts.append(Fact(_STARTED + parent, draft.source_id, started))
