"""Makes the files of a session for Cline's CLI: its messages, and its manifest beside them.

Source: the Cline format page, sections 2.2, 2.3 and 2.7 (a hand-made folder was resumed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from store.exports.agent_file import NamedFile, title_of, written
from store.exports.calls import CallIds, taken_name
from store.exports.reading import SessionReading
from store.exports.steps import (
    SUMMARY,
    Part,
    Step,
    call_input,
    call_name,
    call_result,
    file_name,
    inline_data,
)
from store.exports.turns import Turn, iso, model_of, turns_of
from store.exports.typed import typed
from store.text.exact_json import encode_for_output

Record = dict[str, Any]
VERSION = "3.0.65"
"""The version whose sessions these are."""
_EARLIEST = 10**12
"""Epoch ms; an id begins with a time of thirteen digits."""
_PROGRAM = {"userRunSpan": 0, "displayRole": "system"}
"""The metadata of a message that no person typed."""
_READ_AS_JSON = ("{", "[")
_REFUSED = "rejected by the user"


@dataclass(frozen=True, slots=True)
class Model:
    """A model as Cline's settings name it.

    Attributes:
        provider: Who is asked for it.
        id: Its name there.
    """

    provider: str
    id: str


def write_cline(reading: SessionReading) -> Iterator[str]:
    """Yield a session's messages; the session's id follows from ``export_id``."""
    yield from written(cline_file(reading), reading)


def session_id(export_id: str, created_at: int) -> str:
    """Return an id in Cline's form.

    Args:
        export_id: A UUID, of which it has the first characters.
        created_at: Epoch ms; Cline lists sessions by it.
    """
    return f"{max(created_at, _EARLIEST)}_{export_id[:5]}"


def messages_name(export_id: str, created_at: int) -> str:
    """Return the path of a session's messages in the folder of all sessions.

    Args:
        export_id: A UUID.
        created_at: Epoch ms.
    """
    name = session_id(export_id, created_at)
    return f"{name}/{name}.messages.json"


def cline_file(
    reading: SessionReading, *, cwd: str | None = None, sessions: str = "",
    model: Model | None = None,
) -> NamedFile:
    """Return a session as files that Cline can resume.

    An unanswered last prompt stays in them: Cline takes none when it opens a session.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
        sessions: The folder of all sessions, where it is known.
        model: The model to go on with; None for that of the session.
    """
    reading = typed(reading)
    session, begun = reading.session, int(reading.session["created_at"])
    name, path = session_id(reading.export_id, begun), messages_name(reading.export_id, begun)
    given = session["model"]
    own = Model(str(given.get("provider_id") or "unknown"), str(given.get("model_id") or "unknown"))
    found = list(_Messages(own).of(turns_of(reading.messages)))
    if not found:
        return NamedFile(name, path, [], None)
    updated = iso(max(each["ts"] for each in found))
    folder = cwd or session["workspace_root"] or "/"
    document = {
        "version": 1, "updated_at": updated, "agent": "lead", "sessionId": name,
        "origin": {"source": "cli", "mode": "user", "sessionId": name, "version": VERSION},
        "messages": found,
    }  # fmt: skip
    model = model or own
    title = title_of(session)
    manifest = {
        "version": 1, "session_id": name, "source": "cli", "pid": 0, "started_at": iso(begun),
        "ended_at": updated, "exit_code": 0, "status": "completed", "interactive": True,
        "provider": model.provider, "model": model.id, "cwd": folder, "workspace_root": folder,
        "enable_tools": True, "enable_spawn": True, "enable_teams": False,
        "metadata": {"sessionHistoryOrigin": {"mode": "user", "version": VERSION}, "mode": "act",
                     **({"title": title} if title else {})},
        "messages_path": f"{sessions}/{path}" if sessions else path,
    }  # fmt: skip
    beside = {f"{name}/{name}.json": f"{encode_for_output(manifest)}\n"}
    return NamedFile(name, path, [encode_for_output(document)], None, beside)


class _Messages:
    """Makes the messages of a session."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._calls = CallIds()

    def of(self, turns: Iterator[Turn]) -> Iterator[Record]:
        """Yield the messages to and from the model, in order; each result is one."""
        for turn in turns:
            if turn.summary is not None:
                content = [{"type": "text", "text": SUMMARY + turn.summary}]
                told = {**_PROGRAM, "kind": "compaction_summary"}
                yield _message(turn, turn.id, "user", content) | {"metadata": told}
            elif turn.role == "user":
                content = [_block(part, typed=turn.is_prompt) for part in turn.told]
                message = _message(turn, turn.id, "user", content)
                yield message | ({"metadata": _PROGRAM} if turn.is_aside else {})
            else:
                yield from self._answer(turn)

    def _answer(self, turn: Turn) -> Iterator[Record]:
        model = {"id": model_of(turn.item, self._model.id), "provider": self._provider(turn)}
        for place, step in enumerate(turn.steps):
            name = f"{turn.id}.{place + 1}" if place else turn.id
            ids = [self._calls.take(part.get("toolCallId")) for part in step.calls]
            content = [*_spoken(step), *(
                {"type": "tool_use", "id": call_id, "name": taken_name(call_name(part)),
                 "input": call_input(part)}
                for call_id, part in zip(ids, step.calls, strict=True)
            )]  # fmt: skip
            if content:
                yield _message(turn, name, "assistant", content) | {"modelInfo": model}
            for call_id, part in zip(ids, step.calls, strict=True):
                result = _message(turn, f"{name}:{call_id}", "user", [_result(part, call_id)])
                yield {**result, "ts": turn.ended}

    def _provider(self, turn: Turn) -> str:
        model = turn.metadata.get("model")
        found = model.get("provider_id") if isinstance(model, dict) else None
        return str(found or self._model.provider)


