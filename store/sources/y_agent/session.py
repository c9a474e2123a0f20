"""A session's rows and transcripts as a session draft.

The display transcript is what happened; the context transcript is what the model would be
sent now. Where the two part, the summary in the context marks the place from which on the
display is still in it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import LineageDraft, LineageKind, MessageDraft, SessionDraft
from store.sources.base.growing import GrowingFile
from store.sources.base.plain_parts import text_part
from store.sources.base.protocol import Problem
from store.sources.base.titles import first_prompt
from store.sources.base.values import mapping, number, string, utc_ms
from store.sources.y_agent.beside import add_file_history, add_traces
from store.sources.y_agent.journal import Event, add_mutations
from store.sources.y_agent.messages import Transcript
from store.sources.y_agent.stored import StoredSession

KIND = "y-agent"
_LINEAGE: dict[str, LineageKind] = {
    "branch": "fork", "sub_agent": "subagent", "ephemeral": "subagent",
    "canonical": "continuation",
}  # fmt: skip
_SHELVED = ("archived", "merged", "tombstone")
_STATES = {
    "paused": "interrupted", "archived": "ended", "merged": "ended", "tombstone": "ended",
}  # fmt: skip
_EVENTS = {
    "chat_started": "running", "chat_progress": "running", "tool_runtime": "running",
    "chat_complete": "idle", "chat_error": "error", "ask_user": "waiting-input",
    "permission_request": "waiting-approval", "plan_review_request": "waiting-approval",
}  # fmt: skip
_KEPT = (
    "session_type", "state", "agent_id", "root_id", "depth", "path", "channel", "label",
    "last_compaction", "compaction_count", "context_reset_index", "branch_summary",
)  # fmt: skip


@dataclass(slots=True)
class Files:
    """What was read of a session's files.

    Attributes:
        display: The display transcript.
        context: The context transcript.
        parent: Ids of the messages of the session that it was forked from.
        history: ``_snapshots.json``, and the backup files by name.
        pinned: Whether the program's own list has it pinned, and its number there.
        mutations: What the journal says that its calls did to files.
    """

    display: GrowingFile | None
    context: GrowingFile | None
    parent: frozenset[str]
    history: tuple[bytes | None, dict[str, bytes]]
    pinned: tuple[bool, str | None] = (False, None)
    mutations: list[Event] = field(default_factory=list)


def session_draft(
    stored: StoredSession, path: str, files: Files, problems: list[Problem]
) -> SessionDraft:
    """Return the draft of a session.

    Args:
        stored: Its rows.
        path: What to name as its file.
        files: What was read of its files.
        problems: Takes what is damaged.
    """
    row, records = stored.row, [record_bytes({"table": "session_metadata", **stored.row})]
    records += [record_bytes({"table": "chat_checkpoints", **one}) for one in stored.checkpoints]
    messages = _messages(stored, files, records)
    created = utc_ms(row.get("created_at")) or 0
    last = max((message.updated_at for message in messages), default=created)
    draft = SessionDraft(
        stored.id, path, KIND, created, utc_ms(row.get("updated_at")) or last,
        workspace_root=string(row.get("workspace_path")), messages=messages, records=records,
        tells_title=True,
    )  # fmt: skip
    state = str(row.get("state"))
    if state in _SHELVED:
        draft.archived_at = draft.updated_at
    _name(draft, stored)
    models = [one.metadata["model"] for one in messages if "model" in one.metadata]
    draft.model = models[-1] if models else None
    _describe(draft, stored, files)
    _link(draft, stored, files.parent)
    _add_checkpoints(draft, stored)
    _put_back(draft, _rewound(draft, stored, records))
    add_file_history(draft, *files.history, records, problems)
    add_mutations(draft, files.mutations, records)
    add_traces(draft, stored.traces)
    return draft


def _messages(stored: StoredSession, files: Files, records: list[bytes]) -> list[MessageDraft]:
    """Return the messages that were shown, with a mark where the context begins."""
    shown = Transcript()
    for line in files.display.lines if files.display is not None else ():
        shown.take(line.data, len(records) + line.number, line.name)
    records += files.display.records if files.display is not None else []
    sent = Transcript()
    for line in files.context.lines if files.context is not None else ():
        sent.take(line.data, len(records) + line.number, line.name)
    if files.display is None:
        records += files.context.records if files.context is not None else []
        return sent.messages
    if files.context is None or files.display.records == files.context.records:
        return shown.messages
    records += files.context.records
    _compare(shown.messages, sent.messages)
    # Summaries are in the context alone, and so is what a display lacks that was cut.
    there = {one.source_id for one in shown.messages}
    for message in sent.messages:
        if message.source_id not in there:
            _insert(shown.messages, sent.messages, message)
    return shown.messages


def _compare(shown: list[MessageDraft], sent: list[MessageDraft]) -> None:
    """Note which of the shown messages the model is not sent, or is sent otherwise."""
    texts = {one.source_id: [part.data for part in one.parts] for one in sent}
    for message in shown:
        held = texts.get(message.source_id)
        if held is None or held != [part.data for part in message.parts]:
            own = message.metadata.setdefault("backscroll", {})
            own["in_context"] = "left out" if held is None else "shortened"


def _insert(
    shown: list[MessageDraft], sent: list[MessageDraft], message: MessageDraft
) -> None:
    """Put a message before the first shown one that comes after it in the context."""
    later = {one.source_id for one in sent[sent.index(message) + 1 :]}
    place = next((i for i, one in enumerate(shown) if one.source_id in later), len(shown))
    shown.insert(place, message)


def _name(draft: SessionDraft, stored: StoredSession) -> None:
    manual, title = string(stored.row.get("manual_title")), string(stored.row.get("title"))
    if manual or title:
        draft.title, draft.title_from = manual or title, "manual-title" if manual else "title"
        return
    text = first_prompt(draft.messages)
    draft.title, draft.title_from = (
        (text, "first-prompt") if text else ("Untitled session", "placeholder")
    )


def _describe(draft: SessionDraft, stored: StoredSession, files: Files) -> None:
    row = stored.row
    own: dict[str, Any] = {key: row[key] for key in _KEPT if row.get(key)}
    pinned, slot = files.pinned
    own |= {"pinned": True} if pinned else {}
    own |= {"quick_slot": slot} if slot is not None else {}
    draft.metadata["backscroll"] = own
    prompt = string(row.get("custom_system_prompt"))
    if prompt is not None:
        digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
        draft.system_prompts[digest] = prompt
        for message in draft.messages:
            if message.role == "assistant":
                message.metadata["system_prompt_digest"] = digest
    for message in draft.messages:
        said = str(stored.mirror.get(message.source_id, {}).get("status") or "active")
        if said != "active":
            message.metadata.setdefault("backscroll", {})["mirror_status"] = said
    activity = _activity(draft, stored)
    if activity is not None:
        draft.metadata["activity"] = activity


def _activity(draft: SessionDraft, stored: StoredSession) -> dict[str, Any] | None:
    """Return what the session's state, its newest event, or its last line says."""
    said = string(stored.row.get("state"))
    state = _STATES.get(said or "")
    if state is not None:
        return {"state": state, "from": "stored", "since": draft.updated_at}
    if said is not None and said != "active":
        return {"state": "unknown", "from": "stored", "since": draft.updated_at, "word": said}
    last = draft.messages[-1] if draft.messages else None
    event = stored.event
    if event is not None:
        at = utc_ms(event.get("created_at")) or draft.updated_at
        state = _EVENTS.get(str(event.get("kind")))
        ended = last is not None and last.role == "assistant" and last.created_at > at
        if state is not None and not (state == "running" and ended):
            return {"state": state, "from": "stored", "since": at}
    if last is not None and mapping(last.metadata.get("backscroll")).get("error"):
        return {"state": "error", "from": "stored", "since": last.created_at}
    return None


