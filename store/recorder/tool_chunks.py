"""What chunks, and the user's answers, do to the tool calls of a message."""

from __future__ import annotations

from typing import Any

from store.recorder.part_list import Chunk, PartList, ProtocolError, copy_given, text_of
from store.recorder.partial_json import MISSING
from store.recorder.parts import Part, ToolCall, assign

_APPROVAL_FIELDS = (
    ("approvalDescriptor", "descriptor"), ("signature", "signature"), ("reason", "requestReason"),
)


class ToolCalls(PartList):
    """The tool calls of a message in the making."""

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
            copy_given(values, data, "providerExecuted")
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
        call.input.append(text_of(chunk, "inputTextDelta"))
        part = self.parts[-1] if self.parts else None
        if part is None or part.call is not call:
            part = next((part for part in self._current_step() if part.call is call), None)
        if part is None:
            known = len(self.parts)
            part = self._update_tool(
                call_id, call.name, "input-streaming", dynamic=call.dynamic,
                inputEncoding=call.encoding, title=call.title, toolMetadata=call.metadata,
            )
            if call.dynamic and len(self.parts) > known:
                # A dynamic part that a delta makes has no rawInput before the next delta.
                assign(part.shape, "input", call.value())
            else:
                part.stream(call)
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

    def _seal_calls(self) -> None:
        """Cut the short way from calls to parts: a new step looks for its own parts."""
        for part in self._current_step():
            if part.call is not None:
                part.data  # noqa: B018 - what has streamed in belongs to the step that ends
                part.call = None

    def respond_approval(self, approval_id: str, approved: bool, reason: str | None) -> bool:
        """Answer a request for approval, as ``addToolApprovalResponse`` does.

        Args:
            approval_id: The approval's id.
            approved: The answer.
            reason: What the user said to it; None for nothing.

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

        Args:
            call_id: The tool call's id.
            output: What the call gave.
            error_text: Why it failed; given, the state is ``output-error``.

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


def _details(chunk: Chunk) -> dict[str, Any]:
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
