"""Makes the lines of a rollout for Codex."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from store.exports.agent_file import written
from store.exports.calls import CallIds
from store.exports.codex.items import Item, call_items, content_items, is_tag
from store.exports.codex.items import reasoning_item as reasoning
from store.exports.codex.originals import kept_lines
from store.exports.kept_records import KeptRecords
from store.exports.reading import MessageReading, Row, SessionReading
from store.exports.steps import as_aside, handed_over, is_aside, is_tool, with_file_texts
from store.exports.typed import typed
from store.system.clock import system_clock
from store.text.exact_json import encode_for_output

VERSION = "0.171.0"
"""The newest version whose resume the recipe was tested with."""


@dataclass(frozen=True, slots=True)
class CodexFile:
    """A rollout for Codex.

    Attributes:
        session_id: A UUID: the end of the file's name and the argument of ``codex resume``.
        lines: JSON lines without their newline; empty for a session without messages.
        prompt: An unanswered last prompt, which is not in the file but passed to ``codex``.
        created_at: Epoch ms; the time in the file's name.
    """

    session_id: str
    cwd: str
    lines: list[str]
    prompt: str | None
    created_at: int


@dataclass(slots=True)
class _Said:
    """The lines made from one message."""

    at: int
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    prompt: str | None = None


def write_codex(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a rollout, whose thread id is the reading's ``export_id``."""
    yield from written(codex_file(reading), reading)


def file_name(session_id: str, created_at: int) -> str:
    """Return a rollout's file name, from its creation time (epoch ms; local in the name) and id."""
    at = datetime.fromtimestamp(created_at / 1000)
    return f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"


def codex_file(reading: SessionReading, *, cwd: str | None = None) -> CodexFile:
    """Return a session as a rollout that Codex can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
    """
    reading = typed(reading)
    records, ids = KeptRecords(reading, "codex"), CallIds()
    said = [each for item in reading.messages if (each := _said(item, records, ids)).lines]
    prompt = None
    if said and said[-1].prompt:
        prompt = said.pop().prompt
    folder, now = cwd or reading.session["workspace_root"] or "/", system_clock()
    lines = []
    if said:
        meta = _meta(reading.session, reading.export_id, folder, now)
        lines.append(_line(now, "session_meta", meta))
    lines += _lines(said)
    return CodexFile(reading.export_id, folder, lines, prompt, now)


def _lines(said: list[_Said]) -> Iterator[str]:
    """Yield the lines of messages; one that repeats the one before it gets a time of its own."""
    at, before = 0, None
    for message in said:
        for each in message.lines:
            at = max(message.at, at + 1) if each == before else message.at
            before = each
            yield _line(at, *each)


def _line(at: int, kind: str, payload: dict[str, Any]) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
    stamp = moment.replace("+00:00", "Z")
    return encode_for_output({"timestamp": stamp, "type": kind, "payload": payload})


def _meta(session: Row, name: str, cwd: str, now: int) -> dict[str, Any]:
    metadata = session["metadata"] if isinstance(session["metadata"], dict) else {}
    source = metadata.get("source")
    model = session["model"] if isinstance(session["model"], dict) else {}
    own = isinstance(source, dict) and source.get("kind") == "codex"
    moment = datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds")
    meta = {
        "id": name,
        "timestamp": moment.replace("+00:00", "Z"),
        "cwd": cwd,
        "originator": "backscroll",
        "cli_version": VERSION,
        "source": "cli",
    }
    provider = model.get("provider_id")
    if own and isinstance(provider, str) and provider != "unknown":
        # Without it Codex uses its configured provider and refuses to change it later.
        meta["model_provider"] = provider
    return meta


