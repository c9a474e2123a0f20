"""The size of a session's context: characters by kind, and tokens where a model counted them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from store.engine import prompts
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.rows import is_tool_type
from store.usage import KEYS

Kind = Literal[
    "system", "summary", "user", "assistant", "reasoning", "tool input", "tool output"
]
KINDS: tuple[Kind, ...] = (
    "system", "summary", "user", "assistant", "reasoning", "tool input", "tool output",
)
_COUNTED = tuple(key for key in KEYS if key != "reasoning")


@dataclass(slots=True)
class ContextUsage:
    """Grows page by page, in the order of the context view.

    Attributes:
        characters: By kind; for a tool, of its input and output as JSON.
        counted: Tokens in the context after the newest answer that counted them; None where
            none did. Answers from before the newest compaction do not count.
        since: Characters that came after that answer.
        first: ``(created_at, id)`` of the first message of the view.
        digest: Of the newest system prompt that a message names.
    """

    characters: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    counted: int | None = None
    since: int = 0
    first: tuple[int, str] | None = None
    digest: str | None = None


def add_page(db: Database, context: ContextUsage, message_ids: Sequence[str]) -> None:
    """Add some messages, the next ones of the context view.

    Args:
        db: The store.
        context: What is filled.
        message_ids: The messages' ids, in their order.
    """
    data, sql = "p.data_json", db.sql
    output = f"coalesce({sql.json_at(data, 'output')}, {sql.json_at(data, 'errorText')})"
    rows = db.connection.execute(
        "SELECT m.id, m.created_at, m.role, m.metadata_json, p.type,"
        f" CASE WHEN NOT {sql.is_json(data)} THEN length({sql.text(data)})"
        f" WHEN p.type IN ('text', 'reasoning') THEN length({sql.fact(data, 'text')})"
        f" WHEN p.type = 'data-compaction' THEN length({sql.fact(data, 'data.summary')})"
        f" WHEN {_IS_TOOL} THEN length({sql.json_at(data, 'input')}) ELSE 0 END,"
        f" CASE WHEN {_IS_TOOL} THEN length({output}) END"
        f" FROM {sql.texts('$1', 'j')} {sql.then_join} chat_messages m ON m.id = j.value"
        " LEFT JOIN chat_parts p ON p.message_id = m.id"
        ' ORDER BY j.key, p."index"',
        {"1": json.dumps(list(message_ids))},
    )
    current, usage = "", None
    for message_id, created_at, role, metadata, kind, size, output in rows:
        created_at = number(created_at)
        if message_id != current:
            _close(context, usage)
            current = message_id
            context.first = context.first or (created_at, message_id)
            shown = (created_at, message_id) >= context.first
            usage = _read_message(context, metadata) if shown else None
        _add(context, text(role) or "", text(kind) or "", number(size), number(output))
    _close(context, usage)


_IS_TOOL = "(p.type = 'dynamic-tool' OR p.type LIKE 'tool-%')"


def _close(context: ContextUsage, usage: int | None) -> None:
    if usage is not None:
        context.counted, context.since = usage, 0


def _add(context: ContextUsage, role: str, kind: str, size: int, output: int) -> None:
    name: Kind | None = None
    if kind == "text":
        name = "assistant" if role == "assistant" else "system" if role == "system" else "user"
    elif kind == "reasoning":
        name = "reasoning"
    elif kind == "data-compaction":
        name = "summary"
    elif is_tool_type(kind):
        name = "tool input"
        context.characters["tool output"] += output
    if name is not None:
        context.characters[name] += size
        context.since += size + output


def _read_message(context: ContextUsage, metadata: str) -> int | None:
    bag = decoded(metadata)
    if isinstance(bag.get("system_prompt_digest"), str):
        context.digest = bag["system_prompt_digest"]
    usage = bag.get("usage")
    if not isinstance(usage, dict):
        return None
    cache = usage.get("cache")
    nested = {"cache_read": cache.get("read"), "cache_write": cache.get("write")} \
        if isinstance(cache, dict) else {}
    found = [value for key in _COUNTED
             if isinstance(value := usage.get(key, nested.get(key)), int)]
    return sum(found) or None


def add_system(db: Database, context: ContextUsage) -> None:
    """Add the system prompt, where its text was kept."""
    body = prompts.get(db, context.digest) if context.digest is not None else None
    if body is not None:
        context.characters["system"] += len(body)
