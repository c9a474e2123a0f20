"""What is known of sessions that a user has chosen, before something is done to them."""

from __future__ import annotations

from collections.abc import Sequence

from store.engine.database import Database
from store.system.records import NamedTuple

_AT_ONCE = 500


class Chosen(NamedTuple):
    """A chosen session.

    Attributes:
        archived: Whether it is in the archive.
    """

    id: str
    title: str | None
    archived: bool


def by_rowid(db: Database, rowids: Sequence[int]) -> list[Chosen]:
    """Return the sessions with these rowids, in no order; those that are gone are left out."""
    return _chosen(db, db.sql.rowid("s"), rowids)


def by_id(db: Database, session_ids: Sequence[str]) -> list[Chosen]:
    """Return the sessions with these ids, in no order; those that are gone are left out."""
    return _chosen(db, "s.id", session_ids)


def _chosen(db: Database, column: str, values: Sequence[int] | Sequence[str]) -> list[Chosen]:
    found = []
    for start in range(0, len(values), _AT_ONCE):
        some = list(values[start : start + _AT_ONCE])
        rows = db.connection.execute(
            f"SELECT s.id, {db.form.title('s')}, s.archived_at IS NOT NULL FROM chat_sessions s"
            f" WHERE {column} IN ({','.join('?' * len(some))})",
            some,
        )
        found += [Chosen(row[0], row[1], bool(row[2])) for row in rows.fetchall()]
    return found
