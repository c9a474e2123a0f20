"""Makes small Codex rollouts by hand, and reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.protocol import Problem
from store.sources.codex import CodexSource

DATA = Path(__file__).parent.parent / "data" / "codex"
START = 1_795_000_000_000
BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")


def thread_id(number: int) -> str:
    """Return a UUID of version 7; a higher number is a later one."""
    return f"01a00000-{number:04x}-7000-8000-000000000000"


def iso(at: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


class Lines:
    """The lines of one rollout; ``start`` is the first ordinal, None for the legacy mode."""

    def __init__(self, thread: str, start: int | None = 0, at: int = START, **meta: Any) -> None:
        self.thread, self.ordinal, self.at = thread, start, at
        self.lines: list[dict[str, Any]] = []
        self.calls = 0
        mode = "legacy" if start is None else "paginated"
        self.add("session_meta", {
            "id": thread, "timestamp": iso(at), "cwd": "/w", "originator": "tests",
            "cli_version": "0.171.0", "source": "cli", "model_provider": "openai",
            "history_mode": mode, **meta,
        })  # fmt: skip

    def add(self, kind: str, payload: dict[str, Any], **envelope: Any) -> None:
        line = {"timestamp": iso(self.at), "type": kind, "payload": payload, **envelope}
        if self.ordinal is not None:
            line["ordinal"] = self.ordinal
            self.ordinal += 1
        self.lines.append(line)
        self.at += 100

    def item(self, kind: str, **fields: Any) -> None:
        self.add("response_item", {"type": kind, **fields})

    def event(self, kind: str, **fields: Any) -> None:
        self.add("event_msg", {"type": kind, **fields})

    def user(self, text: str, *, event: bool = True) -> None:
        self.item("message", role="user", content=[{"type": "input_text", "text": text}])
        if event:
            self.event("user_message", message=text)

    def says(self, text: str) -> None:
        content = [{"type": "output_text", "text": text}]
        self.item("message", role="assistant", content=content)

    def call(self, name: str, **arguments: Any) -> str:
        self.calls += 1
        call_id = f"call_{self.calls}"
        self.item("function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)
        return call_id

    def output(self, call_id: str, output: Any) -> None:
        self.item("function_call_output", call_id=call_id, output=output)

    def usage(self, response: str, given: int = 100, cached: int = 40, output: int = 10) -> None:
        used = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output,
                "reasoning_output_tokens": 4, "total_tokens": given + output}  # fmt: skip
        record = {"thread_id": self.thread, "response_id": response, "usage": used}
        self.add("token_usage_record", record)

    def count(self, total: int, last: int) -> None:
        self.event("token_count", info={
            "total_token_usage": {"input_tokens": total, "total_tokens": total},
            "last_token_usage": {"input_tokens": last, "total_tokens": last},
        })  # fmt: skip

    def turn(self, text: str, answer: str, response: str) -> None:
        self.event("task_started", turn_id=f"turn-{response}")
        self.user(text)
        self.says(answer)
        self.usage(response)
        self.event("task_complete", turn_id=f"turn-{response}", last_agent_message=answer)

    def text(self) -> str:
        return "".join(json.dumps(line) + "\n" for line in self.lines)

    def write(self, home: Path, segment: str | None = None, folder: str = "sessions") -> Path:
        parent = home / folder / ("2026/11/18" if folder == "sessions" else "")
        parent.mkdir(parents=True, exist_ok=True)
        name = self.thread + (f"_{segment}" if segment else "")
        path = parent / f"rollout-2026-11-18T10-00-00-{name}.jsonl"
        path.write_text(self.text())
        return path


def read(
    root: Path, source: CodexSource | None = None
) -> tuple[dict[str, SessionDraft], list[Problem]]:
    source = source or CodexSource()
    problems: list[Problem] = []
    drafts: dict[str, SessionDraft] = {}
    for unit in source.units(root, problems):
        reading = source.read(root, unit)
        problems += reading.problems
        drafts |= {draft.source_id: draft for draft in reading.sessions}
    return drafts, problems


def read_one(lines: Lines, home: Path) -> SessionDraft:
    drafts, problems = read(lines.write(home))
    assert problems == []
    return drafts[lines.thread]


def shown(messages: Iterable[MessageDraft]) -> list[MessageDraft]:
    return [message for message in messages if "hidden_at" not in message.metadata]


def said(message: MessageDraft) -> str:
    return "|".join(part.data.get("text") or part.type for part in message.parts)


def shape(draft: SessionDraft) -> list[tuple[str, str]]:
    """Return role and text of each message that stands and is no context."""
    return [
        (message.role, said(message))
        for message in shown(draft.messages)
        if message.metadata.get("origin") != "meta"
    ]


def tools(messages: Iterable[MessageDraft]) -> list[PartDraft]:
    return [part for message in messages for part in message.parts if part.tool_call_id]


def extra(part: PartDraft) -> dict[str, Any]:
    found: dict[str, Any] = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    return found


def spent(drafts: Iterable[SessionDraft]) -> dict[str, int]:
    """Return what was spent, copies left out."""
    total = dict.fromkeys(BUCKETS, 0)
    for draft in drafts:
        for message in draft.messages:
            if message.inherited_from is None:
                for bucket, value in message.metadata.get("usage", {}).items():
                    total[bucket] += value
    return total


def api(usage: dict[str, int]) -> dict[str, int]:
    """Return buckets as the API counts them."""
    return {
        "input": usage["input"] + usage["cache_read"] + usage["cache_write"],
        "cached_input": usage["cache_read"],
        "output": usage["output"] + usage["reasoning"],
        "reasoning": usage["reasoning"],
    }
