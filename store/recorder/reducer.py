"""Builds a UIMessage from UI message chunks exactly as the AI SDK's own reducer does.

Follows ``ai`` 6.0.326. Chunks that only version 7 has are taken as it takes them
(``custom``, ``reasoning-file``, ``steering-message``, ``tool-approval-response``,
``reset-step``, citations); where the versions disagree, ``sdk`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from store.recorder.json_text import merge
from store.recorder.partial_json import MISSING, Missing
from store.recorder.parts import Part, ToolCall, assign

Chunk = dict[str, Any]
SdkVersion = Literal[6, 7]


class ProtocolError(Exception):
    """A chunk that the SDK's reducer refuses; a real reader of the stream stops here."""


class MessageState:
    """One message in the making, and which of its parts have changed.

    Attributes:
        sdk_id: The id that the stream gave it; None where it gave none.
        metadata: ``UIMessage.metadata``, merged; ``MISSING`` where none came.
        parts: Its parts in order.
        changed: Parts whose rows are behind, in the order in which they fell behind.
        removed: Row ids of parts that ``reset-step`` took away.
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
        self._new_id, self._clock, self._sdk = new_id, clock, sdk
        self.sdk_id: str | None = None
        self.metadata: Any = MISSING
        self.parts: list[Part] = []
        self.next_index = 0
        self.changed: list[Part] = []
        self.removed: list[str] = []
        self.finish_reason: str | None = None
        self._texts: dict[str, Part] = {}
        self._reasonings: dict[str, Part] = {}
        self._calls: dict[str, ToolCall] = {}

    def restore(self, parts: list[Part], next_index: int) -> None:
        """Go on with a message that is stored: its calls still stream, its blocks do not."""
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

    def touch(self, part: Part) -> None:
        """Note that a part's row is behind."""
        if not part.dirty:
            part.dirty = True
            self.changed.append(part)

    def message(self) -> dict[str, Any]:
        """Return the UIMessage as the SDK has it now; ``id`` is ``""`` before one came."""
        found: dict[str, Any] = {"id": self.sdk_id or "", "role": "assistant"}
        if self.metadata is not MISSING:
            found["metadata"] = self.metadata
        found["parts"] = [part.data for part in self.parts]
        return found

    # -- parts

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

    # -- text and reasoning

    def _text_start(self, chunk: Chunk) -> None:
        data = {"type": "text", "text": ""}
        key = chunk["id"]
        _copy(chunk, data, "providerMetadata")
        data["state"] = "streaming"
        self._texts[key] = self._add(data)

    def _reasoning_start(self, chunk: Chunk) -> None:
        key = chunk["id"]
        data = {"type": "reasoning", "id": key, "text": ""}
        _copy(chunk, data, "providerMetadata")
        data["state"] = "streaming"
        self._reasonings[key] = self._add(data)

    def _open_block(self, chunk: Chunk) -> tuple[dict[str, Part], Part]:
        kind, key = chunk["type"], chunk["id"]
        what = "text" if kind.startswith("text") else "reasoning"
        blocks = self._texts if what == "text" else self._reasonings
        part = blocks.get(key)
        if part is None:
            raise ProtocolError(
                f'Received {kind} for missing {what} part with ID "{key}". '
                f'Ensure a "{what}-start" chunk is sent before any "{kind}" chunks.'
            )
        return blocks, part

    def _block_delta(self, chunk: Chunk) -> None:
        _, part = self._open_block(chunk)
        part.grow(_text(chunk, "delta"))
        if chunk.get("providerMetadata") is not None:
            part.shape["providerMetadata"] = chunk["providerMetadata"]
        self.touch(part)

    def _block_end(self, chunk: Chunk) -> None:
        blocks, part = self._open_block(chunk)
        part.shape["state"] = "done"
        for key in ("providerMetadata", "citations"):
            if chunk.get(key) is not None:
                part.shape[key] = chunk[key]
        del blocks[chunk["id"]]
        self.touch(part)

    # -- tools

    def _update_tool(
        self, call_id: str, name: str, state: str, *, dynamic: bool, found: Part | None = None,
        **values: object,
    ) -> Part:
        """Write one state of a tool call over its part, or add the part."""
        part = found or next(
            (part for part in self._current_step()
             if (part.shape["type"] == "dynamic-tool" if dynamic else part.is_static_tool)
             and part.shape.get("toolCallId") == call_id),
            None,
        )
        if part is None:
            data: dict[str, Any] = (
                {"type": "dynamic-tool", "toolName": name} if dynamic
                else {"type": f"tool-{name}"}
            )
            data |= {"toolCallId": call_id, "state": state}
            part = self._add(data)
        else:
            part.data  # noqa: B018 - brings what streamed in up to date before it is replaced
            data = part.shape
            data["state"] = state
            data["toolName" if dynamic else "type"] = name if dynamic else f"tool-{name}"
            self.touch(part)
        part.call = None
        for key in ("input", "output", "errorText", "rawInput", "preliminary"):
            assign(data, key, values.get(key, MISSING))
        _set_tool_details(data, state, values)
        return part

    def _tool_input_start(self, chunk: Chunk) -> None:
        call_id, name = chunk["toolCallId"], chunk["toolName"]
        dynamic = bool(chunk.get("dynamic"))
        encoding = chunk.get("inputEncoding", MISSING)
        self._calls[call_id] = ToolCall(
            name, dynamic=dynamic, encoding=encoding, title=chunk.get("title", MISSING),
            metadata=chunk.get("toolMetadata", MISSING),
        )
        self._update_tool(
            call_id, name, "input-streaming", dynamic=dynamic, inputEncoding=encoding,
            **_details(chunk),
        )

    def _tool_input_delta(self, chunk: Chunk) -> None:
        call_id = chunk["toolCallId"]
        call = self._calls.get(call_id)
        if call is None:
            raise ProtocolError(
                f'Received tool-input-delta for missing tool call with ID "{call_id}". '
                'Ensure a "tool-input-start" chunk is sent before any "tool-input-delta" chunks.'
            )
        call.input.append(_text(chunk, "inputTextDelta"))
        part = self.parts[-1] if self.parts else None
        if part is None or part.call is not call:
            part = next((part for part in self._current_step() if part.call is call), None)
        if part is None:
            part = self._update_tool(
                call_id, call.name, "input-streaming", dynamic=call.dynamic,
                inputEncoding=call.encoding, title=call.title, toolMetadata=call.metadata,
            )
            part.call = call
        self.touch(part)

    def _tool_input_available(self, chunk: Chunk) -> None:
        self._update_tool(
            chunk["toolCallId"], chunk["toolName"], "input-available",
            dynamic=bool(chunk.get("dynamic")), input=chunk.get("input", MISSING),
            **_details(chunk),
        )

    def _tool_input_error(self, chunk: Chunk) -> None:
        call_id, name, error = chunk["toolCallId"], chunk["toolName"], chunk["errorText"]
        known = next(
            (part for part in self._current_step()
             if part.is_tool and part.shape.get("toolCallId") == call_id), None,
        )
        dynamic = bool(chunk.get("dynamic")) if known is None else not known.is_static_tool
        key = "input" if dynamic or self._sdk == 7 else "rawInput"
        details = _details(chunk) | {key: chunk.get("input", MISSING), "title": MISSING}
        self._update_tool(call_id, name, "output-error", dynamic=dynamic, errorText=error,
                          **details)

    def _tool_output(self, chunk: Chunk) -> None:
        failed = chunk["type"] == "tool-output-error"
        outcome = (
            {"errorText": chunk["errorText"]} if failed
            else {"output": chunk.get("output", MISSING),
                  "preliminary": chunk.get("preliminary", MISSING)}
        )
        part = self._tool_of(chunk["toolCallId"])
        data = part.shape
        if failed and part.is_static_tool:
            outcome["rawInput"] = data.get("rawInput", MISSING)
        held = data.get("toolMetadata", MISSING)
        given = chunk.get("toolMetadata")
        details = _details(chunk) | {
            "title": data.get("title", MISSING), "input": data.get("input", MISSING),
            "toolMetadata": held if given is None else given,
        }
        self._update_tool(
            chunk["toolCallId"], part.tool_name, "output-error" if failed else "output-available",
            dynamic=not part.is_static_tool, found=part, **details, **outcome,
        )

    def _tool_output_denied(self, chunk: Chunk) -> None:
        part = self._tool_of(chunk["toolCallId"])
        part.shape["state"] = "output-denied"
        self.touch(part)

    def _tool_approval_request(self, chunk: Chunk) -> None:
        approval: dict[str, Any] = {"id": chunk["approvalId"]}
        for key, name in _APPROVAL_FIELDS:
            if chunk.get(key) is not None:
                approval[name] = chunk[key]
        if "inputSchemaInput" in chunk:
            approval["inputSchemaInput"] = chunk["inputSchemaInput"]
        if chunk.get("isAutomatic") is True:
            approval["isAutomatic"] = True
        part = self._tool_of(chunk["toolCallId"])
        part.shape["state"] = "approval-requested"
        part.shape["approval"] = approval
        self.touch(part)

    def _tool_approval_response(self, chunk: Chunk) -> None:
        approval_id, approved = chunk["approvalId"], chunk["approved"]
        for part in self.parts:
            held = part.shape.get("approval")
            if not (part.is_tool and isinstance(held, dict) and held.get("id") == approval_id):
                continue
            data = self._tool_of(part.shape["toolCallId"]).shape if part.call else part.shape
            data["state"] = "approval-responded"
            data["approval"] = held | {"approved": approved}
            if chunk.get("reason") is not None:
                data["approval"]["reason"] = chunk["reason"]
            for key, name in (("providerExecuted", "providerExecuted"),
                              ("providerMetadata", "callProviderMetadata")):
                if chunk.get(key) is not None:
                    data[name] = chunk[key]
            self.touch(part)
            return
        raise ProtocolError(f'No tool invocation found for approval ID "{approval_id}".')

    # -- what the user does between two streams

    def respond_approval(self, approval_id: str, approved: bool, reason: str | None) -> bool:
        """Answer a request for approval, as ``addToolApprovalResponse`` does.

        Returns:
            Whether a part waited for this answer.
        """
        answered = False
        for part in self._tools():
            held = part.shape.get("approval")
            if part.shape.get("state") != "approval-requested" or not isinstance(held, dict):
                continue
            if held.get("id") == approval_id:
                part.shape["state"] = "approval-responded"
                part.shape["approval"] = {**held, "approved": approved}
                assign(part.shape["approval"], "reason", MISSING if reason is None else reason)
                self.touch(part)
                answered = True
        return answered

    def set_tool_output(self, call_id: str, output: object, error_text: str | None) -> bool:
        """Give a tool call the outcome that the client found, as ``addToolOutput`` does.

        Returns:
            Whether a part has this call.
        """
        found = False
        for part in self._tools():
            if part.shape.get("toolCallId") == call_id:
                part.data  # noqa: B018 - what has streamed in is final now
                part.call = None
                part.shape["state"] = "output-available" if error_text is None else "output-error"
                assign(part.shape, "output", output)
                assign(part.shape, "errorText", MISSING if error_text is None else error_text)
                self.touch(part)
                found = True
        return found

    def _tools(self) -> Iterator[Part]:
        return (part for part in self.parts if part.is_tool)

    # -- everything else

    def _file(self, chunk: Chunk) -> None:
        data = {"type": chunk["type"]}
        for key in ("mediaType", "url", "providerReference"):
            _copy(chunk, data, key)
        if chunk.get("providerMetadata") is not None:
            data["providerMetadata"] = chunk["providerMetadata"]
        self._add(data)

    def _source(self, chunk: Chunk) -> None:
        data = {"type": chunk["type"]}
        for key in _SOURCE_FIELDS[chunk["type"]]:
            _copy(chunk, data, key)
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
        if chunk.get("messageId") is not None:
            self.sdk_id = chunk["messageId"]
        self._merge_metadata(chunk)

    def _start_step(self, chunk: Chunk) -> None:
        self._seal_calls()
        self._add({"type": "step-start"})

    def _finish_step(self, chunk: Chunk) -> None:
        if self._sdk == 6:
            self._texts.clear()
            self._reasonings.clear()

    def _reset_step(self, chunk: Chunk) -> None:
        gone = self._current_step()
        self._texts.clear()
        self._reasonings.clear()
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
            self.metadata = given if unset else merge(held, given)

    def _seal_calls(self) -> None:
        """Cut the short way from calls to parts: a new step looks for its own parts."""
        for part in self._current_step():
            if part.call is not None:
                part.data  # noqa: B018 - what has streamed in belongs to the step that ends
                part.call = None

    def _nothing(self, chunk: Chunk) -> None:
        """Take a chunk that makes no part and changes none."""


