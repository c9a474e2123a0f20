"""A stored session as a session draft."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.sources.base.drafts import AttachmentDraft, LineageDraft, MessageDraft, SessionDraft
from store.sources.base.protocol import FileStamp
from store.sources.base.values import mapping, ms_or_0, number, string
from store.sources.opencode.forks import Origin, copies_of
from store.sources.opencode.messages import digest_of, message_draft, model_of
from store.sources.opencode.relatives import Call
from store.sources.opencode.stored import StoredMessage, StoredSession
from store.system.paths import read_regular


# Source: the opencode format page, section 2.6. The model is sent what follows the newest
# such pair, so the answer becomes the marker: its text is the summary. A compaction that
# has no answer yet, or failed, cuts nothing off and stays an event.
def mark_compactions(messages: list[StoredMessage], drafts: list[MessageDraft]) -> None:
    """Turn the answers that sum up into ``data-compaction`` messages.

    Args:
        messages: All of a session.
        drafts: What was made of each of them.
    """
    asked: dict[str, dict[str, Any]] = {}
    for message in messages:
        for part in message.parts:
            if part.data.get("type") == "compaction":
                asked[message.id] = part.data
    known = {draft.source_id for draft in drafts}
    for message, draft in zip(messages, drafts, strict=True):
        if message.data.get("summary") is True and draft.role == "assistant":
            request = asked.get(str(message.data.get("parentID")), {})
            _mark(message, draft, request, known)


def _mark(
    message: StoredMessage, draft: MessageDraft, request: dict[str, Any], known: set[str]
) -> None:
    texts = [part for part in draft.parts if part.type == "text" and part.data["text"].strip()]
    if not texts or message.data.get("error"):
        return
    tail = string(request.get("tail_start_id"))
    reason = message.data.get("compaction")
    data: dict[str, Any] = {
        "summary": "\n\n".join(part.data["text"] for part in texts),
        "tail_start_id": tail if tail in known else None,
        "auto": bool(request.get("auto", reason == "auto")),
    }
    if request.get("overflow"):
        data["overflow"] = True
    usage = mapping(draft.metadata.get("usage"))
    if usage.get("output"):
        data["summary_tokens"] = usage["output"]
    first = texts[0]
    first.type, first.data = "data-compaction", {"type": "data-compaction", "data": data}
    first.records = tuple(record for part in texts for record in part.records)
    draft.parts = [part for part in draft.parts if part is first or part not in texts]
    draft.metadata["compaction"] = True


# Source: the opencode format page, section 2.6. The rows stay until the next prompt; it is
# their place that counts, not their ids, which have wrapped.
def hide_reverted(stored: StoredSession, drafts: list[MessageDraft]) -> list[MessageDraft]:
    """Return the messages with those hidden that a pending revert hides.

    Where it points into a message, that one is cut in two: its parts before the place
    stay visible, the rest becomes a hidden message of its own.
    """
    revert = mapping(stored.info.get("revert"))
    target, part_id = string(revert.get("messageID")), string(revert.get("partID"))
    names = [draft.source_id for draft in drafts]
    if target not in names:
        return drafts
    start = names.index(target)
    if part_id is not None and _cut(stored, drafts, start, part_id):
        start += 1
    at = _reverted_at(stored, drafts)
    for draft in drafts[start:]:
        draft.metadata["hidden_at"] = at
    return drafts


def _reverted_at(stored: StoredSession, drafts: list[MessageDraft]) -> int:
    """Return when: the revert moves the session's time; never before what it hides."""
    updated = ms_or_0(mapping(stored.info.get("time")).get("updated"))
    return max(updated, max(draft.created_at for draft in drafts) + 1)


def _cut(stored: StoredSession, drafts: list[MessageDraft], at: int, part_id: str) -> bool:
    """Cut a message before a part; return whether something of it stays visible."""
    message, draft = stored.messages[at], drafts[at]
    ids = [part.id for part in message.parts]
    if part_id not in ids:
        return False
    hidden = {part.record for part in message.parts[ids.index(part_id) :]}
    kept = [part for part in draft.parts if not hidden.intersection(part.records)]
    if all(part.type == "step-start" for part in kept):
        return False
    rest = MessageDraft(
        f"{draft.source_id}:reverted", draft.role, draft.created_at, draft.updated_at,
        {key: draft.metadata[key] for key in ("model", "agent", "origin") if key in draft.metadata},
        [part for part in draft.parts if hidden.intersection(part.records)],
        records=message.records,
    )  # fmt: skip
    draft.parts = kept
    drafts.insert(at + 1, rest)
    return True


