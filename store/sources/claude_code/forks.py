"""Lineage of a session: forks, ``/branch``, and old resumes that went on in a new file.

Source of the marks: the Claude Code format page, section 4. ``requestSessionId`` on an
assistant row names the session whose process asked for it, ``forkedFrom`` the session
and row that any row was copied from; an old resume copied the rows under new uuids and
kept the API message ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from store.sources.claude_code.messages import Thread
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.rows import Row, mapping, string
from store.sources.claude_code.tree import has_result
from store.sources.claude_code.usage import is_zeroed, larger
from store.sources.drafts import LineageDraft, LineageKind, MessageDraft


@dataclass(slots=True)
class Origin:
    """Where a session's first messages come from.

    Attributes:
        end: The record number after the last inherited row.
        rows: The parent's row for an inherited one, where both uuids are known.
        sessions: The session that an inherited API message was first asked in, by its id.
    """

    parent: str
    kind: LineageKind
    end: int
    sessions: dict[str, str]


def find_origin(rows: Sequence[Row], session_id: str, neighbours: Neighbours) -> Origin | None:
    """Return where the session comes from; None for one that began by itself."""
    parent, end = None, 0
    sessions: dict[str, str] = {}
    for row in rows:
        marked = _marked(row, session_id)
        if marked:
            parent, end = marked, row.number + 1
            sessions[row.message_id] = marked
    if parent is not None:
        return Origin(parent, "fork", _end_of_copy(rows, end), sessions)
    found = neighbours.resumed_from(rows, session_id)
    if found is None:
        return None
    return Origin(found[0], "continuation", found[1], {})


def _marked(row: Row, session_id: str) -> str | None:
    """Return the session that a row says it was copied from."""
    data = row.data
    if "forkedFrom" in data:
        origin = string(mapping(data["forkedFrom"]).get("sessionId"))
    elif row.type == "assistant":
        origin = string(data.get("requestSessionId"))
    else:
        return None
    return origin if origin != session_id else None


def _end_of_copy(rows: Sequence[Row], end: int) -> int:
    """Go on past the last marked row to the first prompt that was typed after it."""
    for row in rows:
        if row.number < end:
            continue
        typed = row.type == "user" and not row.data.get("isMeta") and not has_result(row)
        if row.type == "assistant" or (typed and "interruptedMessageId" not in row.data):
            break
        end = row.number + 1
    return end


def mark_inherited(
    thread: Thread, rows: Sequence[Row], origin: Origin, neighbours: Neighbours
) -> LineageDraft:
    """Mark the copied messages and return the session's lineage."""
    found: dict[str, MessageDraft] = {}
    for row in rows:
        if row.number >= origin.end:
            break
        message = thread.owner.get(row.uuid)
        if message is not None:
            message.inherited_from = message.source_id
            found[message.source_id] = message
    copied = list(found.values())
    if origin.kind == "continuation":
        neighbours.match_copies(origin.parent, copied)
    else:
        _restore_usage(copied, origin, neighbours)
    last = next((message.inherited_from for message in reversed(copied)), None)
    return LineageDraft(origin.kind, origin.parent, last)


def _restore_usage(copied: list[MessageDraft], origin: Origin, neighbours: Neighbours) -> None:
    """Take the usage of copies that were zeroed from the file they came from."""
    for message in copied:
        usage = message.metadata.get("usage")
        if is_zeroed(usage):
            session = origin.sessions.get(message.source_id, origin.parent)
            found = neighbours.usage_in(session, message.source_id)
            message.metadata["usage"] = larger(usage, found)