_APPROVAL_FIELDS = (
    ("approvalDescriptor", "descriptor"), ("signature", "signature"), ("reason", "requestReason"),
)
_SOURCE_FIELDS = {
    "source-url": ("sourceId", "url", "title", "providerMetadata"),
    "source-document": ("sourceId", "mediaType", "title", "filename", "providerMetadata"),
    "custom": ("kind", "providerMetadata"),
    "steering-message": ("id", "parts"),
}


def _copy(chunk: Chunk, data: dict[str, Any], key: str) -> None:
    if key in chunk:
        data[key] = chunk[key]


def _text(chunk: Chunk, key: str) -> str:
    value = chunk[key]
    if not isinstance(value, str):
        raise ProtocolError(f"{chunk['type']} chunk whose {key} is no text")
    return value


def _details(chunk: Chunk) -> dict[str, object]:
    return {
        key: chunk[key]
        for key in ("providerExecuted", "title", "toolMetadata", "providerMetadata")
        if key in chunk
    }


def _set_tool_details(data: dict[str, Any], state: str, values: dict[str, object]) -> None:
    """Set what a tool part keeps unless a chunk says otherwise."""
    encoding = values.get("inputEncoding")
    assign(data, "inputEncoding",
           MISSING if encoding is None or encoding is MISSING else encoding)
    for key in ("title", "toolMetadata"):
        if values.get(key, MISSING) is not MISSING:
            data[key] = values[key]
    if values.get("providerExecuted") is not None:
        data["providerExecuted"] = values["providerExecuted"]
    if values.get("providerMetadata") is not None:
        key = "resultProviderMetadata" if state.startswith("output-") else "callProviderMetadata"
        data[key] = values["providerMetadata"]


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
