"""A tool call in words that a terminal draws."""

from __future__ import annotations

from typing import Any

from store.conversation import calls
from store.conversation.calls import Call
from store.conversation.readable import decode
from store.rows import is_tool_type
from store.text.stored_json import as_dict
from tui.kit.text import one_line, one_row


def describe(
    data: dict[str, Any], root: str | None = None, times: tuple[int, int] = (0, 0)
) -> Call:
    """Return what a tool part did.

    Args:
        data: The part.
        root: The session's workspace; paths below it are shown from there.
        times: ``created_at`` and ``updated_at`` of the part, epoch ms.
    """
    call = calls.describe(data, root, times)
    call.name, call.what, call.word, call.size = map(
        one_row, (call.name, call.what, call.word, call.size)
    )
    call.marks = [(one_row(text), ink) for text, ink in call.marks]
    if call.kind == "todo":
        call.body = [(state, one_line(text)) for state, text in call.body]
    return call


def todo_items(value: Any) -> list[tuple[str, str]]:
    """Return ``(state, text)`` of a check list: completed, in_progress, pending, cancelled."""
    return [(state, one_line(text)) for state, text in calls.todo_items(value)]


def part_words(kind: str, data_json: str) -> str:
    """Return a part in one line: what a call did, or how a text begins.

    Args:
        kind: The part's type.
        data_json: Its data, as it is stored.
    """
    data = {"type": kind, **as_dict(decode(data_json))}
    if is_tool_type(kind):
        call = describe(data)
        return f"{call.name} {call.what}".strip()
    words = data.get("text") or data.get("filename") or data.get("url")
    return one_line(str(words), 300) if words else kind.removeprefix("data-")
