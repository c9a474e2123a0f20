"""Makes a session's document for Continue: its history, with each answer's calls and results.

Source: the Continue format page, sections 3 (history), 4 (compaction) and 8 (resume). The
program keeps members of an item that it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from store.exports.agent_file import NamedFile, title_of, written
from store.exports.calls import CallIds, taken_name
from store.exports.kept_records import KeptRecords
from store.exports.reading import SessionReading
from store.exports.steps import (
    Part,
    Step,
    call_input,
    call_name,
    call_result,
    file_name,
    inline_data,
    is_tool,
)
from store.exports.turns import Turn, model_of, turns_of, without_prompt
from store.exports.typed import typed
from store.text.exact_json import encode_for_output
from store.usage import whole_counts

Item = dict[str, Any]
NOTE = "backscroll"
"""The member in which an item says which message it is a copy of."""
_UNTITLED = "Untitled Session"
_SETTLED = ("done", "errored", "canceled")


def write_continue(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a session's document, whose id is the reading's ``export_id``."""
    yield from written(continue_file(reading), reading)


def continue_file(reading: SessionReading, *, cwd: str | None = None) -> NamedFile:
    """Return a session as a file that Continue can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
    """
    reading = typed(reading)
    session = reading.session
    model = session["model"] if isinstance(session["model"], dict) else {}
    turns, prompt = without_prompt(turns_of(reading.messages))
    history = _History(reading, str(model.get("model_id") or "unknown"))
    items = [item for turn in turns for item in history.of(turn)]
    head = {
        "sessionId": reading.export_id,
        "title": title_of(session, given_only=True) or _UNTITLED,
        "workspaceDirectory": cwd or session["workspace_root"] or "/",
    }
    name = f"{reading.export_id}.json"
    return NamedFile(reading.export_id, name, [*_lines(head, items)] if items else [], prompt)


def _lines(head: Item, items: list[Item]) -> Iterator[str]:
    """Yield a document's lines, one an item."""
    yield f'{encode_for_output(head)[:-1]},"history":['
    for place, item in enumerate(items, 1):
        yield f"  {encode_for_output(item)}{',' if place < len(items) else ''}"
    yield "]}"


class _History:
    """Makes items of a history."""

    def __init__(self, reading: SessionReading, model: str) -> None:
        self._kept = KeptRecords(reading, "continue")
        self._model = model
        self._calls = CallIds()

    def of(self, turn: Turn) -> Iterator[Item]:
        """Yield the items of a turn."""
        note: Item = {"message": turn.id, "at": turn.begun}
        if turn.summary is not None:
            message = {"role": "assistant", "content": turn.summary}
            yield _item(message, note, conversationSummary=turn.summary)
        elif (own := self._own(turn)) is not None:
            yield own | {NOTE: note}
        elif turn.role == "user":
            content = _content(turn.told)
            note |= {"aside": True} if turn.is_aside else {}
            yield _item({"role": "user", "content": content}, note, editorState=content)
        else:
            usage: Item | None = _usage(turn, self._model)
            for step in turn.steps:
                yield self._answer(step, usage, note)
                usage = None

    def _answer(self, step: Step, usage: Item | None, note: Item) -> Item:
        said = [part["text"] if part.get("type") == "text" else file_name(part)
                for part in step.said if part.get("type") != "reasoning"]  # fmt: skip
        thoughts = [part["text"] for part in step.said if part.get("type") == "reasoning"]
        states = [self._state(part) for part in step.calls]
        message: Item = {"role": "assistant", "content": "\n\n".join(said)}
        more: Item = {}
        if states:
            message["toolCalls"] = [state["toolCall"] for state in states]
            more["toolCallStates"] = states
        if thoughts:
            at = note["at"]
            more["reasoning"] = {"active": False, "text": "\n\n".join(thoughts), "startAt": at,
                                 "endAt": at}  # fmt: skip
        if usage is not None:
            message["usage"] = usage
        return _item(message, note, **more)

    def _state(self, part: Part) -> Item:
        given, result = call_input(part), call_result(part)
        name = taken_name(call_name(part))
        call_id = self._calls.take(part.get("toolCallId"))
        arguments = json.dumps(given, ensure_ascii=False)
        text = "\n".join(filter(None, (result.text, *map(file_name, result.files))))
        return {
            "toolCallId": call_id, "status": "errored" if result.failed else "done",
            "toolCall": {"id": call_id, "type": "function",
                         "function": {"name": name, "arguments": arguments}},
            "parsedArgs": given,
            "output": [{"name": f"Tool Result: {name}", "description": "Tool execution result",
                        "content": text}],
        }  # fmt: skip

    def _own(self, turn: Turn) -> Item | None:
        """Return Continue's own item of a message; None where there is not just one."""
        rows = [row for row in self._kept.of(turn.id).rows
                if isinstance(row.get("message"), dict) and "history" not in row]  # fmt: skip
        if len(rows) != 1 or NOTE in rows[0] or "conversationSummary" in rows[0]:
            return None
        message, states = rows[0]["message"], rows[0].get("toolCallStates") or []
        if message.get("role") != turn.role or not _is_content(message.get("content")):
            return None
        if not isinstance(rows[0].get("contextItems"), list) or not isinstance(states, list):
            return None
        calls = message.get("toolCalls") or []
        ids = [_id(call) for call in calls] if isinstance(calls, list) else [None]
        known = {str(part.get("toolCallId")) for part in turn.parts if is_tool(part)}
        if None in ids or len(ids) != len(set(ids)) or set(ids) != known:
            return None
        if ids != [_settled(state) for state in states] or self._calls.taken & set(ids):
            return None
        self._calls.taken |= known
        return rows[0]


