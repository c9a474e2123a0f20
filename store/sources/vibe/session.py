"""From what a folder of the unified store holds to its session: title, tokens, lineage.

Source: the Mistral Vibe format page, sections "Unified store", "Rewind, fork" and "Usage".
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.drafts import AttachmentDraft, LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import Depends
from store.sources.base.json_lines import records_of
from store.sources.base.plain_parts import data_part
from store.sources.base.protocol import SESSION_FACT, FileStamp, Library
from store.sources.base.side_file import SideFile
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, ms_or_0, number, string
from store.sources.vibe.entries import Entries
from store.sources.vibe.snapshot import CURRENT, JOURNAL, META, Snapshot, Store, apply
from store.system.paths import read_regular

KIND = "vibe"
_COPIED = "imported-"
"""Begins the ids of entries that a fork copied."""
_PROVIDER = "mistral"


class Beside(NamedTuple):
    """What a session is read with, apart from its snapshot.

    Attributes:
        meta: The document of what the session is.
        saved: Whole outputs of tools, by the names of their files.
        library: Has the sessions whose files are gone.
        depends: Takes what it would want to know of others.
    """

    meta: SideFile
    saved: dict[str, bytes]
    library: Library
    depends: Depends


def unified_draft(folder: str, snapshot: Snapshot, beside: Beside) -> SessionDraft | None:
    """Return the session of a folder; None where nothing was said in it.

    Args:
        folder: The session's folder.
        snapshot: What it holds.
        beside: What it is read with.
    """
    meta, envelope = beside.meta.data, snapshot.envelope
    session, turn = mapping(envelope.get("session")), mapping(envelope.get("latestTurn"))
    name = string(session.get("id")) or os.path.basename(folder)
    config = mapping(meta.get("config"))
    model = model_of(config.get("model_name") or config.get("active_model"))
    created = ms_or_0(session.get("createdAt")) or epoch_ms(meta.get("start_time")) or 0
    entries = _with_rewound(name, snapshot, beside.library)
    taken = Entries(model)
    for record, (entry, hidden_at) in enumerate(entries, 1):
        taken.take(entry, record, hidden_at=hidden_at)
    rest = {key: value for key, value in envelope.items() if key != "history"}
    draft = SessionDraft(
        name, os.path.join(folder, CURRENT), KIND, created,
        ms_or_0(session.get("updatedAt")) or epoch_ms(meta.get("end_time")) or created,
        workspace_root=string(mapping(meta.get("environment")).get("working_directory")),
        messages=taken.found, model=model, archived_at=epoch_ms(meta.get("archived_at")),
        records=[record_bytes(rest), *(record_bytes(entry) for entry, _ in entries)],
        tells_title=beside.meta.body is not None,
    )  # fmt: skip
    _fail(draft, turn)
    _queue(draft, envelope)
    if not draft.messages:
        return None
    title = string(session.get("title")) or string(meta.get("title"))
    by_hand = "manual" in (session.get("titleSource"), meta.get("title_source"))
    preview = string(session.get("preview"))
    draft.title = shortened(title or first_prompt(draft.messages) or preview or "") or None
    said = "user" if by_hand else "title"
    draft.title_from = said if title else FIRST_PROMPT if draft.title else None
    if string(meta.get("git_branch")):
        draft.metadata["git_branch"] = meta["git_branch"]
    _state(draft, envelope)
    draft.attachments = [AttachmentDraft(key, "application/json", body)
                         for key, body in beside.saved.items()]  # fmt: skip
    _link(draft, folder, beside)
    tokens = tokens_of(mapping(session.get("tokenUsage")))
    if tokens is not None:
        draft.messages.append(used(draft, tokens))
    return draft


def model_of(name: object) -> dict[str, Any] | None:
    """Return a model by its name; None without one."""
    model = string(name)
    return {"provider_id": _PROVIDER, "model_id": model} if model is not None else None


def tokens_of(counts: dict[str, Any]) -> dict[str, int] | None:
    """Return counts as our buckets; None where there are none. The input includes the cached."""
    cached = max(0, number(counts.get("cachedInputTokens")))
    found = {
        "input": max(0, number(counts.get("inputTokens")) - cached),
        "output": max(0, number(counts.get("outputTokens"))), "reasoning": 0,
        "cache_read": cached, "cache_write": 0,
    }  # fmt: skip
    return found if any(found.values()) else None


def used(draft: SessionDraft, tokens: dict[str, int]) -> MessageDraft:
    """Return what the whole session spent, as an answer without words.

    Args:
        draft: The session.
        tokens: What it spent.
    """
    at = draft.updated_at
    message = MessageDraft("usage", "assistant", at, at, {
        "usage": tokens, "backscroll": {"no_answer": True, "initiator": "session"}},
        records=(0,))  # fmt: skip
    if draft.model is not None:
        message.metadata["model"] = draft.model
    return message


def _with_rewound(
    name: str, snapshot: Snapshot, library: Library
) -> list[tuple[dict[str, Any], int]]:
    """Return the entries, with those before each rewind that it took away, and when it did.

    The store forgets them; they are in the journal for a while, and in the library where an
    earlier sync saw them.

    Args:
        name: The session's id.
        snapshot: What the store has.
        library: Has what was there before.
    """
    rewinds = {string(mapping(entry.get("details")).get("entryId")): nth
               for nth, entry in enumerate(snapshot.entries)
               if entry.get("type") == "checkpoint" and entry.get("kind") == "rewind"}
    found: list[tuple[dict[str, Any], int]] = [(entry, 0) for entry in snapshot.entries]
    rewinds.pop(None, None)
    if not rewinds:
        return found
    known = {string(entry.get("id")) for entry in snapshot.entries}
    stored = [mapping(decoded(record)) for record in library.records(name)]
    taken: dict[str, list[dict[str, Any]]] = {}
    current: str | None = None
    for entry in (*stored, *snapshot.removed):
        own = string(entry.get("id"))
        if own is None or own in known:
            current = None if own is not None else current
            continue
        current = own if own in rewinds else current
        if current is not None:
            known.add(own)
            taken.setdefault(current, []).append(entry)
    for first, nth in sorted(rewinds.items(), key=lambda each: -each[1]):
        at = ms_or_0(snapshot.entries[nth].get("createdAt")) or 1
        found[nth:nth] = [(entry, at) for entry in taken.get(first or "", [])]
    return found


def _fail(draft: SessionDraft, turn: dict[str, Any]) -> None:
    """Show the error that the last turn ended with."""
    error = mapping(turn.get("error"))
    if not error:
        return
    at = ms_or_0(turn.get("completedAt")) or draft.updated_at
    said = {"name": string(error.get("code")) or "error",
            "message": string(error.get("message")) or ""}  # fmt: skip
    part = data_part("error", said, at, 0)
    name = f"{string(turn.get('id')) or 'turn'}:error"
    draft.messages.append(MessageDraft(name, "system", at, at, {}, [part]))


def _queue(draft: SessionDraft, envelope: dict[str, Any]) -> None:
    """Add the prompts that still wait."""
    items = mapping(envelope.get("turnQueue")).get("items")
    for nth, item in enumerate(map(mapping, items if isinstance(items, list) else ())):
        at = ms_or_0(item.get("createdAt")) or draft.updated_at
        given = (item.get(key) for key in ("content", "message", "input", "text"))
        content = next(filter(None, given), None) or mapping(item.get("params")).get("message")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            content = [{"type": "prompt", **item}]
        words = Entries(None)
        words.take({"id": f"queued-{string(item.get('id')) or nth}", "type": "message",
                    "role": "user", "content": content, "createdAt": at}, 0)  # fmt: skip
        words.found[0].metadata["queued_at"] = at
        draft.messages += words.found


def _state(draft: SessionDraft, envelope: dict[str, Any]) -> None:
    status = string(mapping(mapping(envelope.get("session")).get("status")).get("type"))
    turn = string(mapping(envelope.get("latestTurn")).get("status"))
    draft.metadata["backscroll"] = {
        key: value for key, value in (("status", status), ("last_turn", turn)) if value}
    usage = mapping(mapping(envelope.get("session")).get("contextUsage"))
    if number(usage.get("totalTokens")) > 0:
        draft.metadata["backscroll"]["context_tokens"] = number(usage["totalTokens"])
    since = draft.updated_at
    if status == "running" or turn == "in_progress":
        state, told = ("waiting-approval", "stored") if envelope.get("activeCallbacks") else (
            "running", "guessed")  # fmt: skip
    elif status == "failed" or turn == "failed":
        state, told = "error", "stored"
    elif turn == "interrupted":
        state, told = "interrupted", "stored"
    else:
        return
    draft.metadata["activity"] = {"state": state, "from": told, "since": since}


def _link(draft: SessionDraft, folder: str, beside: Beside) -> None:
    """Say what the session was forked from; what was copied has new ids, and the same words."""
    session = beside.meta.data
    parent = string(session.get("parent_session_id"))
    if parent is None or parent == draft.source_id:
        return
    above = os.path.join(os.path.dirname(folder), os.path.basename(parent))
    if _is_child(above, draft.source_id, beside.depends):
        draft.lineage = LineageDraft("subagent", parent)
        return
    copies = [one for one in draft.messages if one.source_id.startswith(_COPIED)]
    theirs = _messages_of(above, parent, beside) if copies else []
    last: str | None = None
    for message in copies:
        same = next((place for place, each in enumerate(theirs)
                     if each.role == message.role and _words(each) == _words(message)), None)
        if same is None:
            message.inherited_from = message.source_id
            continue
        last = message.inherited_from = theirs[same].source_id
        del theirs[: same + 1]
    draft.lineage = LineageDraft("fork", parent, last)


def _is_child(above: str, name: str, depends: Depends) -> bool:
    """Return whether a parent names a session among those that it started itself."""
    path = os.path.join(above, META)
    depends.looked.append(FileStamp.now(path))
    try:
        data = SideFile.read(path, read_regular(path), []).data
    except OSError:
        return False
    children = data.get("child_sessions")
    for child in children if isinstance(children, list) else ():
        given = mapping(child)
        if name in (child, given.get("session_id"), given.get("id")):
            return True
    return False


def _messages_of(above: str, parent: str, beside: Beside) -> list[MessageDraft]:
    """Return the messages of a parent: of its files, or of the library where they are gone."""
    entries: Sequence[dict[str, Any]]
    snapshot = Store(above, beside.depends.looked, []).snapshot()
    if snapshot is None:
        beside.depends.wants.add(SESSION_FACT + parent)
        entries = [mapping(decoded(record)) for record in beside.library.records(parent)[1:]]
    else:
        if snapshot.segment is not None:
            path = os.path.join(above, JOURNAL, snapshot.segment)
            beside.depends.looked.append(FileStamp.now(path))
            with contextlib.suppress(OSError):
                apply(snapshot, records_of(read_regular(path)))
        entries = snapshot.entries
    taken = Entries(None)
    for record, entry in enumerate(entries):
        taken.take(entry, record)
    return taken.found


def _words(message: MessageDraft) -> list[str]:
    return [str(part.data.get("text", part.type)) for part in message.parts]
