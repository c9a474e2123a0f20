"""What a user has set on a session: title, star, tags, labels."""

from __future__ import annotations

from store.engine.values import decoded, text
from store.text.stored_json import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from store.engine.database import Database


def is_starred(metadata: Mapping[str, Any]) -> bool:
    """Return whether a session has a star: as the user said, else as its agent has it."""
    said = as_dict(metadata.get("user")).get("star")
    given = as_dict(metadata.get("backscroll")).get("is_starred")
    return (said if isinstance(said, bool) else given) is True


def starred_by_source(db: Database, session_id: str) -> tuple[bool, bool]:
    """Return whether a session has a star, and whether its agent gave it one."""
    row = db.connection.execute(
        "SELECT metadata_json FROM chat_sessions WHERE id = $1", {"1": session_id}).fetchone()
    metadata = decoded(text(row[0])) if row else {}
    return is_starred(metadata), is_starred({"backscroll": metadata.get("backscroll")})


def user_marks(db: Database, session_id: str) -> dict[str, Any]:
    """Return ``metadata_json.user`` of a session: title, star, tags, labels; each may be absent."""
    row = db.connection.execute(
        f"SELECT {db.sql.json_at('metadata_json', 'user')} FROM chat_sessions WHERE id = $1",
        {"1": session_id},
    ).fetchone()
    return decoded(row[0]) if row else {}
