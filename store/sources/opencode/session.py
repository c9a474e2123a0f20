"""A stored session as a session draft."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from store.sources.base.drafts import AttachmentDraft, LineageDraft, MessageDraft, SessionDraft
from store.sources.base.values import mapping, ms_or_0, number, string
from store.sources.opencode.compaction import mark_compactions
from store.sources.opencode.forks import Origin, copies_of
from store.sources.opencode.hiding import hide_reverted
from store.sources.opencode.messages import digest_of, message_draft, model_of
from store.sources.opencode.relatives import Call
from store.sources.opencode.stored import StoredMessage, StoredSession
from store.system.paths import read_regular

KIND = "opencode"
_PLACEHOLDER = re.compile(r"(?:New|Child) [Ss]ession - \d{4}-\d\d-\d\dT")
_KEPT = ("slug", "projectID", "workspaceID", "path", "agent", "permission", "summary", "metadata")
_ABORTED = "MessageAbortedError"
_GOES_ON = ("tool-calls",)
"""How a step ends that another one follows."""
ATTACHMENT_LIMIT = 64 << 20
"""Bytes of the largest output that is brought along."""


def session_draft(
    stored: StoredSession, origin: Origin | None, call: Call | None
) -> SessionDraft:
    """Return the draft of a session.

    Args:
        stored: The session.
        origin: What its copies were copied from, where that is known.
        call: The parent's call that started it, for a subagent.
    """
    info, times = stored.info, mapping(stored.info.get("time"))
    drafts = [message_draft(message) for message in stored.messages]
    mark_compactions(stored.messages, drafts)
    draft = SessionDraft(
        stored.id, stored.path, KIND,
        created_at=ms_or_0(times.get("created")) or _first_time(drafts),
        updated_at=ms_or_0(times.get("updated")),
        workspace_root=string(info.get("directory")),
        model=model_of(mapping(info.get("model"))),
        records=stored.records,
        archived_at=ms_or_0(times.get("archived")) or None,
        tells_title=True,
    )  # fmt: skip
    if draft.model is None:
        models = [one.metadata["model"] for one in drafts if "model" in one.metadata]
        draft.model = models[-1] if models else None
    if stored.engine == 2 or not draft.updated_at:
        last = max((one.updated_at for one in drafts), default=draft.created_at)
        draft.updated_at = max(draft.updated_at, last)
    _name(draft, info)
    _describe(draft, stored)
    _link(draft, stored, drafts, origin, call)
    draft.messages = hide_reverted(stored, drafts)
    _say_what_it_does(draft, stored)
    draft.attachments = _attachments(stored, drafts)
    return draft


def _first_time(drafts: list[MessageDraft]) -> int:
    return min((draft.created_at for draft in drafts if draft.created_at), default=0)


def _name(draft: SessionDraft, info: dict[str, Any]) -> None:
    draft.title = string(info.get("title"))
    if draft.title is not None:
        draft.title_from = "placeholder" if _PLACEHOLDER.match(draft.title) else "title"


def _describe(draft: SessionDraft, stored: StoredSession) -> None:
    info = stored.info
    if string(info.get("version")):
        draft.metadata["version"] = info["version"]
    extra: dict[str, Any] = {
        re.sub(r"ID$", "_id", key): info[key] for key in _KEPT if info.get(key)
    }
    if mapping(info.get("share")).get("url"):
        extra["share_url"] = info["share"]["url"]
    if stored.todos:
        extra["todos"] = stored.todos
    if stored.engine == 2:
        extra["engine"] = 2
    if extra:
        draft.metadata["backscroll"] = extra
    for message in stored.messages:
        prompt = string(message.data.get("system"))
        if prompt:
            draft.system_prompts[digest_of(prompt)] = prompt


def _link(
    draft: SessionDraft,
    stored: StoredSession,
    drafts: list[MessageDraft],
    origin: Origin | None,
    call: Call | None,
) -> None:
    parent = string(stored.info.get("parentID"))
    exported = {one.id: name for one in stored.messages if (name := _exported(stored.id, one))}
    if parent is not None:
        draft.lineage = LineageDraft("subagent", parent)
        if call is not None:
            draft.lineage.parent_message_source_id, draft.lineage.tool_call_id = call
    elif origin is not None and not exported:
        last = origin.originals[copies_of(stored)[-1].id]
        draft.lineage = LineageDraft("fork", origin.parent, last)
        exported = origin.originals
    for one in drafts:
        one.inherited_from = exported.get(one.source_id)


def _say_what_it_does(draft: SessionDraft, stored: StoredSession) -> None:
    """Set the activity where the last visible turn is not over, or failed.

    Each step of a turn is a message of its own; one that ended in calls is followed by another.
    """
    hidden = {one.source_id for one in draft.messages if "hidden_at" in one.metadata}
    standing = (
        each for each in reversed(stored.messages)
        if each.id not in hidden and not each.data.get("queued")
    )  # fmt: skip
    last = next(standing, None)
    if last is None:
        return
    if last.data.get("role") != "assistant":
        if not _is_compaction(last):
            draft.metadata["activity"] = {
                "state": "running", "from": "guessed", "since": last.created_at,
            }  # fmt: skip
        return
    ended, error = mapping(last.data.get("time")).get("completed"), last.data.get("error")
    state = None if ended and last.data.get("finish") not in _GOES_ON else "running"
    if error:
        state = "interrupted" if mapping(error).get("name") == _ABORTED else "error"
    if state is not None:
        since = number(ended) or last.created_at
        draft.metadata["activity"] = {"state": state, "from": "stored", "since": since}


def _is_compaction(message: StoredMessage) -> bool:
    return any(part.data.get("type") == "compaction" for part in message.parts)


def _exported(session_id: str, message: StoredMessage) -> str | None:
    """Return the message that one was exported from, as our own exports note it.

    A fork that the program makes of such a session copies the note; it names the session
    that was exported, so it holds there alone.
    """
    for part in message.parts:
        own = mapping(mapping(part.data.get("metadata")).get("backscroll"))
        if own.get("session") == session_id and string(own.get("message")):
            return str(own["message"])
    return None


def _attachments(stored: StoredSession, drafts: list[MessageDraft]) -> list[AttachmentDraft]:
    """Return the whole outputs that the program put into files of their own."""
    if stored.side_folder is None:
        return []
    found: dict[str, AttachmentDraft] = {}
    for draft in drafts:
        for part in draft.parts:
            extras = mapping(part.data.get("resultProviderMetadata"))
            name = string(mapping(extras.get("backscroll")).get("attachment"))
            if name is None or name in found or not name.startswith("tool_"):
                continue
            path = Path(stored.side_folder) / name
            try:
                if path.is_file() and path.stat().st_size <= ATTACHMENT_LIMIT:
                    found[name] = AttachmentDraft(name, "text/plain", read_regular(path))
            except OSError as error:
                stored.complain(f"{path}: {error.strerror or error}")
    return list(found.values())
