"""Rows of ``session_message``, the second engine, as messages and parts of the first.

Source: the opencode format page, section 2.2. A row is ``type``, ``seq`` and ``data``; an
assistant row holds its content as a list, one row may hold several steps' worth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.values import epoch_ms, mapping, ms_or_0, string
from store.sources.opencode.kept_rows import StoredRow
from store.sources.opencode.stored import StoredMessage, StoredPart, StoredSession

Data = dict[str, Any]


def read_second_engine(stored: StoredSession, rows: list[StoredRow]) -> None:
    """Add a session's ``session_message`` rows, in the order of ``seq``.

    Where the first engine has messages too, its own copies of them are left out: only
    switches and what came after them are taken.
    """
    last = 0
    ended = max((message.updated_at for message in stored.messages), default=-1)
    found: list[StoredMessage] = []
    for row in rows:
        if row.damage is not None:
            stored.complain(row.damage)
        at = row.created_at or epoch_ms(mapping(row.data.get("time")).get("created")) or last
        last = at
        if at <= ended and not _kind_of(row).endswith("-switched"):
            continue
        if row.made is None or row.made.created_at != at:
            row.made = _message(row, at)
        number = len(stored.records)
        stored.records.append(row.record)
        row.made.records = (number,)
        for part in row.made.parts:
            part.record = number
        found.append(row.made)
    if stored.messages:
        found = sorted([*stored.messages, *found], key=lambda message: message.created_at)
    stored.messages = found


def _kind_of(row: StoredRow) -> str:
    return str(row.values.get("type"))


def _message(row: StoredRow, at: int) -> StoredMessage:
    kind, time = _kind_of(row), mapping(row.data.get("time"))
    info, parts = _MAKERS.get(kind, _other)(kind, row.data)
    updated = ms_or_0(row.values.get("time_updated"))
    moved = max(updated, epoch_ms(time.get("completed")) or 0, at)
    made = [
        StoredPart(f"{row.name}:{index}", part, at, moved, -1) for index, part in enumerate(parts)
    ]
    return StoredMessage(row.name, info, at, moved, parts=made)


def read_waiting(stored: StoredSession, rows: list[dict[str, Any]]) -> None:
    """Add the prompts that wait for their turn: rows of ``session_input``, not yet promoted."""
    known = {message.id for message in stored.messages}
    for row in rows:
        prompt, name = decoded(row.get("prompt")), str(row.get("id"))
        if row.get("promoted_seq") is not None or name in known or not isinstance(prompt, dict):
            continue
        at = ms_or_0(row.get("time_created"))
        record = stored.keep({"table": "session_input", **row, "prompt": prompt})
        info, parts = _user("user", prompt)
        message = StoredMessage(name, {**info, "queued": at}, at, at, (record,))
        for index, part in enumerate(parts):
            message.parts.append(StoredPart(f"{name}:{index}", part, at, at, record))
        stored.messages.append(message)


def _user(kind: str, data: Data) -> tuple[Data, list[Data]]:
    parts: list[Data] = [{"type": "text", "text": data.get("text")}]
    for file in _objects(data.get("files")):
        part = {"type": "file", "mime": file.get("mime"), "url": file.get("uri", file.get("url"))}
        parts.append({**part, "filename": file.get("name"), "source": file.get("source")})
    parts += [{"type": "agent", **agent} for agent in _objects(data.get("agents"))]
    return {"role": "user", **_kept(data)}, parts


def _synthetic(kind: str, data: Data) -> tuple[Data, list[Data]]:
    role = "system" if kind == "system" else "user"
    text = {"type": "text", "text": data.get("text"), "synthetic": True}
    return {"role": role, **_kept(data)}, [text]


def _shell(kind: str, data: Data) -> tuple[Data, list[Data]]:
    """A command that the user ran: a call of the shell with its output."""
    time, output = mapping(data.get("time")), data.get("output")
    text = output if isinstance(output, str) else string(mapping(output).get("text")) or ""
    done = time.get("completed") is not None or output is not None
    state: Data = {
        "status": "completed" if done else "running",
        "input": {"command": data.get("command")},
        "time": {"start": time.get("created"), "end": time.get("completed")},
    }
    if done:
        state["output"] = text
    if data.get("exit") is not None:
        state["metadata"] = {"exit": data["exit"]}
    call = data.get("callID") or data.get("shellID")
    part = {"type": "tool", "tool": "bash", "callID": call, "state": state}
    return {"role": "assistant", "shell": True, **_kept(data)}, [part]


def _assistant(kind: str, data: Data) -> tuple[Data, list[Data]]:
    model, snapshot = mapping(data.get("model")), data.get("snapshot")
    info: Data = {
        "role": "assistant",
        "modelID": model.get("id") or model.get("modelID"),
        "providerID": model.get("providerID"),
        "variant": model.get("variant"),
        **{key: data[key] for key in ("agent", "finish", "cost", "tokens", "time") if key in data},
    }
    if data.get("error"):
        info["error"] = _error(data["error"])
    started = snapshot.get("start") if isinstance(snapshot, dict) else snapshot
    parts: list[Data] = [{"type": "step-start", "snapshot": started}]
    parts += [_content(item) for item in _objects(data.get("content"))]
    retries = data.get("retries") or ([data["retry"]] if data.get("retry") else [])
    parts += [{"type": "retry", **retry} for retry in _objects(retries)]
    ended = mapping(snapshot)
    if ended.get("files"):
        parts.append({"type": "patch", "hash": ended.get("end"), "files": ended["files"]})
    return info, parts


def _content(item: Data) -> Data:
    if item.get("type") != "tool":
        native = item.get("native") or item.get("state")
        time = mapping(item.get("time"))
        made = {"type": item.get("type"), "text": item.get("text"), "metadata": native}
        if time:
            made["time"] = {"start": time.get("created"), "end": time.get("completed")}
        known = item.get("type") in ("text", "reasoning")
        return made if known else item
    state, time = mapping(item.get("state")), mapping(item.get("time"))
    status = state.get("status")
    made_state: Data = {
        "status": "pending" if status == "streaming" else status,
        "input": state.get("input"),
        "metadata": state.get("structured") or state.get("metadata"),
        "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed")},
    }
    content = _objects(state.get("content"))
    texts = [text for one in content if isinstance(text := one.get("text"), str)]
    files = [
        {"type": "file", "mime": one.get("mime"), "url": one["uri"], "filename": one.get("name")}
        for one in [*content, *_objects(state.get("attachments"))]
        if one.get("uri")
    ]
    made_state["output"] = "\n".join(texts)
    if files:
        made_state["attachments"] = files
    if state.get("error"):
        made_state["error"] = _error(state["error"])["data"]["message"]
    name = item.get("name") or item.get("tool")
    return {"type": "tool", "tool": name, "callID": item.get("id"), "state": made_state}


def _error(error: Any) -> Data:
    found = mapping(error)
    message = string(found.get("message")) or string(error) or ""
    return {"name": found.get("type") or found.get("name"), "data": {**found, "message": message}}


def _compaction(kind: str, data: Data) -> tuple[Data, list[Data]]:
    info: Data = {"role": "assistant", "compaction": data.get("reason"), **_kept(data)}
    if data.get("error"):
        info["error"] = _error(data["error"])
    return {**info, "summary": True}, [{"type": "text", "text": data.get("summary")}]


def _other(kind: str, data: Data) -> tuple[Data, list[Data]]:
    """What switched, or a type that is not known: an event."""
    return {"role": "system", **_kept(data)}, [{**data, "type": kind}]


def _kept(data: Data) -> Data:
    kept = ("time", "agent", "model", "metadata", "cost", "tokens")
    return {key: data[key] for key in kept if key in data}


def _objects(value: Any) -> list[Data]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_MAKERS: dict[str, Callable[[str, Data], tuple[Data, list[Data]]]] = {
    "user": _user, "synthetic": _synthetic, "system": _synthetic, "skill": _synthetic,
    "shell": _shell, "assistant": _assistant, "compaction": _compaction,
}  # fmt: skip
