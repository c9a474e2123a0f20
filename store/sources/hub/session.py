"""A stored session of the hub as a session draft."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.values import mapping, string, utc_ms
from store.sources.hub.messages import message_draft, model_of
from store.sources.hub.stored import Memo, StoredMessage, StoredSession

KIND = "hub"
_STATES = {"idle": "idle", "busy": "running", "retry": "retrying", "archived": "ended"}
"""``sessions.status``, and what a session of it does."""
_KEPT = ("slug", "status", "role_name", "provider", "account_id", "project_id", "workspace_id")
_OWN_DATA = ("model", "directory")


def session_draft(stored: StoredSession, memo: Memo) -> SessionDraft:
    """Return the draft of a session, without its parent.

    Args:
        stored: The session.
        memo: What was made of its rows before.
    """
    row, data = stored.row, mapping(stored.row.get("data"))
    drafts = [_draft(message, memo) for message in stored.messages]
    _mark_compactions(stored.messages, drafts)
    first = next((draft.created_at for draft in drafts if draft.created_at), 0)
    created = utc_ms(row.get("created_at")) or first
    last = max((draft.updated_at for draft in drafts), default=created)
    draft = SessionDraft(
        stored.id, stored.path, KIND, created, utc_ms(row.get("updated_at")) or last,
        title=string(row.get("title")), title_from="title" if string(row.get("title")) else None,
        workspace_root=_workspace(data, stored.messages), model=_model(data, drafts),
        messages=drafts, records=stored.records, tells_title=True,
    )  # fmt: skip
    _describe(draft, stored)
    return draft


def _draft(message: StoredMessage, memo: Memo) -> MessageDraft:
    """Return a message's draft: the one of before where it and its numbers are the same."""
    before = memo.drafts.get(message.id)
    if before is not None and before[0] is message and before[1:2] == message.records:
        return before[2]
    draft = message_draft(message)
    # What follows a compaction tells whether it was answered.
    if message.row is not None and all(part.type != "compaction" for part in message.parts):
        memo.drafts[message.id] = message, message.records[0], draft
    return draft


def _describe(draft: SessionDraft, stored: StoredSession) -> None:
    row, data = stored.row, mapping(stored.row.get("data"))
    status = string(row.get("status"))
    if status == "archived":
        draft.archived_at = draft.updated_at
    state = _STATES.get(status or "", "unknown")
    draft.metadata["activity"] = {"state": state, "from": "stored", "since": draft.updated_at}
    if state == "unknown" and status is not None:
        draft.metadata["activity"]["word"] = status
    if string(row.get("version")):
        draft.metadata["version"] = row["version"]
    extra: dict[str, Any] = {key: row[key] for key in _KEPT if row.get(key)}
    if mapping(row.get("metadata")):
        extra["metadata"] = row["metadata"]
    rest = {key: value for key, value in data.items() if key not in _OWN_DATA}
    if rest:
        extra["data"] = rest
    draft.metadata["backscroll"] = extra


def _model(data: dict[str, Any], drafts: list[MessageDraft]) -> dict[str, Any] | None:
    """Return the session's model: its own word, else the last that a message names."""
    named = data.get("model")
    if isinstance(named, str) and named:
        provider, slash, name = named.partition("/")
        return {"provider_id": provider if slash else "unknown", "model_id": name or provider}
    own = model_of(mapping(named))
    if own is not None:
        return own
    models = [draft.metadata["model"] for draft in drafts if "model" in draft.metadata]
    return models[-1] if models else None


def _workspace(data: dict[str, Any], messages: list[StoredMessage]) -> str | None:
    """Return the folder that the session worked in, where anything names it."""
    named = string(data.get("directory"))
    if named is not None:
        return named
    for message in reversed(messages):
        path = mapping(message.data.get("path"))
        found = string(path.get("root")) or string(path.get("cwd"))
        if found is not None:
            return found
    return None


def _mark_compactions(messages: list[StoredMessage], drafts: list[MessageDraft]) -> None:
    """Make the markers of compactions that were answered cut the context off.

    The answer to the message with the marker is the summary; it stays as the message that
    it is, so the marker itself carries none.
    """
    for place, (message, draft) in enumerate(zip(messages, drafts, strict=True)):
        asked = [part for part in message.parts if part.type == "compaction"]
        if asked and _is_answered(message, messages[place + 1 :]):
            parts = {part.record: part for part in asked}
            for made in draft.parts:
                found = parts.get(made.records[0]) if made.records else None
                if found is not None:
                    _mark(made, found.data)
            draft.metadata["compaction"] = True


def _mark(made: PartDraft, asked: dict[str, Any]) -> None:
    data: dict[str, Any] = {"summary": "", "tail_start_id": None, **asked}
    data["auto"] = bool(asked.get("auto"))
    made.type, made.data = "data-compaction", {"type": "data-compaction", "data": data}


def _is_answered(message: StoredMessage, later: list[StoredMessage]) -> bool:
    answers = [one for one in later if one.data.get("parentID") == message.id]
    for answer in answers or later[:1]:
        texts = [part for part in answer.parts if part.type == "text" and part.data.get("text")]
        if answer.role == "assistant" and texts and not answer.data.get("error"):
            return True
    return False
