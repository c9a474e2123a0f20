"""What is at a place in a session, and whether it is still there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from store.engine.database import Database
from store.engine.values import text
from store.queries.lineage import turn_number

PlaceKey = tuple[str, str, int]
"""Session, message ("" for the session as a whole), index of the part."""
WHOLE_MESSAGE = -1
"""The index of a place that is a message; its first part with words is shown."""


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    """What is at a place.

    Attributes:
        title: Of the session.
        turn: Of the message, from 1; None where it is hidden or before the first.
        part: ``data_json`` of the part, with its type; None where only the message is left.
    """

    title: str | None
    turn: int | None
    part: tuple[str, str] | None


def place_facts(db: Database, places: Sequence[PlaceKey]) -> list[PlaceFacts | None]:
    """Return what is at some places, None for each whose session or message is gone."""
    return [_facts(db, *place) for place in places]


def _facts(db: Database, session_id: str, message_id: str, index: int) -> PlaceFacts | None:
    session = db.connection.execute(
        f"SELECT {db.form.title('s')} FROM chat_sessions s WHERE s.id = $1", {"1": session_id}
    ).fetchone()
    if session is None:
        return None
    if not message_id:
        return PlaceFacts(text(session[0]), None, None)
    message = db.connection.execute(
        "SELECT 1 FROM chat_messages WHERE id = $1 AND session_id = $2",
        {"1": message_id, "2": session_id}).fetchone()
    if message is None:
        return None
    which = '"index" = $2' if index != WHOLE_MESSAGE else "type <> 'step-start' AND $2 < 0"
    part = db.connection.execute(
        f'SELECT type, data_json FROM chat_parts WHERE message_id = $1 AND {which}'
        ' ORDER BY "index" LIMIT 1', {"1": message_id, "2": index}).fetchone()
    return PlaceFacts(
        text(session[0]), turn_number(db, session_id, message_id),
        None if part is None else (text(part[0]) or "", text(part[1]) or ""))