_PLACEHOLDER = re.compile(r"(?:New|Child) [Ss]ession - \d{4}-\d\d-\d\dT")
_KEPT = ("slug", "projectID", "workspaceID", "path", "agent", "permission", "summary", "metadata")
_ABORTED = "MessageAbortedError"
_GOES_ON = ("tool-calls",)
"""How a step ends that another one follows."""
ATTACHMENT_LIMIT = 64 << 20
"""Bytes of the largest output that is brought along."""


@dataclass(slots=True)
class _Made:
    """What was made of a message.

    Attributes:
        numbers: Of the records that the draft names.
        outputs: The side files that its parts name.
        exported: As ``_exported`` tells.
    """

    message: StoredMessage
    numbers: tuple[int, ...]
    draft: MessageDraft
    outputs: list[str]
    exported: str | None


class Making:
    """What was made of a session's messages and side files the last time, to make less anew."""

    def __init__(self) -> None:
        """Start with nothing made."""
        self._messages: dict[str, _Made] = {}
        self._files: dict[FileStamp, AttachmentDraft] = {}

    def messages(self, stored: StoredSession) -> list[_Made]:
        """Return what becomes of each message; where nothing of it changed, what became of it."""
        made = [self._made(stored.id, message) for message in stored.messages]
        # A pending revert marks and cuts drafts, as a summary's own is changed later.
        self._messages = {} if stored.info.get("revert") else {
            one.message.id: one for one in made if one.message.data.get("summary") is not True
        }  # fmt: skip
        return made

    def _made(self, session_id: str, message: StoredMessage) -> _Made:
        numbers = (*message.records, *(part.record for part in message.parts[:1]))
        known = self._messages.get(message.id)
        if known is not None and known.message is message and known.numbers == numbers:
            return known
        draft = message_draft(message)
        return _Made(message, numbers, draft, _outputs(draft), _exported(session_id, message))

    def file(self, path: Path) -> AttachmentDraft:
        """Return a side file, which is read again where it moved.

        Raises:
            OSError: It cannot be read.
        """
        stamp = FileStamp.now(str(path))
        known = self._files.get(stamp)
        if known is None:
            known = AttachmentDraft(path.name, "text/plain", read_regular(path))
            self._files[stamp] = known
        return known


def session_draft(
    stored: StoredSession,
    agent: str,
    origin: Origin | None,
    call: Call | None,
    making: Making | None = None,
) -> SessionDraft:
    """Return the draft of a session.

    Args:
        stored: The session.
        agent: The program that wrote it.
        origin: What its copies were copied from, where that is known.
        call: The parent's call that started it, for a subagent.
        making: What was made of it the last time.
    """
    making = making or Making()
    info, times = stored.info, mapping(stored.info.get("time"))
    made = making.messages(stored)
    drafts = [one.draft for one in made]
    mark_compactions(stored.messages, drafts)
    draft = SessionDraft(
        stored.id, stored.path, agent,
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
    _link(draft, stored, made, origin, call)
    draft.messages = hide_reverted(stored, drafts)
    _say_what_it_does(draft, stored)
    draft.attachments = _attachments(stored, made, making)
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
    made: list[_Made],
    origin: Origin | None,
    call: Call | None,
) -> None:
    parent = string(stored.info.get("parentID"))
    exported = {one.message.id: one.exported for one in made if one.exported}
    if parent is not None:
        draft.lineage = LineageDraft("subagent", parent)
        if call is not None:
            draft.lineage.parent_message_source_id, draft.lineage.tool_call_id = call
    elif origin is not None and not exported:
        last = origin.originals[copies_of(stored)[-1].id]
        draft.lineage = LineageDraft("fork", origin.parent, last)
        exported = origin.originals
    for one in made:
        one.draft.inherited_from = exported.get(one.draft.source_id)


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


def _outputs(draft: MessageDraft) -> list[str]:
    """Return the names of the files that hold whole outputs of a message's calls."""
    names = []
    for part in draft.parts:
        extras = mapping(part.data.get("resultProviderMetadata"))
        name = string(mapping(extras.get("backscroll")).get("attachment"))
        if name is not None and name.startswith("tool_"):
            names.append(name)
    return names


def _attachments(
    stored: StoredSession, made: list[_Made], making: Making
) -> list[AttachmentDraft]:
    """Return the whole outputs that the program put into files of their own."""
    if stored.side_folder is None:
        return []
    found: dict[str, AttachmentDraft] = {}
    for name in (name for one in made for name in one.outputs):
        path = Path(stored.side_folder) / name
        try:
            if name not in found and path.is_file() and path.stat().st_size <= ATTACHMENT_LIMIT:
                found[name] = making.file(path)
        except OSError as error:
            stored.complain(f"{path}: {error.strerror or error}")
    return list(found.values())
