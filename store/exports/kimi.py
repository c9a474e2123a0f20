"""Makes the files of a session for Kimi Code: its conversation, and its state beside it.

Source: the Kimi format page, section A.7 (hand-made sessions were resumed). What Kimi Code
needs beside the conversation is a ``profile.bind`` record of its own, which names the model:
it is taken from one of its sessions.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
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
from store.exports.turns import Turn, turns_of
from store.exports.typed import typed
from store.queries.originals import numbered_records
from store.text.exact_json import NotJson, decode, encode_for_output
from store.usage import whole_counts

Record = dict[str, Any]
PROTOCOL = "1.5"
"""The version of the records."""
_MAIN, _PROFILE = "main", "profile.bind"
_ASIDE = {"kind": "injection", "variant": "backscroll"}
"""The origin of what a program told the model: it is sent, and not shown as typed."""
_SESSIONS_LOOKED_AT, _RECORDS_LOOKED_AT = 5, 20
_NO_PROFILE = (
    "Kimi Code opens the file once a line of type profile.bind is its second: copy it from one of"
    " its own sessions, or use resume --in kimi, which does so"
)


def write_kimi(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a conversation; the session's id follows from ``export_id``."""
    profile = profile_of(reading)
    yield from written(kimi_file(reading, profile=profile), reading)
    if profile is None and reading.agent_id is not None:
        reading.remarks.append(_NO_PROFILE)


def wire_name(export_id: str, created_at: int) -> str:
    """Return the path of a session's conversation in the folder of a workspace.

    Args:
        export_id: A UUID.
        created_at: Epoch ms; not part of it.
    """
    return f"session_{export_id}/agents/{_MAIN}/wire.jsonl"


def kimi_file(
    reading: SessionReading, *, cwd: str | None = None, profile: Record | None = None
) -> NamedFile:
    """Return a session as files that Kimi Code can resume.

    An unanswered last prompt stays in them: Kimi Code takes none when it opens a session.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
        profile: A ``profile.bind`` record of Kimi Code's own; without one it does not resume.
    """
    reading = typed(reading)
    session, session_id = reading.session, f"session_{reading.export_id}"
    records = list(_Records().of(turns_of(reading.messages)))
    begun = int(session["created_at"])
    folder = cwd or session["workspace_root"] or "/"
    name = wire_name(reading.export_id, begun)
    if not records:
        return NamedFile(session_id, name, [], None)
    bound = [] if profile is None else [{**profile, "agentId": _MAIN, "time": begun}]
    head = {"type": "metadata", "protocol_version": PROTOCOL, "created_at": begun}
    lines = [encode_for_output(line) for line in (head, *bound, *records)]
    state: Record = {
        "id": session_id, "version": 2, "cwd": folder, "createdAt": begun,
        "updatedAt": records[-1]["time"], "archived": False,
        "agents": {_MAIN: {"type": "main"}}, "custom": {},
    }  # fmt: skip
    title = title_of(session, given_only=True)
    if title:
        state |= {"title": title, "titleKind": "custom", "isCustomTitle": True}
    beside = {f"{session_id}/state.json": f"{encode_for_output(state)}\n"}
    return NamedFile(session_id, name, lines, None, beside)


class _Records:
    """Makes the records of a conversation."""

    def __init__(self) -> None:
        self._calls = CallIds()
        self._turn = -1
        self._step = 0

    def of(self, turns: Iterable[Turn]) -> Iterator[Record]:
        """Yield the records of the messages to and from the model, in order."""
        for turn in turns:
            if turn.summary is not None:
                content = [{"type": "text", "text": SUMMARY + turn.summary}]
                yield _message(turn, content, {"kind": "compaction_summary"})
            elif turn.role == "user":
                self._turn += turn.is_prompt
                self._step = 0 if turn.is_prompt else self._step
                origin = _ASIDE if turn.is_aside else {"kind": "user"}
                yield _message(turn, [_block(part) for part in turn.told], origin)
            else:
                usage: object = turn.metadata.get("usage")
                for place, step in enumerate(turn.steps):
                    yield from self._answer(turn, place, step, usage)
                    usage = None

    def _answer(self, turn: Turn, place: int, step: Step, usage: object) -> Iterator[Record]:
        self._step += 1
        name = _uuid(turn, f"step {place}")
        own = {"turnId": str(max(self._turn, 0)), "step": self._step}
        begun, ended = turn.begun, turn.ended
        yield _event(begun, "step.begin", uuid=name, **own)
        for number, part in enumerate(step.said):
            yield _event(begun, "content.part", uuid=_uuid(turn, f"part {place} {number}"), **own,
                         stepUuid=name, part=_said(part))  # fmt: skip
        calls = [(_uuid(turn, f"call {place} {number}"), self._calls.take(part.get("toolCallId")),
                  part) for number, part in enumerate(step.calls)]  # fmt: skip
        for key, call_id, part in calls:
            yield _event(begun, "tool.call", uuid=key, **own, stepUuid=name, toolCallId=call_id,
                         name=taken_name(call_name(part)), args=call_input(part))  # fmt: skip
        for key, call_id, part in calls:
            yield _event(ended, "tool.result", parentUuid=key, toolCallId=call_id,
                         result=_result(part))  # fmt: skip
        yield _event(ended, "step.end", uuid=name, **own,
                     finishReason="tool_use" if calls else "end_turn", usage=_usage(usage))


