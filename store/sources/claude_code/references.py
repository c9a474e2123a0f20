"""The ids that rows define, and those that they name of other rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.sources.claude_code.rows import Row, mapping, string
from store.sources.claude_code.transcript import Transcript

LONGEST = 100
"""Characters of the longest id; longer texts name nothing."""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_CONTENT = frozenset(
    ["message", "toolUseResult", "attachment", "sessionId", "cwd", "version", "timestamp",
     "gitBranch", "type", "userType"]
)  # fmt: skip
"""Fields that are looked into by themselves, or never name another row."""
_STARTED = ("agentId", "runId")


def defined_by(row: Row) -> Iterator[str]:
    """Yield the ids that a row defines: its own, its API message's, its calls'."""
    yield row.uuid
    if row.type == "assistant":
        yield row.message_id
        for block in row.blocks:
            call_id = block.get("id")
            if block.get("type") in _CALLS and isinstance(call_id, str):
                yield call_id


def named_by(row: Row) -> Iterator[str]:
    """Yield what may be an id in a row, of itself or of another row."""
    for key, value in row.data.items():
        if key not in _CONTENT:
            yield from _texts(value)
    if row.stands_for is not None:
        yield row.stands_for
    if row.type == "assistant":
        yield row.message_id
    for block in row.blocks:
        for key in ("id", "tool_use_id"):
            value = block.get(key)
            if isinstance(value, str):
                yield value
    result = mapping(row.data.get("toolUseResult"))
    for key in _STARTED:
        if name := string(result.get(key)):
            yield name
    attachment = row.data.get("attachment")
    if isinstance(attachment, dict):
        for value in attachment.values():
            if isinstance(value, str) and len(value) <= LONGEST:
                yield value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) <= LONGEST:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def later_references(transcript: Transcript) -> set[str] | None:
    """Return what the rows after the context name and do not define themselves.

    Returns:
        None where that is a row of the context, other than the parent of the first of them.
    """
    first = transcript.context_rows
    rows = transcript.rows[first:]
    defined = {name for row in rows for name in defined_by(row)}
    named = {name for row in rows for name in named_by(row)}
    named.update(leaf for leaf, _ in transcript.summaries)
    if transcript.leaf is not None:
        named.add(transcript.leaf)
    named -= defined
    if first:
        named.discard(rows[0].parent or "")
        for row in transcript.rows[:first]:
            for name in defined_by(row):
                if name in named and not transcript.stands_for(name):
                    return None
                named.discard(name)
    return named
