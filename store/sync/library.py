"""Access to stored sessions for sources, which look up earlier records and facts."""

from __future__ import annotations

from collections.abc import Sequence

from store.conversation.gone_marks import PARTIAL
from store.engine.database import Database
from store.ids import derived_session_id
from store.queries.originals import records_of_session
from store.sources.base.protocol import Fact, KnownMessage, KnownPrompt, LibraryUser, Source
from store.sync.jsontext import clean


class StoredLibrary:
    """Implements ``store.sources.base.protocol.Library``."""

    def __init__(self, database: Database, kind: str, keeps_deleted: bool = True) -> None:
        """Make a view of one source's data in a store.

        Args:
            database: Must stay open while this is used.
            kind: The source's kind.
            keeps_deleted: Whether it keeps what the source no longer has.
        """
        self._database, self._kind, self.keeps_deleted = database, kind, keeps_deleted

    def records(self, session: str) -> Sequence[bytes]:
        """Return the original records of a session (by its id at the source) in order."""
        session_id = derived_session_id(self._kind, session)
        return list(records_of_session(self._database, session_id))

    def messages(self, session: str) -> Sequence[KnownMessage]:
        """Return the messages of a session (by its id at the source) in order."""
        rows = self._database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'), coalesce(json_extract("
            "metadata_json, '$.backscroll.true_created_at'), created_at), role "
            "FROM chat_messages WHERE session_id = ? ORDER BY created_at, id",
            (derived_session_id(self._kind, session),),
        )
        return [KnownMessage(str(name), at, role) for name, at, role in rows]

    def facts(self, name: str) -> Sequence[Fact]:
        """Return the facts with a name, including those of units whose files are gone."""
        # SQLite would take the primary key, and look at all facts of the kind.
        rows = self._database.connection.execute(
            "SELECT name, session, value FROM unit_facts INDEXED BY unit_facts_name "
            "WHERE kind = ? AND name = ?",
            (self._kind, clean(name)),
        )
        return [Fact(*row) for row in sorted(set(rows))]

    def prompts(self, workspace: str | None, since: int, until: int) -> Sequence[KnownPrompt]:
        """Return what persons said in sessions that are more than a log of prompts.

        Args:
            workspace: The sessions' workspace; None for any.
            since: Epoch ms of the first prompt that is of interest.
            until: Epoch ms of the last one.
        """
        rows = self._database.connection.execute(
            "SELECT m.created_at, json_extract(p.data_json, '$.text') FROM chat_sessions s "
            "JOIN chat_messages m ON m.session_id = s.id JOIN chat_parts p ON p.message_id = m.id "
            "WHERE (?1 IS NULL OR s.workspace_root = ?1) AND s.updated_at >= ?2 "
            "AND s.created_at <= ?3 AND json_extract(s.metadata_json, '$.source.kind') = ?4 "
            f"AND json_extract(s.metadata_json, '$.source.{PARTIAL}') IS NULL "
            "AND m.role = 'user' AND m.created_at BETWEEN ?2 AND ?3 AND p.type = 'text' "
            "ORDER BY m.created_at, m.id",
            (None if workspace is None else clean(workspace), since, until, self._kind),
        )
        return [KnownPrompt(at, text) for at, text in rows if isinstance(text, str)]

    def forgot_since(self, at: int) -> bool:
        """Return whether a person had a session forgotten at a time (epoch ms) or later."""
        found = self._database.connection.execute(
            "SELECT 1 FROM forgotten_sessions WHERE forgotten_at >= ? LIMIT 1", (at,)
        ).fetchone()
        return found is not None


def connect_library(source: Source, database: Database, keeps_deleted: bool = True) -> None:
    """Give a source access to the stored sessions, if it uses them.

    Args:
        source: The source.
        database: The library.
        keeps_deleted: Whether it keeps what the source no longer has.
    """
    if isinstance(source, LibraryUser):
        source.use_library(StoredLibrary(database, source.kind, keeps_deleted))
