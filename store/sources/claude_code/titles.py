"""A session's title by its precedence, and where it came from.

Source: the Claude Code format page, section 4 ("Titles").
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from store.sources.claude_code.messages import Thread
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.origins import own_words
from store.sources.claude_code.rows import Row, mapping, string
from store.sources.claude_code.transcript import Transcript
from store.sources.drafts import MessageDraft
from store.sources.titles import shortened

_MARK = re.compile(r"</?[a-z][a-z_-]*(?: [^<>]*)?>")


def title_of(
    transcript: Transcript,
    rows: Sequence[Row],
    thread: Thread,
    side_title: str | None,
    neighbours: Neighbours,
    session_id: str,
) -> tuple[str | None, str | None]:
    """Return the title and its origin.

    Args:
        transcript: The session's file.
        rows: Its main rows.
        thread: Their messages.
        side_title: What ``custom-title.json`` says.
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
    return first_prompt(thread.messages), "first-prompt"


def _own_summary(transcript: Transcript, rows: Sequence[Row]) -> str | None:
    if not transcript.summaries:
        return None
    uuids = {row.uuid for row in rows}
    return next(
        (summary for leaf, summary in reversed(transcript.summaries) if leaf in uuids), None
    )


def first_prompt(messages: Sequence[MessageDraft]) -> str | None:
    """Return the first prompt that was not rewound, else the first command or shell line.

    Where nobody typed anything, it is what another agent sent first.
    """
    typed = told = None
    for message in messages:
        origin = message.metadata.get("origin")
        if message.role != "user" or "hidden_at" in message.metadata:
            continue
        if origin == "human":
            text = own_words(_text(message))
            if text.strip():
                return shortened(text)
        elif typed is None and origin in ("command", "shell"):
            typed = _typed(message)
        elif told is None and origin == "notification":
            told = shortened(_MARK.sub(" ", _text(message))) or None
    return typed or told


def _text(message: MessageDraft) -> str:
    return " ".join(part.data["text"] for part in message.parts if part.type == "text")


def _typed(message: MessageDraft) -> str | None:
    extra = mapping(message.metadata.get("backscroll"))
    if "shell" in extra:
        return shortened("! " + str(extra["shell"]))
    command = mapping(extra.get("command"))
    name = string(command.get("name"))
    return shortened(f"{name} {command.get('args') or ''}") if name else None