def _message(turn: Turn, name: str, role: str, content: list[Record]) -> Record:
    return {"id": name, "role": role, "content": content, "ts": turn.begun}


def _block(part: Part, *, typed: bool) -> Record:
    """Return a text, as Cline marks what a person typed, or a picture; other files are named."""
    if part.get("type") == "text":
        extras = part.get("providerMetadata")
        own = extras.get("backscroll") if isinstance(extras, dict) else None
        is_file = isinstance(own, dict) and own.get("synthetic") is True
        text = part["text"]
        if typed and not is_file:
            text = f'<user_input mode="act">{text}</user_input>'
        return {"type": "text", "text": text}
    inline = inline_data(part)
    if inline is not None and inline[0].startswith("image/"):
        return {"type": "image", "data": inline[1], "mediaType": inline[0]}
    return {"type": "text", "text": file_name(part)}


def _spoken(step: Step) -> list[Record]:
    """Return what an answer says; thoughts that another provider did not sign are refused."""
    found: list[Record] = []
    for part in step.said:
        if part.get("type") == "file":
            found.append({"type": "text", "text": file_name(part)})
        elif part.get("type") == "text":
            found.append({"type": "text", "text": part["text"]})
        else:
            extras = part.get("providerMetadata")
            kept = extras.get("cline") if isinstance(extras, dict) else None
            signature = kept.get("signature") if isinstance(kept, dict) else None
            if isinstance(signature, str):
                found.append(
                    {"type": "thinking", "thinking": part["text"], "signature": signature})
    return found


def _result(part: Part, call_id: str) -> Record:
    """Return a call's result; in the form of Cline's tools where text alone would be misread."""
    result, name = call_result(part), taken_name(call_name(part))
    text = "\n".join(filter(None, (result.text, *map(file_name, result.files))))
    block: Record = {"type": "tool_result", "tool_use_id": call_id, "name": name, "content": text}
    if text.startswith(_READ_AS_JSON) or _REFUSED in text:
        told = {"result": "", "error": text} if result.failed else {"result": text}
        return block | {"content": [{"query": name, **told, "success": not result.failed}]}
    return block | ({"is_error": True} if result.failed else {})
