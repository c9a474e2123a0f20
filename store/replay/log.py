"""Takes from a library's event log when parts changed, and what they were then."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.events.log import has_events
from store.events.reading import changes_of, events_of_part
from store.replay.versions import with_text
from store.rows import PartRow

MOST_BYTES = 2_000_000
"""Of JSON that the versions of one part hold, beside those that begin its text."""
AS_IT_HAPPENED_MS = 60_000
"""An event that was written so much later repeats the times of a row, as an import does."""


class Change(NamedTuple):
    """A part was written.

    Attributes:
        position: The part's ``"index"``.
        at: When, epoch ms.
        seq: The number of the event.
        is_own: Whether it was written as it happened.
    """

    message_id: str
    position: int
    at: int
    seq: int
    is_own: bool


class Hiding(NamedTuple):
    """A message was written, hidden or not.

    Attributes:
        hidden_at: When a rewind hid it, epoch ms; 0 where it is visible.
        at: When that was written.
    """

    message_id: str
    hidden_at: int
    at: int


def hidings(db: Database, session_id: str) -> list[Hiding]:
    """Return from the log whether messages were hidden, in order; of those that ever were.

    Args:
        db: The store; one without a log has none.
        session_id: The session.
    """
    if not has_events(db):
        return []
    hidden = "json_extract(CASE WHEN json_valid(e.metadata_json) THEN e.metadata_json END," \
        " '$.hidden_at')"
    rows = db.connection.execute(
        f"SELECT e.message_id, {hidden}, e.at FROM events e WHERE e.stream_id = $1"
        " AND e.part_id IS NULL AND e.message_id IS NOT NULL AND e.metadata_json IS NOT NULL"
        " ORDER BY e.seq", {"1": session_id},
    ).fetchall()
    ever = {row[0] for row in rows if number(row[1])}
    return [Hiding(text(message) or "", number(hidden_at), number(at))
            for message, hidden_at, at in rows if message in ever]


def changes_page(
    db: Database, session_id: str, after: int, limit: int
) -> tuple[list[Change], int | None]:
    """Return changes of a session's parts, and the event to go on after; None at the end.

    Args:
        db: The store; one without a log has none.
        session_id: The session.
        after: The number of the last event that is known, 0 for none.
        limit: Of events at most.
    """
    events = list(islice(changes_of(db, session_id, after), limit))
    found = [
        Change(event.message_id, event.part_index, event.at, event.seq,
               event.logged_at - event.at < AS_IT_HAPPENED_MS)
        for event in events
        if event.message_id is not None and event.part_index is not None and event.at > 0
        and event.kind in ("part.created", "part.updated")
    ]  # fmt: skip
    return found, events[-1].seq if events else None


class PartVersions:
    """What a part was, event by event; a text that became longer is kept as its length."""

    def __init__(self, row: PartRow) -> None:
        """Take the part as it became."""
        self._row = row
        self._whole = decoded(row.data_json).get("text")
        self._times = array("q")
        self._data: list[str | int] = []
        self._states: list[str | None] = []
        self._left = MOST_BYTES

    def add(self, at: int, data_json: str, state: str | None) -> None:
        """Add the next version; times never go back.

        Args:
            at: When it was written, epoch ms.
            data_json: What was written.
            state: The state of a call.
        """
        words = decoded(data_json).get("text") if self._whole is not None else None
        data: str | int = data_json
        if isinstance(words, str) and str(self._whole).startswith(words):
            data = len(words)
        else:
            self._left -= len(data_json)
            if self._left < 0:
                return
        self._times.append(max(at, self._times[-1]) if self._times else at)
        self._data.append(data)
        self._states.append(state)

    def at(self, moment: int) -> PartRow:
        """Return the part as it was at a moment; before its first version, that one."""
        if not self._times:
            return self._row
        place = max(0, bisect_right(self._times, moment) - 1)
        data, written = self._data[place], self._times[place]
        if isinstance(data, int):
            return with_text(self._row, data, written)
        return replace(self._row, data_json=data, tool_state=self._states[place],
                       updated_at=written)


def versions_of(db: Database, row: PartRow, first: int, last: int) -> PartVersions:
    """Return what a part was between two events of its session.

    Args:
        db: The library.
        row: The part as it is now.
        first: The number of the first event about it.
        last: The number of the last one.
    """
    found, state = PartVersions(row), None
    for event in events_of_part(db, row.session_id, row.id, first - 1, last):
        if "tool_state" in event.payload:
            state = event.payload["tool_state"]
        data = event.payload.get("data_json")
        if isinstance(data, str):
            found.add(event.at, data, state if isinstance(state, str) else None)
    return found
