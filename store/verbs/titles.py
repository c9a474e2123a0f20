"""What a branch is called: its parent's title, numbered once."""

from __future__ import annotations

import re
from collections.abc import Collection

from store.engine.database import Database

_NUMBERED = re.compile(r"^(?P<base>.*\S) \((?P<number>\d{1,6})\)$", re.DOTALL)
UNTITLED = "Untitled"


def base_title(title: str) -> str:
    """Return a title without the number of a fork: ``Fix (2)`` gives ``Fix``."""
    match = _NUMBERED.match(title)
    return match["base"] if match and int(match["number"]) >= 2 else title


def fork_title(db: Database, session_id: str) -> str:
    """Return the title of a new fork: the base title with the next free number from 2 on.

    Numbers are looked for in the whole family, so that no two branches share a name.
    """
    titles = _family(db, session_id)
    return _numbered(base_title(titles[session_id]), set(titles.values()))


def continued_title(
    db: Database, session_id: str, parent_id: str, title: str, before: str | None
) -> str:
    """Return the title of a session that an agent made by going on in an exported one.

    The file that was exported had its session's title, so what follows is called the same;
    it gets the next free number of the family, as any other branch does.

    Args:
        db: The store.
        session_id: The session that the agent made.
        parent_id: The session that was exported.
        title: What the agent calls it.
        before: The title that it was given the last time; kept while it still fits.
    """
    titles = _family(db, parent_id)
    titles.pop(session_id, None)
    taken = set(titles.values())
    if title not in taken:
        return title
    base = base_title(title)
    if before is not None and before not in taken and base_title(before) == base:
        return before
    return _numbered(base, taken)


def _family(db: Database, session_id: str) -> dict[str, str]:
    """Return the titles of a session's whole family, by the sessions' ids."""
    title = db.form.title("s")
    rows = db.connection.execute(
        "WITH RECURSIVE up(id, parent_id) AS ("
        " SELECT id, parent_id FROM chat_sessions WHERE id = $1"
        " UNION SELECT s.id, s.parent_id FROM chat_sessions s JOIN up ON s.id = up.parent_id),"
        " family(id) AS (SELECT id FROM up"
        " UNION SELECT s.id FROM chat_sessions s JOIN family ON s.parent_id = family.id)"
        f" SELECT s.id, {title} FROM family JOIN chat_sessions s ON s.id = family.id",
        {"1": session_id},
    ).fetchall()
    return {row[0]: row[1] or UNTITLED for row in rows}


def _numbered(base: str, taken: Collection[str]) -> str:
    number = 2
    while f"{base} ({number})" in taken:
        number += 1
    return f"{base} ({number})"
