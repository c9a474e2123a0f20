"""One part of a message in the making: what the SDK holds, and what its row needs."""

from __future__ import annotations

from typing import Any

from store.recorder.json_text import has_surrogate, join_halves, storable
from store.recorder.partial_json import MISSING, PartialJson

LONG = 65_536
LONG_WAITS_MS = 250
"""Characters of a tool input past which it is parsed again at most that often."""

SETTLED_KEYS = ("state", "errorText", "preliminary", "resultProviderMetadata")
"""The keys of a part that settling it, after an abort, may change."""


def assign(data: dict[str, Any], key: str, value: object) -> None:
    """Set a key as JavaScript does; ``MISSING`` (``undefined``) takes it away.

    Args:
        data: The object.
        key: The key.
        value: The value.
    """
    if value is MISSING:
        data.pop(key, None)
    else:
        data[key] = value


class ToolCall:
    """The input of a tool call while it streams.

    Attributes:
        grow: Appends a piece to the input.
        encoding: ``"text"`` where the input is plain text, else JSON; ``MISSING`` if unsaid.
    """

    __slots__ = ("dynamic", "encoding", "grow", "input", "metadata", "name", "title")

    def __init__(
        self, name: str, *, dynamic: bool, encoding: object, title: object, metadata: object,
        text: str = "",
    ) -> None:
        """Start a call.

        Args:
            name: The tool's name.
            dynamic: Whether it is a dynamic tool.
            encoding: The chunk's value of that name.
            title: The chunk's title of the call.
            metadata: The chunk's metadata of the call.
            text: The input text received so far.
        """
        self.name = name
        self.dynamic = dynamic
        self.encoding = encoding
        self.title = title
        self.metadata = metadata
        self.input = PartialJson(text)
        self.grow = self.input.append


    def value(self) -> Any:
        """Return the input so far, ``MISSING`` where it cannot be repaired."""
        return self.input.text if self.encoding == "text" else self.input.value()


class Part:
    """A part and its place; growing text is kept in pieces until somebody looks.

    Attributes:
        index: The row's ``"index"``; gaps stay where a step was reset.
        row_id: The id of its row.
        stored: (type, tool_call_id, tool_state) as the row has them; None before its insert.
        dirty: Whether the row is behind.
        call: The tool call that streams into this part, while nothing else touched it.
        grow: Appends a piece to ``text``.
        is_static_tool: Whether its type is ``tool-<name>``; another name does not change that.
        is_tool: Whether it is a tool call of either kind.
    """

    __slots__ = ("_columns", "_data", "_halves", "_parsed", "_parsed_at", "_pieces", "call",
                 "created_at", "dirty", "grow", "index", "is_static_tool", "is_tool", "row_id",
                 "stored")

    def __init__(self, data: dict[str, Any], index: int, row_id: str, created_at: int) -> None:
        """Make a part that has no row yet.

        Args:
            data: The part's ``data``, with its type.
            index: Its position in the message.
            row_id: The id for its row.
            created_at: Epoch ms.
        """
        self._data = data
        self._pieces: list[str] = []
        self.grow = self._pieces.append
        self._halves = False
        self._parsed, self._parsed_at = -1, 0
        self._columns: tuple[str, str | None, str | None] | None = None  # They do not change.
        self.call: ToolCall | None = None
        self.created_at = created_at
        self.dirty = True
        kind = str(data["type"])
        self.is_static_tool = kind.startswith("tool-")
        self.is_tool = self.is_static_tool or kind == "dynamic-tool"
        self.index = index
        self.row_id = row_id
        self.stored: tuple[str, str | None, str | None] | None = None

    def stream(self, call: ToolCall) -> None:
        """Take the input of a call from now on."""
        self.call, self._parsed = call, -1

    @property
    def data(self) -> dict[str, Any]:
        """The part as the SDK has it, growing text and partial input brought up to date."""
        return self.data_at(None)

    def data_at(self, now: int | None) -> dict[str, Any]:
        """Return the part for its row.

        Args:
            now: Epoch ms; a long input that streams is then parsed again at most every
                250 ms, and ``rawInput`` runs ahead of ``input``. None parses it in any case.
        """
        if self._pieces:
            grown = "".join(self._pieces)
            self._pieces.clear()
            self._halves = self._halves or has_surrogate(grown)
            text = self._data["text"] + grown
            self._data["text"] = join_halves(text) if self._halves else text
        if self.call is not None:
            text = self.call.input.text
            self._data["rawInput"] = text
            waits = now is not None and len(text) > LONG and now - self._parsed_at < LONG_WAITS_MS
            if self._parsed != len(text) and not waits:
                self._parsed, self._parsed_at = len(text), now or 0
                assign(self._data, "input", self.call.value())
        return self._data

    @property
    def shape(self) -> dict[str, Any]:
        """The part without the cost of bringing it up to date; for all but growing keys."""
        return self._data

    @property
    def tool_name(self) -> str:
        """The tool's name."""
        if self.is_static_tool:
            return str(self._data["type"])[len("tool-") :]
        return str(self._data.get("toolName", ""))

    @property
    def columns(self) -> tuple[str, str | None, str | None]:
        """(type, tool_call_id, tool_state) for its row."""
        if self._columns is not None:
            return self._columns
        kind = storable(str(self._data["type"]))
        if not self.is_tool:
            self._columns = kind, None, None
            return self._columns
        call_id, state = self._data.get("toolCallId"), self._data.get("state")
        return (kind, None if call_id is None else storable(str(call_id)),
                None if state is None else storable(str(state)))
