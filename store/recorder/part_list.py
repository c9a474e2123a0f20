"""The parts of a message in the making, which have changed, and how a part is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from store.recorder.parts import Part, ToolCall

Chunk = dict[str, Any]
SdkVersion = Literal[6, 7]


class ProtocolError(Exception):
    """A chunk that the SDK's reducer refuses; a real reader of the stream stops here."""


class PartList:
    """Parts in order, and the tool calls that stream.

    Attributes:
        parts: The parts.
        next_index: The ``"index"`` of the next part.
        changed: Parts whose rows are behind, in the order in which they fell behind.
        removed: Row ids of parts that ``reset-step`` took away.
    """

    def __init__(
        self, new_id: Callable[[], str], clock: Callable[[], int], sdk: SdkVersion = 6
    ) -> None:
        """Start without parts.

        Args:
            new_id: Mints the id of a part's row.
            clock: The present in epoch ms.
            sdk: Whose behaviour wins where versions 6 and 7 disagree.
        """
        self._new_id, self._clock, self._sdk = new_id, clock, sdk
        self.parts: list[Part] = []
        self.next_index = 0
        self.changed: list[Part] = []
        self.removed: list[str] = []
        self._calls: dict[str, ToolCall] = {}

    def touch(self, part: Part) -> None:
        """Note that a part's row is behind."""
        if not part.dirty:
            part.dirty = True
            self.changed.append(part)

    def touch_streaming(self) -> None:
        """Note that the rows of inputs that stream are behind: they may have been parsed late."""
        for part in self.parts:
            if part.call is not None:
                self.touch(part)

    @property
    def changed_state(self) -> bool:
        """Whether a tool call is in another state (or of another name) than its row."""
        return any(part.is_tool and part.stored != part.columns for part in self.changed)

    def add_given(self, data: dict[str, Any]) -> None:
        """Append a whole part that no chunk built."""
        self._add(dict(data))

    def _add(self, data: dict[str, Any]) -> Part:
        part = Part(data, self.next_index, self._new_id(), self._clock())
        self.next_index += 1
        self.parts.append(part)
        self.changed.append(part)
        return part

    def _current_step(self) -> list[Part]:
        first = len(self.parts)
        while first and self.parts[first - 1].shape["type"] != "step-start":
            first -= 1
        return self.parts[first:]

    def _tool_of(self, call_id: str) -> Part:
        """Return the first part with that call in this step, else the newest of the message."""
        for part in (*self._current_step(), *reversed(self.parts)):
            if part.is_tool and part.shape.get("toolCallId") == call_id:
                part.data  # noqa: B018 - what has streamed in is final now
                part.call = None
                return part
        raise ProtocolError(f'No tool invocation found for tool call ID "{call_id}".')

    def _tools(self) -> Iterator[Part]:
        return (part for part in self.parts if part.is_tool)


def copy_given(chunk: Chunk, data: dict[str, Any], *keys: str) -> None:
    """Copy those of some keys that a chunk has.

    Args:
        chunk: The chunk.
        data: Receives the values.
        keys: The keys.
    """
    for key in keys:
        if key in chunk:
            data[key] = chunk[key]


def text_of(chunk: Chunk, key: str) -> str:
    """Return a text that a chunk must have.

    Raises:
        ProtocolError: It is something else.
    """
    value = chunk[key]
    if not isinstance(value, str):
        raise ProtocolError(f"{chunk['type']} chunk whose {key} is no text")
    return value
