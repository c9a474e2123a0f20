"""Checks a conversation against the recipe that OpenHands was seen to resume from.

Written from the format page, sections 2, 3, 4 and 7.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

NAME = re.compile(r"([0-9a-f]{32})/events/event-(\d{5})-([0-9a-fA-F-]{8,})\.json")
EVENT = {"id", "timestamp", "source", "kind"}
MEMBERS = {
    "SystemPromptEvent": {"system_prompt", "tools"},
    "MessageEvent": {"llm_message", "activated_skills", "extended_content"},
    "ActionEvent": {"thought", "thinking_blocks", "action", "tool_name", "tool_call_id",
                    "tool_call", "llm_response_id"},
    "ObservationEvent": {"tool_name", "tool_call_id", "observation", "action_id"},
    "UserRejectObservation": {"tool_name", "tool_call_id", "rejection_reason", "action_id"},
    "AgentErrorEvent": {"tool_name", "tool_call_id", "error"},
    "Condensation": {"forgotten_event_ids", "summary", "summary_offset", "llm_response_id"},
}  # fmt: skip


def check(text: str, session_id: str) -> dict[str, Any]:
    """Assert that a conversation keeps the recipe; return its state.

    Args:
        text: The state, and after it each event, a line each.
        session_id: The conversation's id.
    """
    assert str(uuid.UUID(session_id)) == session_id
    first, *lines = text.splitlines()
    state: dict[str, Any] = json.loads(first)
    check_events([json.loads(line) for line in lines])
    assert state["id"] == session_id and state["execution_status"] == "finished"
    assert state["agent"]["kind"] == "Agent" and state["agent"]["llm"]["model"]
    # Tools may be added when a conversation is resumed, never removed.
    assert state["agent"]["tools"] == state["agent"]["include_default_tools"] == []
    assert state["workspace"]["working_dir"] and "api_key" not in text
    metrics = state["stats"]["usage_to_metrics"]["backscroll"]
    total = metrics["accumulated_token_usage"]
    for key in ("prompt_tokens", "completion_tokens", "cache_read_tokens", "reasoning_tokens"):
        assert total[key] == sum(each[key] for each in metrics["token_usages"])
    return state


def check_names(beside: Mapping[str, str]) -> list[dict[str, Any]]:
    """Assert that the files of events have the right names; return the events in order."""
    events: list[dict[str, Any]] = []
    for place, (name, body) in enumerate(sorted(beside.items())):
        found, event = NAME.fullmatch(name), json.loads(body)
        assert found is not None and (int(found[2]), found[3]) == (place, event["id"])
        events.append(event)
    return events


def check_events(events: list[dict[str, Any]]) -> None:
    """Assert that events keep the recipe."""
    open_calls: dict[str, str] = {}
    for place, event in enumerate(events):
        kind = event["kind"]
        assert event.keys() >= EVENT | MEMBERS[kind]
        # The program sorts conversations by the times of their first events, which name no zone.
        assert (datetime.fromisoformat(event["timestamp"]).tzinfo is None) == (place == 0)
        assert (kind == "SystemPromptEvent") == (place == 0)
        if kind == "MessageEvent":
            message = event["llm_message"]
            assert not open_calls and message["content"]
            assert message["role"] == ("assistant" if event["source"] == "agent" else "user")
        elif kind == "ActionEvent":
            call = event["tool_call"]
            assert (call["id"], call["name"]) == (event["tool_call_id"], event["tool_name"])
            assert isinstance(json.loads(call["arguments"]), dict) and event["action"]["kind"]
            open_calls[call["id"]] = event["id"]
        elif kind == "Condensation":
            assert event["summary_offset"] == place and event["forgotten_event_ids"] == []
        elif place:
            action = open_calls.pop(event["tool_call_id"])
            assert event.get("action_id", action) == action
    assert not open_calls and events
    ids = [event["id"] for event in events]
    assert len(ids) == len(set(ids))
