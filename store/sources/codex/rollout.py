"""One rollout file, line by line: its records, lines and problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from store.sources.base.json_lines import LINE_LIMIT, JsonLines, Record, parse_line
from store.sources.base.protocol import Problem
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.codex.names import rollout_name

_ITEMS = frozenset(
    ["message", "reasoning", "function_call", "function_call_output", "local_shell_call",
     "local_shell_call_output", "web_search_call", "custom_tool_call", "custom_tool_call_output"]
)  # fmt: skip
"""What the first versions wrote bare, without an envelope."""


@dataclass(slots=True)
class Line:
    """One line.

    Attributes:
        number: Its place among the file's records, from 0.
        place: Physical key and number of the line that it is (a copy of); names it for good.
        ordinal: Its ordinal; None in legacy files.
        type: ``session_meta``, ``response_item``, ``event_msg`` and so on.
        kind: The payload's own ``type``; "" where it has none.
        at: Epoch ms; the previous line's where it has none.
        extra: The envelope's ``metadata``.
    """

    number: int
    place: tuple[str, int]
    ordinal: int | None
    type: str
    kind: str
    payload: dict[str, Any]
    at: int
    extra: dict[str, Any]


class Rollout:
    """What one file holds so far; appended bytes are parsed once, as they come.

    Attributes:
        path: The file.
        key: Its physical key, from its name, else its first line.
        lines: Its lines that could be read.
        meta: The first ``session_meta`` payload; empty before it came.
        gone: Whether its file is gone, and it was read from the library.
        first: The number of the first of ``records``; earlier ones were read before.
        context: Earlier records, by number, that later ones are read with.
        context_lines: How many of ``lines`` are of the context.
    """

    def __init__(
        self,
        path: str,
        line_limit: int = LINE_LIMIT,
        *,
        first: int = 0,
        line: int = 1,
        offset: int = 0,
    ) -> None:
        """Start with nothing read.

        Args:
            path: The file.
            line_limit: Bytes of the longest line that is read.
            first: The number of the record that is read first.
            line: The number of its line, from 1.
            offset: The byte where that line begins.
        """
        self.path = path
        self.first = first
        self.context: dict[int, bytes] = {}
        self.context_lines = 0
        self.gone = False
        name = rollout_name(path)
        self.key = name.key if name else ""
        self.lines: list[Line] = []
        self.meta: dict[str, Any] = {}
        self._content = JsonLines(path, line_limit)
        self._last_at = 0
        if offset:
            self._content.begin_at(line, offset)

    @property
    def records(self) -> list[bytes]:
        """Every record as it was, and every line that holds none."""
        return self._content.records

    @property
    def problems(self) -> list[Problem]:
        """What could not be read, or only by repairing it."""
        return self._content.problems

    @property
    def offset(self) -> int:
        """Bytes that were consumed."""
        return self._content.consumed

    @property
    def whole_lines(self) -> int:
        """Whole lines of the file so far."""
        return self._content.lines

    def take_context(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take the earlier records, each with its number, that later ones are read with."""
        for number, record in records:
            self.context[number] = record
            self._take(parse_line(record)[0], number)
        self.context_lines = len(self.lines)

    def raw(self, number: int) -> bytes:
        """Return a record by its number.

        Raises:
            KeyError: It is neither of the context nor read.
        """
        return self.records[number - self.first] if number >= self.first else self.context[number]

    @property
    def has_tail(self) -> bool:
        """Whether the last line is unfinished, and held back."""
        return self._content.has_tail

    def push(self, chunk: bytes) -> None:
        """Take appended bytes; an unfinished last line waits for its rest."""
        self._feed(self._content.push(chunk))

    def finish(self) -> Problem | None:
        """Take the last line though no newline ends it, when it is whole.

        Returns:
            What is wrong with a last line that is torn; it stays unread.
        """
        found, torn = self._content.finish()
        self._feed(found)
        return torn

    def metas(self) -> Iterator[dict[str, Any]]:
        """Yield the ``session_meta`` payloads at the beginning: its own, then copied ones."""
        for line in self.lines:
            if line.type != "session_meta":
                return
            yield line.payload

    def _feed(self, found: list[Record]) -> None:
        for record in found:
            self._take(record.data, self.first + record.number)

    def _take(self, data: dict[str, Any], number: int) -> None:
        kind, payload = data.get("type"), data.get("payload")
        if not isinstance(payload, dict):
            kind, payload = _bare(data)
        if not isinstance(kind, str):
            return
        stamp = epoch_ms(data.get("timestamp"))
        self._last_at = stamp if stamp is not None else self._last_at
        if kind == "session_meta" and not self.meta:
            self.meta = payload
            self.key = self.key or string(payload.get("id")) or ""
        ordinal = data.get("ordinal")
        self.lines.append(
            Line(
                number,
                (self.key, number),
                ordinal if type(ordinal) is int else None,
                kind,
                string(payload.get("type")) or "",
                payload,
                self._last_at,
                mapping(data.get("metadata")),
            )
        )


def _bare(data: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return type and payload of a line of the first versions, which had no envelope."""
    if string(data.get("type")) in _ITEMS:
        return "response_item", data
    if string(data.get("id")) and "timestamp" in data and "type" not in data:
        return "session_meta", data
    return None, data
