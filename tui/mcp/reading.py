"""Reads what the tools answer: functions over a ``Database`` for ``Store.read``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from store.conversation.calls import Call
from store.conversation.outline_marks import NOT_READ
from store.engine.database import Database
from store.engine.values import decoded
from store.errors import Refused
from store.queries import messages
from store.queries.messages import Cursor
from store.queries.sessions import cursor_in, resolve
from store.queries.summaries import Summary, summaries_of
from store.rows import MessageRow, PartRow, is_tool_type
from store.search.text import Section, decode_part, sections, side_file_reader, tool_of
from store.sharing.masks import Masks
from tui.mcp.answers import Message, Part, Session, Transcript
from tui.words.calls import describe

LONGEST_READ = 400_000
"""Characters of each text of a part that are read at most."""


class Amount(NamedTuple):
    """How much of a session is read.

    Attributes:
        messages: At most so many messages.
        part_chars: At most so many characters of each text of a part.
        chars: At most so many characters in all; the first message is there in any case.
    """

    messages: int
    part_chars: int
    chars: int = 60_000


def session_of(summary: Summary) -> Session:
    """Return a session as it is answered."""
    metadata = summary["metadata"] if isinstance(summary["metadata"], dict) else {}
    model = summary["model"] if isinstance(summary["model"], dict) else {}
    return Session(
        id=summary["id"],
        title=summary["title"],
        agent=summary["agent"],
        model=_text(model.get("model_id")),
        workspace=summary["workspace_root"],
        branch=_text(metadata.get("git_branch")),
        created_at=iso_time(summary["created_at"]),
        updated_at=iso_time(summary["updated_at"]),
        messages=summary["message_count"],
        turns=summary["turn_count"],
        activity=str(summary["activity"]),
        parent_id=summary["parent_id"],
        archived=summary["archived_at"] is not None,
    )


def iso_time(milliseconds: int) -> str:
    """Return epoch ms as local time in ISO 8601, to the second; the number where that fails."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return moment.isoformat(timespec="seconds")


def transcript(
    db: Database,
    name: str,
    *,
    message: str | None,
    cursor: str | None,
    hidden: bool,
    amount: Amount,
    masks: Masks,
    now: int,
) -> Transcript:
    """Return some messages of a session.

    Args:
        db: The store.
        name: The session, by its id, its id at the agent, or the beginning of one.
        message: Read from this message on, the one before it too; None for the cursor's place.
        cursor: Of a transcript before; None for the first messages.
        hidden: Whether hidden and queued messages are read, too.
        amount: How much is read.
        masks: Masks what is read.
        now: The present, epoch ms.

    Raises:
        NotFound: The store has no such session or message.
        Ambiguous: The name fits several.
        Refused: The cursor is none of a transcript, or the session is not read yet.
    """
    row = resolve(db, name)
    (summary,) = summaries_of(db, [row], now=now)
    if summary["message_count"] is None:
        raise Refused(NOT_READ)
    place, backwards = (None, False) if cursor is None else _place(cursor)
    rows = _rows(db, row.id, message, place, backwards=backwards, shown_only=not hidden,
                 limit=amount.messages)  # fmt: skip
    found = list[Message]()
    left = amount.chars
    for each in rows[::-1] if backwards else rows:
        made = _message(db, each, amount.part_chars, masks)
        left -= sum(len(part.text) + len(part.output or "") for part in made.parts)
        if left < 0 and found:
            break
        found.append(made)
    if backwards:
        found.reverse()
        rows = rows[len(rows) - len(found) :]
    rows = rows[: len(found)]
    return Transcript(
        session=session_of(summary),
        messages=found,
        hidden_left_out=0 if hidden else int(summary["hidden_count"]),
        previous=_further(db, rows, "<", shown_only=not hidden),
        next=_further(db, rows, ">", shown_only=not hidden),
    )


