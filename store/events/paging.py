"""Reads the events of a store page by page, for programs that follow them."""

from __future__ import annotations

from store.engine.database import Database
from store.errors import NotFound
from store.events.log import require_events
from store.events.reading import Event, events_of, events_of_all, has_events_of, newest_event
from store.queries.sessions import resolve

MOST_EVENTS = 200
MOST_CHARACTERS = 4_000_000
"""Of a page; its last event may go beyond that."""


def session_with_events(db: Database, name: str) -> str:
    """Return the id of a session, also of one that is no longer there but has events.

    Args:
        db: The store.
        name: Its id, or what ``resolve`` takes.

    Raises:
        NotFound: There is none.
    """
    try:
        return resolve(db, name).id
    except NotFound:
        if not has_events_of(db, name):
            raise
        return name


def page_of(db: Database, name: str | None, after: int) -> list[Event]:
    """Return the next events of a session, or of all; none at the end.

    Args:
        db: The store.
        name: The session; None for all.
        after: The ``seq`` of the last event that is known, of all sessions its ``id``.

    Raises:
        NotFound: The store has no such session.
        Refused: It has no event log.
    """
    require_events(db)
    session = None if name is None else session_with_events(db, name)
    # Another file may be in the store's place, such as a backup.
    after = min(after, newest_event(db, session))
    found, size = [], 0
    for event in events_of_all(db, after) if session is None else events_of(db, session, after):
        found.append(event)
        size += sum(len(value) for value in event.payload.values() if isinstance(value, str))
        if len(found) == MOST_EVENTS or size > MOST_CHARACTERS:
            break
    return found
