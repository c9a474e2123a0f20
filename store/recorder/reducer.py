"""Builds a UIMessage from UI message chunks exactly as the AI SDK's own reducer does.

Follows ``ai`` 6.0.326. Chunks that only version 7 has are taken as it takes them
(``custom``, ``reasoning-file``, ``steering-message``, ``tool-approval-response``,
``reset-step``, citations); where the versions disagree, ``sdk`` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from store.recorder.json_text import can_merge, merge
from store.recorder.part_list import Chunk, ProtocolError, SdkVersion, copy_given
from store.recorder.partial_json import MISSING, Missing
from store.recorder.parts import SETTLED_KEYS, Part, ToolCall, assign
from store.recorder.tool_chunks import ToolCalls


class MessageState(ToolCalls):
    """One message in the making, and which of its parts have changed.

    Attributes:
        sdk_id: The id that the stream gave it; None where it gave none.
        metadata: ``UIMessage.metadata``, merged; ``MISSING`` where none came.
        finish_reason: What ``finish`` said last.
    """

    def __init__(
        self, new_id: Callable[[], str], clock: Callable[[], int], sdk: SdkVersion = 6
    ) -> None:
        """Start an empty assistant message.

        Args:
            new_id: Mints the id of a part's row.
            clock: The present in epoch ms.
            sdk: Whose behaviour wins where versions 6 and 7 disagree.
        """
        super().__init__(new_id, clock, sdk)
        self.sdk_id: str | None = None
        self.metadata: Any = MISSING
        self.finish_reason: str | None = None
        self._texts: dict[str, Part] = {}
        self._reasonings: dict[str, Part] = {}
        self._left_open: list[Part] = []
        self._odd: Part | None = None
        self._growing = {"text-delta": self._texts, "reasoning-delta": self._reasonings}

    def restore(self, parts: list[Part], next_index: int) -> None:
        """Go on with a message that is stored: its calls still stream, its blocks do not.

        Odd chunks go on in the part that keeps the last ones.
        """
        self.parts, self.next_index = parts, next_index
        for part in self._current_step():
            if part.is_tool and part.shape.get("state") == "input-streaming":
                data = part.shape
                self._calls[data["toolCallId"]] = ToolCall(
                    part.tool_name, dynamic=not part.is_static_tool,
                    encoding=data.get("inputEncoding", MISSING),
                    title=data.get("title", MISSING), metadata=data.get("toolMetadata", MISSING),
                    text=data.get("rawInput") or "",
                )
        if parts and _is_odd(parts[-1].shape):
            self._odd = parts[-1]

    def reopen_blocks(self) -> None:
        """Continue the blocks of this step that were open when the recording was interrupted.

        Reasoning is found by its id. A text has none, so a text continues only if it was the
        only open one.
        """
        for part in self._current_step():
            if part.shape.get("state") != "streaming":
                continue
            if part.shape["type"] == "reasoning" and "id" in part.shape:
                self._reasonings[part.shape["id"]] = part
            elif part.shape["type"] == "text":
                self._left_open.append(part)

    def grow(self, chunk: Chunk) -> int | None:
        """Take a delta that brings nothing but text for an open block or a call's input.

        Returns:
            The length of the text; None for any other chunk, which ``apply`` takes.
        """
        try:
            kind = chunk["type"]
            if kind == "tool-input-delta":
                call, part = self._calls[chunk["toolCallId"]], self.parts[-1]
                delta, grow = chunk["inputTextDelta"], call.grow
                plain = part.call is call
            else:
                part, delta = self._growing[kind][chunk["id"]], chunk["delta"]
                grow, plain = part.grow, "providerMetadata" not in chunk
        except (IndexError, KeyError, TypeError):
            return None
        if not plain or type(delta) is not str:
            return None
        grow(delta)
        if not part.dirty:
            self.touch(part)
        return len(delta)

    def apply(self, chunk: Chunk) -> bool:
        """Take one chunk.

        Returns:
            False for a chunk of an unknown type, which changes nothing.

        Raises:
            ProtocolError: The chunk fits nothing that came before it, or lacks a field;
                nothing has changed.
        """
        kind = chunk["type"]
        handler = _HANDLERS.get(kind)
        if handler is None:
            if not kind.startswith("data-"):
                return False
            handler = MessageState._data
        try:
            handler(self, chunk)
        except KeyError as error:
            raise ProtocolError(f"{kind} chunk without {error.args[0]}") from None
        except TypeError as error:
            raise ProtocolError(f"{kind} chunk with a field of the wrong kind") from error
        return True

    def message(self) -> dict[str, Any]:
        """Return the UIMessage as the SDK has it now; ``id`` is ``""`` before one came."""
        found: dict[str, Any] = {"id": self.sdk_id or "", "role": "assistant"}
        if self.metadata is not MISSING:
            found["metadata"] = self.metadata
        # Copies: a thread that saves brings the parts up to date.
        found["parts"] = [dict(part.data) for part in self.parts]
        return found

    def keep_odd(self, chunk: Chunk, name: str, reason: str) -> None:
        """Keep a chunk that makes no part of its own as a ``data-event`` part.

        Chunks of one kind that follow one another share a part.

        Args:
            chunk: The chunk as it came.
            name: ``refused-chunk`` or ``unknown-chunk``.
            reason: Why it is no part.
        """
        last = self.parts[-1] if self.parts else None
        if last is not None and last is self._odd:
            held = last.shape["data"]
            if held["name"] == name and _alike(held["chunks"], chunk):
                # Anew: who reads or writes the part has the list as it was.
                last.shape["data"] = held | {"chunks": [*held["chunks"], chunk]}
                self.touch(last)
                return
        data = {"name": name, "reason": reason, "chunks": [chunk]}
        self._odd = self._add({"type": "data-event", "data": data})

    def begin_missing_block(self, chunk: Chunk) -> bool:
        """Begin the block of a delta that came without one, so that its text is kept.

        Returns:
            Whether the chunk is such a delta, which ``apply`` takes now.
        """
        begin = _MISSING_STARTS.get(chunk["type"])
        key, delta = chunk.get("id"), chunk.get("delta")
        if begin is None or type(key) is not str or type(delta) is not str:
            return False
        begin(self, {"type": chunk["type"], "id": key})
        return True

    def has_call(self, call_id: object) -> bool:
        """Tell whether a tool call with this id is in the message."""
        return any(part.is_tool and part.shape.get("toolCallId") == call_id
                   for part in self.parts)

    def has_approval(self, approval_id: object) -> bool:
        """Tell whether a tool call of the message waits for, or has, this approval."""
        held = (part.shape.get("approval") for part in self.parts if part.is_tool)
        return any(isinstance(one, dict) and one.get("id") == approval_id for one in held)

    def settle(self) -> dict[str, dict[str, Any]]:
        """End what is open, as an abort does: nothing more comes for it.

        Texts are done as far as they came; calls without a result end as interrupted. The
        SDK's reducer leaves both open; a store that did so would show them as running.

        Returns:
            By the position of each part that was settled, the values of ``SETTLED_KEYS``
            that it had, for ``reading.sdk_message``.
        """
        before: dict[str, dict[str, Any]] = {}
        self._forget_blocks()
        self._calls.clear()
        for position, part in enumerate(self.parts):
            part.data  # noqa: B018 - what has streamed in is final now
            part.call = None
            shape = part.shape
            held = {key: shape[key] for key in SETTLED_KEYS if key in shape}
            if shape["type"] in ("text", "reasoning") and shape.get("state") == "streaming":
                shape["state"] = "done"
            elif part.is_tool and (shape.get("state") in _OPEN_STATES or shape.get("preliminary")):
                shape.pop("preliminary", None)
                shape |= {"state": "output-error", "errorText": INTERRUPTED}
                shape["resultProviderMetadata"] = _with_status(
                    shape.get("resultProviderMetadata"), "interrupted")
            else:
                continue
            before[str(position)] = held
            self.touch(part)
        return before

    # -- text and reasoning

    def _text_start(self, chunk: Chunk) -> None:
        data = {"type": "text", "text": ""}
        key = chunk["id"]
        hash(key)
        copy_given(chunk, data, "providerMetadata")
        data["state"] = "streaming"
        self._texts[key] = self._add(data)

    def _reasoning_start(self, chunk: Chunk) -> None:
        key = chunk["id"]
        hash(key)
        data = {"type": "reasoning", "id": key, "text": ""}
        copy_given(chunk, data, "providerMetadata")
        data["state"] = "streaming"
        self._reasonings[key] = self._add(data)

    def _open_block(self, chunk: Chunk) -> tuple[dict[str, Part], Part]:
        kind = chunk["type"]
        blocks = self._texts if kind[0] == "t" else self._reasonings
        part = blocks.get(chunk["id"])
        if part is None and blocks is self._texts and len(self._left_open) == 1:
            part = blocks[chunk["id"]] = self._left_open.pop()
        if part is None:
            what = "text" if kind[0] == "t" else "reasoning"
            raise ProtocolError(
                f'Received {kind} for missing {what} part with ID "{chunk["id"]}". '
                f'Ensure a "{what}-start" chunk is sent before any "{kind}" chunks.'
            )
        return blocks, part

    def _block_delta(self, chunk: Chunk) -> None:
        _, part = self._open_block(chunk)
        delta = chunk["delta"]
        if type(delta) is not str:
            raise ProtocolError(f"{chunk['type']} chunk whose delta is no text")
        part.grow(delta)
        if chunk.get("providerMetadata") is not None:
            part.shape["providerMetadata"] = chunk["providerMetadata"]
        if not part.dirty:
            self.touch(part)

    def _block_end(self, chunk: Chunk) -> None:
        blocks, part = self._open_block(chunk)
        part.shape["state"] = "done"
        for key in ("providerMetadata", "citations"):
            if chunk.get(key) is not None:
                part.shape[key] = chunk[key]
        del blocks[chunk["id"]]
        self.touch(part)

    # -- files, sources, data, steps, metadata

    def _file(self, chunk: Chunk) -> None:
        data = {"type": chunk["type"]}
        copy_given(chunk, data, "mediaType", "url")
        if chunk.get("providerMetadata") is not None:
            data["providerMetadata"] = chunk["providerMetadata"]
        self._add(data)

    def _source(self, chunk: Chunk) -> None:
        data = {"type": chunk["type"]}
        copy_given(chunk, data, *_SOURCE_FIELDS[chunk["type"]])
        self._add(data)

    def _data(self, chunk: Chunk) -> None:
        if chunk.get("transient"):
            return
        if chunk.get("id") is not None:
            for part in self.parts:
                if part.shape["type"] == chunk["type"] and part.shape.get("id") == chunk["id"]:
                    assign(part.shape, "data", chunk.get("data", MISSING))
                    self.touch(part)
                    return
        self._add(dict(chunk))

    def _start(self, chunk: Chunk) -> None:
        name = chunk.get("messageId")
        if name is not None:
            if not isinstance(name, str):
                raise ProtocolError("start chunk whose messageId is no text")
            self.sdk_id = name
        self._merge_metadata(chunk)

    def _start_step(self, chunk: Chunk) -> None:
        self._seal_calls()
        self._add({"type": "step-start"})

    def _finish_step(self, chunk: Chunk) -> None:
        if self._sdk == 6:
            self._forget_blocks()

    def _forget_blocks(self) -> None:
        self._texts.clear()
        self._reasonings.clear()
        self._left_open.clear()

    def _reset_step(self, chunk: Chunk) -> None:
        gone = self._current_step()
        self._forget_blocks()
        self._calls.clear()
        if gone:
            del self.parts[-len(gone) :]
            self.removed += [part.row_id for part in gone]
            self.changed = [part for part in self.changed if part not in gone]

    def _finish(self, chunk: Chunk) -> None:
        if chunk.get("finishReason") is not None:
            self.finish_reason = chunk["finishReason"]
        self._merge_metadata(chunk)

    def _merge_metadata(self, chunk: Chunk) -> None:
        given = chunk.get("messageMetadata")
        if given is not None:
            held = self.metadata
            unset = held is None or isinstance(held, Missing)
            if not unset and not can_merge(held, given):
                raise ProtocolError("message metadata that does not go with what came before")
            self.metadata = given if unset else merge(held, given)

    def _nothing(self, chunk: Chunk) -> None:
        """Take a chunk that makes no part and changes none."""


REFUSED, UNKNOWN = "refused-chunk", "unknown-chunk"
"""The names of the ``data-event`` parts that keep odd chunks."""
INTERRUPTED = "Interrupted before it had a result"
"""The ``errorText`` of a call that an abort ended."""
_OPEN_STATES = ("input-streaming", "input-available", "approval-requested", "approval-responded")
_MOST_ODD = 64
"""Odd chunks that share a part; more begin another, as a part is written whole each time."""
_SOURCE_FIELDS = {
    "source-url": ("sourceId", "url", "title", "providerMetadata"),
    "source-document": ("sourceId", "mediaType", "title", "filename", "providerMetadata"),
    "custom": ("kind", "providerMetadata"),
    "steering-message": ("id", "parts"),
}


def _is_odd(shape: dict[str, Any]) -> bool:
    """Tell whether a stored part keeps odd chunks."""
    data = shape.get("data")
    return (shape["type"] == "data-event" and isinstance(data, dict)
            and data.keys() == {"name", "reason", "chunks"} and data["name"] in (REFUSED, UNKNOWN)
            and isinstance(data["chunks"], list) and bool(data["chunks"])
            and all(isinstance(chunk, dict) for chunk in data["chunks"]))


def _alike(held: list[Chunk], chunk: Chunk) -> bool:
    """Tell whether an odd chunk belongs with those of a part: of one type, about one thing."""
    first = held[0]
    same = all(first.get(key) == chunk.get(key) for key in ("type", "id", "toolCallId"))
    return same and len(held) < _MOST_ODD


def _with_status(metadata: object, status: str) -> dict[str, Any]:
    """Return provider metadata that says how a call ended, beside what it said already."""
    held = metadata if isinstance(metadata, dict) else {}
    own = held.get("backscroll")
    return held | {"backscroll": (own if isinstance(own, dict) else {}) | {"status": status}}


def is_known(kind: str) -> bool:
    """Tell whether chunks of this type mean something to the reducer."""
    return kind in _HANDLERS or kind.startswith("data-")


_HANDLERS: dict[str, Callable[[MessageState, Chunk], None]] = {
    "text-start": MessageState._text_start,
    "text-delta": MessageState._block_delta,
    "text-end": MessageState._block_end,
    "reasoning-start": MessageState._reasoning_start,
    "reasoning-delta": MessageState._block_delta,
    "reasoning-end": MessageState._block_end,
    "file": MessageState._file,
    "reasoning-file": MessageState._file,
    "source-url": MessageState._source,
    "source-document": MessageState._source,
    "custom": MessageState._source,
    "steering-message": MessageState._source,
    "tool-input-start": MessageState._tool_input_start,
    "tool-input-delta": MessageState._tool_input_delta,
    "tool-input-available": MessageState._tool_input_available,
    "tool-input-error": MessageState._tool_input_error,
    "tool-output-available": MessageState._tool_output,
    "tool-output-error": MessageState._tool_output,
    "tool-output-denied": MessageState._tool_output_denied,
    "tool-approval-request": MessageState._tool_approval_request,
    "tool-approval-response": MessageState._tool_approval_response,
    "start": MessageState._start,
    "start-step": MessageState._start_step,
    "finish-step": MessageState._finish_step,
    "reset-step": MessageState._reset_step,
    "finish": MessageState._finish,
    "message-metadata": MessageState._merge_metadata,
    "error": MessageState._nothing,
    "abort": MessageState._nothing,
}
_MISSING_STARTS: dict[str, Callable[[MessageState, Chunk], None]] = {
    "text-delta": MessageState._text_start,
    "reasoning-delta": MessageState._reasoning_start,
}
