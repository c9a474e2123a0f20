"""What a user has set on a session: title, star, tags, labels."""

from __future__ import annotations

from typing import Any

from store.engine.database import Database
from store.engine.values import decoded


def user_marks(db: Database, session_id: str) -> dict[str, Any]:
    """Return ``metadata_json.user`` of a session: title, star, tags, labels; each may be absent."""
    row = db.connection.execute(
        "SELECT metadata_json -> '$.user' FROM chat_sessions"
        " WHERE id = $1 AND json_valid(metadata_json)",
        {"1": session_id},
    ).fetchone()
    return decoded(row[0]) if row else {}
