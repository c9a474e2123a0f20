"""The token rollups of a session, recounted by the rule of the file's form.

The contract's rule: the sum of ``usage`` over the session's assistant messages. Grida's
rule (formats of its own store): those that count for the model now, which is the context
view, so a rewind or a compaction lowers them.
"""

from __future__ import annotations

from store.engine.database import Database
from store.queries.context import context_ids
from store.text.stored_json import array_of
from store.usage import COLUMNS, KEYS, bucket_sql


def _sums(db: Database) -> str:
    return ", ".join(f"coalesce(sum({bucket_sql('m', key, db.sql)}), 0)" for key in KEYS)


def count(db: Database, session_id: str) -> tuple[int, ...]:
    """Return the five rollups that the session should have now, in the order of the columns."""
    counted = "m.role = 'assistant'"
    if db.form.name != "grida":
        row = db.connection.execute(
            f"SELECT {_sums(db)} FROM chat_messages m WHERE m.session_id = $1 AND {counted}",
            {"1": session_id},
        ).fetchone()
    else:
        row = db.connection.execute(
            f"SELECT {_sums(db)} FROM {db.sql.texts('$1', 'c')} JOIN chat_messages m"
            f" ON m.id = c.value WHERE {counted}", {"1": array_of(context_ids(db, session_id))},
        ).fetchone()
    return tuple(int(value) for value in row)


def stale(db: Database) -> list[str]:
    """Return the sessions whose rollups are not the sums over their messages.

    Sessions that are listed before they were read have no messages yet, and are left out; so are
    those of a source that tells totals alone.
    """
    if db.form.name == "grida":
        stored = f"SELECT {', '.join(COLUMNS)} FROM chat_sessions WHERE id = $1"
        return [session_id for (session_id,) in db.connection.execute(
            "SELECT id FROM chat_sessions").fetchall()
            if db.connection.execute(stored, {"1": session_id}).fetchone() != count(db, session_id)]
    sums = ", ".join(
        f"coalesce(sum({bucket_sql('m', key, db.sql)}), 0) AS {name}"
        for key, name in zip(KEYS, COLUMNS, strict=True))
    differs = " OR ".join(
        f"s.{name} {db.sql.other} coalesce(c.{name}, 0)" for name in COLUMNS)
    total = " + ".join(f"s.{name}" for name in COLUMNS)
    return [row[0] for row in db.connection.execute(
        f"SELECT s.id FROM chat_sessions s LEFT JOIN (SELECT m.session_id, {sums}"
        " FROM chat_messages m WHERE m.role = 'assistant' GROUP BY m.session_id) c"
        f" ON c.session_id = s.id WHERE ({differs} OR s.total_tokens {db.sql.other} {total})"
        " AND c.session_id IS NOT NULL ORDER BY s.id")]


def write(db: Database, session_id: str) -> None:
    """Recount a session's rollups and store them, ``total_tokens`` included."""
    buckets = count(db, session_id)
    columns = ", ".join(f"{name} = ${n}" for n, name in enumerate(COLUMNS, start=2))
    db.connection.execute(
        f"UPDATE chat_sessions SET {columns}, total_tokens = $7 WHERE id = $1",
        {"1": session_id, "7": sum(buckets)}
        | {str(n): value for n, value in enumerate(buckets, start=2)},
    )
