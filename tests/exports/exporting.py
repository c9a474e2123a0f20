"""What the export tests share: a session by its source id, and its text in a format."""

from __future__ import annotations

from store.engine.database import Database
from store.exports.reading import View, read_session
from store.exports.registry import writer


def session_id(db: Database, source_id: str) -> str:
    (found,) = db.connection.execute(
        "SELECT id FROM chat_sessions WHERE json_extract(metadata_json, '$.source.id') = ?",
        (source_id,),
    ).fetchone()
    return str(found)


def exported(db: Database, source_id: str, to: str, view: View = "all") -> str:
    return "".join(writer(to)(read_session(db, session_id(db, source_id), view)))
