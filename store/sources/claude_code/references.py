"""The ids that rows define, and those that they name of other rows."""

from __future__ import annotations

from typing import Any

from store.sources.claude_code.rows import Row, string
from store.sources.claude_code.transcript import Transcript

LONGEST = 100
"""Characters of the longest id; longer texts name nothing."""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_CONTENT = frozenset(
    ["message", "toolUseResult", "attachment", "sessionId", "cwd", "version", "timestamp",
     "gitBranch", "type", "userType"]
)  # fmt: skip
"""Fields that are looked into by themselves, or never name another row."""
_STARTED = frozenset(["agentId", "runId"])


def defined_by(row: Row) -> list[str]:
    """Return the ids that a row defines: its own, its API message's, its calls'."""
    found = row.defines
    if found is None:
        found = row.defines = [row.uuid]
        if row.type == "assistant":
            found.append(row.message_id)
            for block in row.blocks:
                if block.get("type") in _CALLS and isinstance(call_id := block.get("id"), str):
                    found.append(call_id)
    return found


def named_by(row: Row) -> list[str]:
    """Return what may be an id in a row, of itself or of another row."""
    found: list[str] = []
    data = row.data
    for key in data.keys() - _CONTENT:
        value = data[key]
        if type(value) is str:
            if len(value) <= LONGEST:
                found.append(value)
        elif isinstance(value, dict | list):
            _add_texts(found, value)
    if row.stands_for is not None:
        found.append(row.stands_for)
    if row.type == "assistant":
        found.append(row.message_id)
    for block in row.blocks:
        if isinstance(own := block.get("id"), str):
            found.append(own)
        if isinstance(call := block.get("tool_use_id"), str):
            found.append(call)
    if isinstance(result := data.get("toolUseResult"), dict):
        found += [name for key in result.keys() & _STARTED if (name := string(result[key]))]
    if isinstance(attachment := data.get("attachment"), dict):
        found += [
            value for value in attachment.values()
            if isinstance(value, str) and len(value) <= LONGEST
        ]  # fmt: skip
    return found


def _add_texts(found: list[str], value: Any) -> None:
    if isinstance(value, str):
        if len(value) <= LONGEST:
            found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _add_texts(found, item)
    elif isinstance(value, list):
        for item in value:
            _add_texts(found, item)


def later_references(transcript: Transcript) -> set[str] | None:
    """Return what the rows after the context name and do not define themselves.

    Returns:
        None where that is a row of the context, other than the parent of the first of them.
    """
    first = transcript.context_rows
    rows = transcript.rows[first:]
    defined = set[str]().union(*map(defined_by, rows))
    named = set[str]().union(*map(named_by, rows[1:] if first else rows))
    if first and rows:
        named.update(name for name in named_by(rows[0]) if name != rows[0].parent)
    named.update(leaf for leaf, _ in transcript.summaries)
    if transcript.leaf is not None:
        named.add(transcript.leaf)
    named -= defined
    if first:
        for row in transcript.rows[:first]:
            for name in defined_by(row):
                if name in named and not transcript.stands_for(name):
                    return None
                named.discard(name)
    return named