def _message(turn: Turn, content: list[Record], origin: Record) -> Record:
    message = {"role": "user", "content": content, "id": turn.id, "toolCalls": [],
               "origin": origin}  # fmt: skip
    return {"type": "context.append_message", "agentId": _MAIN, "message": message,
            "time": turn.begun}  # fmt: skip


def _event(at: int, kind: str, **more: Any) -> Record:
    return {"type": "context.append_loop_event", "agentId": _MAIN,
            "event": {"type": kind, **more}, "time": at}  # fmt: skip


def _uuid(turn: Turn, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn.id} {name}"))


def _block(part: Part) -> Record:
    """Return a text or a file; a file that is no picture is named."""
    if part.get("type") == "text":
        return {"type": "text", "text": part["text"]}
    inline = inline_data(part)
    if inline is not None and inline[0].startswith("image/"):
        return {"type": "image_url", "imageUrl": {"url": f"data:{inline[0]};base64,{inline[1]}"}}
    return {"type": "text", "text": file_name(part)}


def _said(part: Part) -> Record:
    """Return a piece of an answer; its files are named."""
    if part.get("type") == "reasoning":
        extras = part.get("providerMetadata")
        kept = extras.get("kimi") if isinstance(extras, dict) else None
        return {"type": "think", "think": part["text"], **(kept if isinstance(kept, dict) else {})}
    return {"type": "text", "text": file_name(part) if part.get("type") == "file" else part["text"]}


def _result(part: Part) -> Record:
    result = call_result(part)
    output: Any = result.text
    if result.files:
        text = [{"type": "text", "text": result.text}] if result.text else []
        output = [*text, *map(_block, result.files)]
    return {"output": output, **({"isError": True} if result.failed else {})}


def _usage(usage: object) -> Record:
    counts = whole_counts(usage)
    return {"inputOther": counts["input"], "output": counts["output"] + counts["reasoning"],
            "inputCacheRead": counts["cache_read"], "inputCacheCreation": counts["cache_write"]}


def is_profile(record: object) -> bool:
    """Return whether a record says with which model and prompt Kimi Code runs a session."""
    if not isinstance(record, dict) or record.get("type") != _PROFILE:
        return False
    named = all(isinstance(record.get(key), str) for key in ("systemPrompt", "modelAlias"))
    return named and record.get("agentId", _MAIN) == _MAIN


def profile_of(reading: SessionReading) -> Record | None:
    """Return the profile that the library has of the session, else of Kimi Code's newest one."""
    form = reading.db.form
    if form.name != "own":
        return None
    kind = form.source_kind("s")
    rows = reading.db.connection.execute(
        f"SELECT s.id FROM chat_sessions s WHERE {kind} = 'kimi'"
        " ORDER BY s.id = $1 DESC, s.updated_at DESC, s.id DESC LIMIT $2",
        {"1": str(reading.session["id"]), "2": _SESSIONS_LOOKED_AT},
    ).fetchall()
    for (session_id,) in rows:
        for number, body in numbered_records(reading.db, session_id):
            if number > _RECORDS_LOOKED_AT:
                break
            try:
                record = decode(body)
            except NotJson:
                continue
            kept = reading.originals(record) if is_profile(record) else None
            if kept is not None:
                return kept
    return None