def _rows(
    db: Database, session_id: str, message: str | None, place: Cursor | None, *,
    backwards: bool, shown_only: bool, limit: int,
) -> list[MessageRow]:  # fmt: skip
    if message is not None:
        first = messages.resolve_message(db, session_id, message)
        at = (first.created_at, first.id)
        before = messages.keys_page(db, session_id, before=at, limit=1, shown_only=shown_only)
        after = messages.keys_page(db, session_id, after=at, limit=limit, shown_only=shown_only)
        return [*before, first, *after][:limit]
    if backwards:
        return messages.keys_page(
            db, session_id, before=place, limit=limit, shown_only=shown_only)
    return messages.keys_page(db, session_id, after=place, limit=limit, shown_only=shown_only)


def _further(
    db: Database, rows: Sequence[MessageRow], direction: str, *, shown_only: bool
) -> str | None:
    """Return the cursor for what comes before or after some messages; None at an end."""
    if not rows:
        return None
    edge = rows[0] if direction == "<" else rows[-1]
    at = (edge.created_at, edge.id)
    if direction == "<":
        more = messages.keys_page(
            db, edge.session_id, before=at, limit=1, shown_only=shown_only)
    else:
        more = messages.keys_page(db, edge.session_id, after=at, limit=1, shown_only=shown_only)
    return f"{direction}{edge.created_at}:{edge.id}" if more else None


def _place(cursor: str) -> tuple[Cursor, bool]:
    try:
        if cursor[:1] not in ("<", ">"):
            raise ValueError(cursor)
        return cursor_in(cursor[1:]), cursor[0] == "<"
    except ValueError:
        raise Refused(
            f"{cursor!r} is no cursor of a transcript; leave it out to start anew") from None


def _message(db: Database, row: MessageRow, part_chars: int, masks: Masks) -> Message:
    origin = decoded(row.metadata_json).get("origin")
    parts = messages.parts_of(db, [row.id])[row.id]
    made = (_part(db, part, row.role, origin, part_chars, masks) for part in parts)
    return Message(
        id=row.id, role=row.role, time=iso_time(row.created_at),
        hidden=row.hidden_at is not None,
        parts=[part for part in made if part.text or part.output or part.tool],
    )  # fmt: skip


def _part(
    db: Database, row: PartRow, role: str, origin: object, chars: int, masks: Masks
) -> Part:
    data, found = _masked_part(db, row, role, origin, masks)
    output, output_cut = _cut(_joined(found, output=True), chars)
    if (call := _call_of(row, data)) is not None:
        given, cut = _cut(_joined(found, output=False) or call.what, chars)
        state = call.word or (call.status if call.status != "ok" else None)
        return Part(type="tool", text=given, output=output or None, tool=tool_of(data),
                    state=state, cut=cut + output_cut)  # fmt: skip
    text, cut = _cut(_joined(found, output=None), chars)
    kind = row.type if row.type in ("text", "reasoning") else "other"
    return Part.model_validate({"type": kind, "text": text, "cut": cut})


def _masked_part(
    db: Database, row: PartRow, role: str, origin: object, masks: Masks
) -> tuple[dict[str, Any], list[Section]]:
    """Return a part, decoded, and its texts, each up to its longest, with secrets masked.

    The JSON is masked before its texts are taken out: the names of its members tell passwords.
    """
    data = masks.mask_json(dict(decode_part(row.type, row.data_json)))
    found = sections(data, role, origin, side_file_reader(db, row.session_id))
    return data, [Section(each.where, masks.mask(each.text[:LONGEST_READ])) for each in found]


def _call_of(row: PartRow, data: dict[str, Any]) -> Call | None:
    """Return what a call did; None where the part is no call."""
    if not is_tool_type(row.type):
        return None
    return describe(data, times=(row.created_at, row.updated_at))


def _joined(found: Sequence[Section], *, output: bool | None) -> str:
    return "\n".join(
        section.text for section in found
        if output is None or (section.where == "output") == output
    )


def _cut(text: str, chars: int) -> tuple[str, int]:
    """Return the beginning of a text, and how many characters are left out."""
    return text[:chars], max(len(text) - chars, 0)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
