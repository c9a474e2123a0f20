"""The ids that rows define, and those that they name of other rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from store.sources.claude_code.rows import Row, string
from store.sources.claude_code.transcript import Transcript

LONGEST = 100
"""Characters of the longest id; longer texts name nothing."""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_CONTENT = frozenset(
    ["message", "toolUseResult", "attachment", "uuid", "sessionId", "cwd", "version", "timestamp",
     "gitBranch", "type", "userType", "isSidechain", "requestId"]
)  # fmt: skip
"""Fields that are looked into by themselves, or never name another row."""
_STARTED = ("agentId", "runId")


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
    return [*defined_by(row), *named_of_others(row)]


def named_of_others(row: Row) -> list[str]:
    """Return what may be an id in a row, but for those that the row defines."""
    found: list[str] = []
    data, is_answer = row.data, row.type == "assistant"
    for key in _keys_that_name(tuple(data)):
        value = data[key]
        if type(value) is str:
            if len(value) <= LONGEST:
                found.append(value)
        elif value:
            _add_texts(found, value)
    if row.stands_for is not None:
        found.append(row.stands_for)
    for block in row.blocks:
        get = block.get
        if isinstance(call := get("tool_use_id"), str):
            found.append(call)
        if not (is_answer and get("type") in _CALLS) and isinstance(name := get("id"), str):
            found.append(name)
    if "toolUseResult" in data and isinstance(result := data["toolUseResult"], dict):
        for key in _STARTED:
            if key in result and (name := string(result[key])):
                found.append(name)
    if "attachment" in data and isinstance(attachment := data["attachment"], dict):
        found += [
            value for value in attachment.values()
            if isinstance(value, str) and len(value) <= LONGEST
        ]  # fmt: skip
    if data.get("uuid") != row.uuid and (own := string(data.get("uuid"))):
        found.append(own)  # another row has it
    return found


@lru_cache(maxsize=256)
def _keys_that_name(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return those fields of a row that may name another one; most rows have the same fields."""
    return tuple(key for key in keys if key not in _CONTENT)


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


class NamingTranscript(Transcript):
    """A session file that notes, as its rows come, what they define and what they name.

    A second pass over all rows would find none of them in the processor's cache.
    """

    def __init__(self, path: str, line_limit: int, **begin: int) -> None:
        """Start with nothing read.

        Args:
            path: The file.
            line_limit: Bytes of the longest line that is read.
            begin: Where it is read from, as in ``LinesFile``.
        """
        super().__init__(path, line_limit, **begin)
        self._defined: set[str] = set()
        self._named: set[str] = set()

    def take_context(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take the earlier records; what those name is not asked for."""
        super().take_context(records)
        self._defined.clear()
        self._named.clear()

    def add(self, row: Row) -> None:
        """Add a row, and note what it defines and names."""
        super().add(row)
        self._defined.update(defined_by(row))
        named = named_of_others(row)
        if 0 < self.context_rows == len(self.rows) - 1:
            # The first row after the context follows one of it.
            named = [name for name in named if name != row.parent]
        self._named.update(named)

    def later_references(self) -> set[str] | None:
        """Return what the rows after the context name and do not define themselves.

        Returns:
            None where that is a row of the context, other than the parent of the first of them.
        """
        named = self._named.union(leaf for leaf, _ in self.summaries)
        if self.leaf is not None:
            named.add(self.leaf)
        named -= self._defined
        for row in self.rows[: self.context_rows]:
            for name in defined_by(row):
                if name in named and not self.stands_for(name):
                    return None
                named.discard(name)
        return named
