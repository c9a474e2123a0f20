"""Codex: ``token_usage_record`` once a response; before 0.100 each ``token_count`` that moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.counted.answers import Counted, largest, lines, ms, parted


def counted(root: Path) -> list[Counted]:
    paths = [*root.glob("sessions/**/*.jsonl"), *root.glob("archived_sessions/*.jsonl")]
    return largest(one for path in sorted(paths) for one in _answers(list(lines(path))))


def _answers(rows: list[dict[str, Any]]) -> Iterator[tuple[Any, Counted]]:
    has_records = any(row["type"] == "token_usage_record" for row in rows)
    waiting: list[dict[str, Any]] = []
    model, last, told, returned = "unknown", None, False, True
    for row in [*rows, _END]:
        payload, at = row["payload"], ms(row["timestamp"])
        is_user = payload.get("role") == "user" or row is _END
        if is_user or payload.get("type") == "task_complete":
            # Answers that no line counted, as the turn was broken off or the version counts none.
            for one in [] if told else waiting:
                yield str(one), Counted(model, ms(one["timestamp"]))
            waiting, told, returned = [], False, True
        if row["type"] == "turn_context":
            model = payload["model"]
        elif row["type"] == "event_msg" and payload.get("type") == "thread_settings_applied":
            model = payload["thread_settings"].get("model") or model
        elif payload.get("role") == "assistant" or payload.get("type") in _ANSWERS:
            if returned:
                waiting.append(row)
            returned = False
        elif payload.get("type") in _RETURNED:
            returned = True
        elif row["type"] == "token_usage_record":
            told = True
            name = payload["thread_id"], payload["response_id"]
            yield name, Counted(model, at, _tokens(payload["usage"]))
        elif payload.get("type") == "token_count" and not has_records:
            info, told = payload.get("info") or {}, True
            total = info.get("total_token_usage")
            if total is not None and total != last:
                # Copies in a fork have other times, but the same totals.
                yield str(total), Counted(model, at, _tokens(info["last_token_usage"]))
            last = total if total is not None else last


_ANSWERS = {"agent_message", "function_call", "custom_tool_call"}
_RETURNED = {"function_call_output", "custom_tool_call_output"}
_END: dict[str, Any] = {"type": "", "payload": {}, "timestamp": "2100-01-01T00:00:00Z"}


def _tokens(usage: dict[str, int]) -> tuple[int, int, int, int, int]:
    return parted(
        usage["input_tokens"], usage["output_tokens"],
        reasoning=usage.get("reasoning_output_tokens", 0),
        read=usage.get("cached_input_tokens", 0), write=usage.get("cache_write_input_tokens", 0),
    )  # fmt: skip
