"""What a fork is called: its parent's title, numbered once."""

from __future__ import annotations

import re

from store.database import Database

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
    titles = {row[0]: row[1] or UNTITLED for row in rows}
    base = base_title(titles[session_id])
    taken = set(titles.values())
    number = 2
    while f"{base} ({number})" in taken:
        number += 1
    return f"{base} ({number})"