def _said(item: MessageReading, records: KeptRecords, ids: CallIds) -> _Said:
    """Return the lines of a message: Codex's original ones, else made from its parts."""
    said = _Said(item.message["created_at"])
    metadata = item.message["metadata"] if isinstance(item.message["metadata"], dict) else {}
    human = item.message["role"] == "user" and metadata.get("origin", "human") == "human"
    kept = kept_lines(records, item.message["id"])
    if kept:
        said.lines += _kept(kept, ids, human=human)
    else:
        # A user's action in another agent, such as a command, is a turn here too.
        role = item.message["role"]
        turn = role == "user" and not is_aside(metadata, role)
        said.lines += _made(item, ids, human=turn)
    if human:
        said.prompt = handed_over([part["data"] for part in item.parts])
    return said


Lines = Iterator[tuple[str, dict[str, Any]]]


def _kept(lines: list[dict[str, Any]], ids: CallIds, *, human: bool) -> Lines:
    """Yield original lines; a call without output gets one."""
    open_calls: dict[str, str] = {}
    for line in lines:
        payload = line.get("payload")
        if not isinstance(payload, dict):
            continue
        kind = str(payload.get("type"))
        call_id = payload.get("call_id")
        if kind in ("function_call", "custom_tool_call", "local_shell_call"):
            open_calls[str(call_id)] = kind
            ids.take(call_id)
        elif kind.endswith("_output"):
            if str(call_id) not in open_calls:
                continue
            del open_calls[str(call_id)]
        yield str(line["type"]), payload
        yield from _events(payload, human=human)
    for open_id, kind in open_calls.items():
        answer = "custom_tool_call" if kind == "custom_tool_call" else "function_call"
        yield "response_item", {"type": f"{answer}_output", "call_id": open_id, "output": "aborted"}


def _made(item: MessageReading, ids: CallIds, *, human: bool) -> Lines:
    """Yield response items for a message of any agent, each call with its output."""
    role = item.message["role"]
    aside = is_aside(item.message["metadata"], role)
    for part in item.parts:
        data = part["data"]
        if part["type"] == "data-compaction" and isinstance(data, dict):
            yield from _compaction(data.get("data"))
            return
    content: list[Item] = []
    answers: list[Item] = []
    for part in item.parts:
        data = part["data"]
        if role not in ("user", "assistant") or not isinstance(data, dict):
            continue
        if aside:
            (data,) = as_aside([data])
        (sent,) = with_file_texts([data]) if role == "user" else [data]
        shown = content_items(sent, role)
        thought = reasoning(data) if data.get("type") == "reasoning" else None
        if shown and not answers:
            content += shown
            continue
        if not shown and thought is None and not is_tool(data):
            continue
        yield from _message(role, content, human=human)
        content = shown
        if not is_tool(data):
            yield from _items(answers)
            answers = []
        if thought is not None:
            yield "response_item", thought
        elif is_tool(data):
            call, answer = call_items(data, ids.take(data.get("toolCallId")))
            yield "response_item", call
            answers.append(answer)
    yield from _items(answers)
    yield from _message(role, content, human=human)


def _items(items: list[Item]) -> Lines:
    for item in items:
        yield "response_item", item


def _message(role: str, content: list[Item], *, human: bool) -> Lines:
    if content:
        message = {"type": "message", "role": role, "content": content}
        yield "response_item", message
        yield from _events(message, human=human)


def _events(item: dict[str, Any], *, human: bool) -> Lines:
    """Yield the events by which Codex displays a message."""
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return
    items = [each for each in content if isinstance(each, dict)]
    text = "\n".join(each["text"] for place, each in enumerate(items)
                     if isinstance(each.get("text"), str) and not is_tag(items, place))  # fmt: skip
    images = [each["image_url"] for each in items if isinstance(each.get("image_url"), str)]
    if item.get("role") == "user" and human:
        yield "event_msg", {"type": "user_message", "message": text, "images": images}
    elif item.get("role") == "assistant" and text:
        yield "event_msg", {"type": "agent_message", "message": text}


def _compaction(data: object) -> Lines:
    summary = data.get("summary") if isinstance(data, dict) else None
    if isinstance(summary, str) and summary:
        content = [{"type": "input_text", "text": summary}]
        history = [{"type": "message", "role": "user", "content": content}]
        yield "compacted", {"message": summary, "replacement_history": history}
