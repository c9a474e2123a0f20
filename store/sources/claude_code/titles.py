"""A session's title by its precedence, and where it came from.

Source: the Claude Code format page, section 4 ("Titles").
"""

from __future__ import annotations

from collections.abc import Sequence

from store.sources.base.drafts import MessageDraft
from store.sources.base.titles import first_prompt
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.rows import Row, string
from store.sources.claude_code.transcript import Transcript


def title_of(
    transcript: Transcript,
    rows: Sequence[Row],
    messages: Sequence[MessageDraft],
    side_title: str | None,
    neighbours: Neighbours,
    session_id: str,
) -> tuple[str | None, str | None]:
    """Return the title and its origin.

    Args:
        transcript: The session's file.
        rows: Its main rows.
        messages: Its messages.
        side_title: What ``custom-title.json`` says; None where there is none.
        neighbours: The other files of the folder, for summaries of this session.
        session_id: The session's id.

    Returns:
        The title and ``custom-title``, ``ai-title``, ``summary`` or ``first-prompt``.
    """
    custom = string(transcript.notes.get("custom-title", {}).get("customTitle")) or side_title
    if custom:
        return custom, "custom-title"
    written = string(transcript.notes.get("ai-title", {}).get("aiTitle"))
    if written:
        return written, "ai-title"
    summary = _own_summary(transcript, rows) or neighbours.titles_for(rows, session_id)
    if summary:
        return summary, "summary"
    return first_prompt(messages), "first-prompt"


def is_name_taken_back(transcript: Transcript, side_title: str | None) -> bool:
    """Return whether a session has no name of its user's because that was taken back.

    A name whose file is gone is none that was taken back.
    """
    note = transcript.notes.get("custom-title")
    noted = note is not None and not string(note.get("customTitle"))
    return not side_title and (noted or side_title is not None)


def _own_summary(transcript: Transcript, rows: Sequence[Row]) -> str | None:
    if not transcript.summaries:
        return None
    uuids = {row.uuid for row in rows}
    return next(
        (summary for leaf, summary in reversed(transcript.summaries) if leaf in uuids), None
    )
