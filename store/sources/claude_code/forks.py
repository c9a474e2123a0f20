"""Lineage of a session: forks, ``/branch``, and old resumes that went on in a new file.

Source of the marks: the Claude Code format page, section 4. ``requestSessionId`` on an
assistant row names the session whose process asked for it, ``forkedFrom`` the session
and row that any row was copied from; an old resume copied the rows under new uuids and
kept the API message ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from store.sources.base.drafts import LineageDraft, LineageKind, MessageDraft
from store.sources.claude_code.messages import Thread
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.rows import Row, mapping, string
from store.sources.claude_code.tree import is_queued_prompt
from store.sources.claude_code.usage import is_zeroed, larger


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


def find_origin(
    rows: Sequence[Row], session_id: str, neighbours: Neighbours, *, search: bool = True
) -> Origin | None:
    """Return where the session comes from; None for one that began by itself.

    Args:
        rows: The session's rows.
        session_id: The session's id.
        neighbours: The other files of its folder.
        search: Whether to search those files where no row says it.
    """
    parent, end, every_row_marked = None, 0, False
    sessions: dict[str, str] = {}
    for row in rows:
        marked = marked_origin(row, session_id)
        if marked:
            parent, end = marked, row.number + 1
            sessions[row.message_id] = marked
            every_row_marked = "forkedFrom" in row.data
    if parent is not None:
        if not every_row_marked:
            end = _end_of_copy(rows, end, neighbours.uuids_in(parent))
        return Origin(parent, "fork", end, sessions)
    if not search:
        return None
    unmarked = neighbours.forked_from(rows, session_id)
    if unmarked is not None:
        originals = neighbours.uuids_in(unmarked)
        end = max((row.number + 1 for row in rows if row.uuid in originals), default=0)
        return Origin(unmarked, "fork", end, {})
    found = neighbours.resumed_from(rows, session_id)
    if found is None:
        return None
    return Origin(found[0], "continuation", found[1], {})


def marked_origin(row: Row, session_id: str) -> str | None:
    """Return the session that a row says it was copied from."""
    data = row.data
    if "forkedFrom" in data:
        origin = string(mapping(data["forkedFrom"]).get("sessionId"))
    elif row.type == "assistant":
        origin = string(data.get("requestSessionId"))
    else:
        return None
    return origin if origin != session_id else None


def _end_of_copy(rows: Sequence[Row], end: int, originals: frozenset[str]) -> int:
    """Go on past the last marked row, for only answers are marked, not what followed them.

    Copies keep their uuids, so the parent's file tells where they end; where it is gone,
    they are taken to end at the first prompt or command that was typed after the mark.
    """
    for row in rows:
        if row.number < end:
            continue
        if row.uuid not in originals if originals else _begins_own(row):
            break
        end = row.number + 1
    return end


def _begins_own(row: Row) -> bool:
    if row.type == "user":
        typed = not row.data.get("isMeta") and not row.has_result
        return typed and "interruptedMessageId" not in row.data
    return row.type == "assistant" or is_queued_prompt(row) or _is_command(row)


def _is_command(row: Row) -> bool:
    return row.type == "system" and row.data.get("subtype") == "local_command"


def mark_inherited(
    thread: Thread, rows: Sequence[Row], origin: Origin, neighbours: Neighbours
) -> LineageDraft:
    """Mark the copied messages and return the session's lineage.

    Args:
        thread: The session's messages.
        rows: Its rows.
        origin: Where it comes from.
        neighbours: The other files of its folder.
    """
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
