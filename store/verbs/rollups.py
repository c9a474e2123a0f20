"""The token rollups of a session, recounted by the rule of the file's form.

The contract's rule: the sum of ``usage`` over the session's assistant messages. Grida's
rule (formats of its own store): those that count for the model now, which is the context
view, so a rewind or a compaction lowers them.
"""

from __future__ import annotations

from store.engine.database import Database
from store.queries.context import context_ids
from store.usage import COLUMNS, KEYS, bucket_sql


def _sums() -> str:
    return ", ".join(f"coalesce(sum({bucket_sql('m', key)}), 0)" for key in KEYS)


def count(db: Database, session_id: str) -> tuple[int, ...]:
    """Return the five rollups that the session should have now, in the order of the columns."""
    counted = "m.role = 'assistant'"
    if db.form.name != "grida":
        row = db.connection.execute(
            f"SELECT {_sums()} FROM chat_messages m WHERE m.session_id = $1 AND {counted}",
            {"1": session_id},
        ).fetchone()
    else:
        db.connection.execute("CREATE TEMP TABLE IF NOT EXISTS counted_messages(id TEXT)")
        db.connection.execute("DELETE FROM temp.counted_messages")
        db.connection.executemany(
            "INSERT INTO temp.counted_messages VALUES (?)",
            [(message_id,) for message_id in context_ids(db, session_id)],
        )
        row = db.connection.execute(
            f"SELECT {_sums()} FROM temp.counted_messages c JOIN chat_messages m ON m.id = c.id"
            f" WHERE {counted}"
        ).fetchone()
    return tuple(int(value) for value in row)


def write(db: Database, session_id: str) -> None:
    """Recount a session's rollups and store them, ``total_tokens`` included."""
    buckets = count(db, session_id)
    columns = ", ".join(f"{name} = ${n}" for n, name in enumerate(COLUMNS, start=2))
    db.connection.execute(
        f"UPDATE chat_sessions SET {columns}, total_tokens = $7 WHERE id = $1",
        {"1": session_id, "7": sum(buckets)}
        | {str(n): value for n, value in enumerate(buckets, start=2)},
    )
