"""Tool calls and files in opencode's shape, which the hub has too, as AI SDK parts.

A call is ``{tool, callID, state: {status, input, output | error, attachments?, raw?, time}}``.
Source: the opencode format page, section 2.5, and the part types in the hub's reference.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.values import mapping, string

_STATES = {
    "pending": "input-streaming",
    "running": "input-available",
    "completed": "output-available",
    "error": "output-error",
}


def call_data(call: dict[str, Any], call_id: str) -> dict[str, Any]:
    """Return a tool part; its state follows the program's own word.

    Args:
        call: As the program stored it.
        call_id: The call's id.
    """
    state = mapping(call.get("state"))
    word, given = str(state.get("status")), state.get("input")
    data: dict[str, Any] = {
        "type": f"tool-{string(call.get('tool')) or 'unknown'}",
        "toolCallId": call_id,
        "state": _STATES.get(word) or _state_by_content(state),
        "input": given if given is not None else {},
    }
    if word == "pending" and string(state.get("raw")):
        data["rawInput"] = state["raw"]
    if data["state"] == "output-available":
        data["output"] = _output(state)
    elif data["state"] == "output-error":
        data["errorText"] = string(state.get("error")) or own_word(state) or ""
    return data


def own_word(state: dict[str, Any]) -> str | None:
    """Return a state's word, and who says it, where it is none of those that are known."""
    word, by = string(state.get("status")), string(state.get("by"))
    if word is None or word in _STATES:
        return None
    return f"{word} by {by}" if by else word


def _state_by_content(state: dict[str, Any]) -> str:
    """Return the state of a call whose word is not known, by what it holds."""
    if string(state.get("error")):
        return "output-error"
    if state.get("output") is not None:
        return "output-available"
    return "output-error" if mapping(state.get("time")).get("end") else "input-available"


def file_data(file: dict[str, Any]) -> dict[str, Any]:
    """Return a file part: ``{type, mediaType, url, filename?}``.

    Args:
        file: ``{mime, url, filename?, source?}``; the source is a file, a symbol or a
            resource, with the text in its place.
    """
    data: dict[str, Any] = {
        "type": "file",
        "mediaType": string(file.get("mime")) or "application/octet-stream",
        "url": string(file.get("url")) or "",
    }
    if string(file.get("filename")):
        data["filename"] = file["filename"]
    if file.get("source"):
        data["providerMetadata"] = {"backscroll": {"source": file["source"]}}
    return data


def _output(state: dict[str, Any]) -> Any:
    """Return a result: its text, or with the files it brought a list that can be shown."""
    output, files = state.get("output"), state.get("attachments")
    text = output if output is not None else ""
    if not isinstance(files, list) or not files:
        return text
    shown = [file_data(file) for file in files if isinstance(file, dict)]
    return [{"type": "text", "text": text}, *shown]