def _item(message: Item, note: Item, **more: Any) -> Item:
    return {"message": message, "contextItems": [], **more, NOTE: note}


def _content(parts: list[Part]) -> Any:
    """Return what was told: one text, or a list of texts and pictures."""
    blocks: list[Item] = []
    for part in parts:
        inline = inline_data(part) if part.get("type") == "file" else None
        if inline is not None and inline[0].startswith("image/"):
            url = f"data:{inline[0]};base64,{inline[1]}"
            blocks.append({"type": "imageUrl", "imageUrl": {"url": url}})
        else:
            text = file_name(part) if part.get("type") == "file" else part["text"]
            blocks.append({"type": "text", "text": text})
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks


def _usage(turn: Turn, model: str) -> Item:
    """Return an answer's tokens in the form in which the prompt excludes what was cached."""
    counts = whole_counts(turn.metadata.get("usage"))
    said = counts["output"] + counts["reasoning"]
    read, wrote = counts["cache_read"], counts["cache_write"]
    return {
        "prompt_tokens": counts["input"], "completion_tokens": said,
        "total_tokens": counts["input"] + said,
        "prompt_tokens_details": {
            "cached_tokens": read, "cache_read_tokens": read, "cache_write_tokens": wrote,
        },
        "completion_tokens_details": {"reasoning_tokens": counts["reasoning"]},
        "model": model_of(turn.item, model), "cost_cents": 0,
    }  # fmt: skip


def _is_content(content: object) -> bool:
    """Return whether a message says something that Continue sends as it is."""
    if isinstance(content, str):
        return True
    return isinstance(content, list) and bool(content) and all(
        isinstance(block, dict) and (
            (block.get("type") == "text" and isinstance(block.get("text"), str))
            or (block.get("type") == "imageUrl" and isinstance(block.get("imageUrl"), dict)
                and isinstance(block["imageUrl"].get("url"), str))
        ) for block in content
    )  # fmt: skip


def _id(call: object) -> str | None:
    """Return the id of a whole call; None for anything else."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return None
    texts = (call.get("id"), function.get("name"), function.get("arguments"))
    whole = all(isinstance(text, str) for text in texts) and bool(texts[0] and texts[1])
    return str(texts[0]) if whole else None


def _settled(state: object) -> str | None:
    """Return the id of the call of a state that has a result; None for anything else."""
    if not isinstance(state, dict) or state.get("status") not in _SETTLED:
        return None
    output = state.get("output")
    whole = isinstance(output, list) and bool(output) and all(
        isinstance(one, dict) and isinstance(one.get("content"), str) for one in output)
    return str(state.get("toolCallId")) if whole else None