def _link(draft: SessionDraft, stored: StoredSession, parent: frozenset[str]) -> None:
    """Say where the session comes from; a fork keeps the ids of what it copied."""
    name = string(stored.row.get("parent_id"))
    if name is None:
        return
    kind = _LINEAGE.get(str(stored.row.get("session_type")), "unknown")
    draft.lineage = LineageDraft(kind, name)
    if kind != "fork":
        return
    for message in draft.messages:
        if message.source_id not in parent:
            if message.metadata.get("compaction"):
                continue
            break
        message.inherited_from = message.source_id
        draft.lineage.parent_message_source_id = message.source_id


def _add_checkpoints(draft: SessionDraft, stored: StoredSession) -> None:
    """Note at each turn's first message that the program can rewind to before it."""
    own = draft.metadata["backscroll"]
    shown = [message for message in draft.messages if not message.metadata.get("compaction")]
    noted = []
    for row in stored.checkpoints:
        place = number(row.get("message_count_before"))
        point: dict[str, Any] = {
            "checkpoint_id": row.get("checkpoint_id"),
            "turn": row.get("turn_number"),
            "message_count_before": place,
            "invalidated": bool(row.get("invalidated")),
            "at": utc_ms(row.get("created_at")),
        }
        if string(row.get("journal_scope_id")):
            point["journal_scope_id"] = row["journal_scope_id"]
        if 0 <= place < len(shown) and not point["invalidated"]:
            point["message_source_id"] = shown[place].source_id
            shown[place].metadata.setdefault("backscroll", {})["checkpoint"] = point
        noted.append(point)
    if noted:
        own["checkpoints"] = noted


def _rewound(
    draft: SessionDraft, stored: StoredSession, records: list[bytes]
) -> list[MessageDraft]:
    """Return messages that a rewind cut off the files, which the mirror still has."""
    known = {message.source_id for message in draft.messages}
    found: list[MessageDraft] = []
    for name, row in stored.mirror.items():
        if row.get("status") != "tombstone" or name in known:
            continue
        at, word = utc_ms(row.get("created_at")) or draft.created_at, str(row.get("role"))
        role: Any = {"user": "user", "system": "system"}.get(word, "assistant")
        message = MessageDraft(name, role, at, at, {"hidden_at": 0}, records=(len(records),))
        message.parts = [text_part(str(row.get("content") or ""), at)]
        message.parts[0].records = (len(records),)
        records.append(record_bytes({"table": "chat_messages", **row}))
        if role == "user":
            message.metadata["origin"] = "human"
        found.append(message)
    hidden_at = max((message.created_at for message in found), default=0) + 1
    for message in found:
        message.metadata["hidden_at"] = hidden_at
    return found


def _put_back(draft: SessionDraft, rewound: list[MessageDraft]) -> None:
    """Put what was rewound in its place: before the first message that came later."""
    kept = draft.messages
    for message in sorted(rewound, key=lambda one: one.created_at):
        later = (i for i, one in enumerate(kept) if one.created_at > message.created_at)
        kept.insert(next(later, len(kept)), message)


def message_ids(file: GrowingFile | None) -> frozenset[str]:
    """Return the ids of a transcript's messages."""
    lines = file.lines if file is not None else []
    return frozenset(name for line in lines if (name := string(line.data.get("message_id"))))


def display_path(context_path: str) -> str:
    """Return the display transcript that belongs to a context transcript."""
    return os.path.splitext(context_path)[0] + ".display.jsonl"
