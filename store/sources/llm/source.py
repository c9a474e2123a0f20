"""The llm source: where its log is, and how a session is listed and read.

``keys.json`` beside the log holds keys: it is never opened.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import SqliteRows, stamp_of_rows
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    SESSION_FACT,
    Problem,
    Reading,
    Unit,
)
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.values import string
from store.sources.llm.legacy import LOG_PREFIX, log_table
from store.sources.llm.nodes import time_of
from store.sources.llm.session import KIND, read_session
from store.sources.llm.threads import threads_there
from store.system.paths import expanded

_FOLDER, _FILE = "io.datasette.llm", "logs.db"
_RESPONSES = frozenset({
    "id", "model", "prompt", "response", "response_json", "conversation_id", "datetime_utc"
})  # fmt: skip
_BYTES_PER_REQUEST = 4096


class LlmSource(DatabaseSource, LibrarySource):
    """Fulfils ``Source`` and ``FollowedSource``; reads only.

    Looks into the library for threads that are gone.
    """

    kind = KIND
    label = "llm"
    tells = ("thoughts", "tokens", "files", "rewinds", "forks")
    variables = ("LLM_USER_PATH",)
    patterns = (_FILE,)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder that ``LLM_USER_PATH`` names, and the usual one."""
        named = environment.get("LLM_USER_PATH", "").strip()
        config = environment.get("XDG_CONFIG_HOME", "").strip()
        data = environment.get("APPDATA", "").strip()
        usual = expanded(config) if config else home / ".config"
        if sys.platform == "darwin":
            usual = home / "Library" / "Application Support"
        elif sys.platform == "win32" and data:
            usual = Path(data)
        folders = [*([expanded(named)] if named else []), usual / _FOLDER]
        return list(dict.fromkeys(folders))

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell llm's log by the tables of any of its versions."""
        reader = SqliteRows(connection)
        return (
            threads_there(reader) or _has_responses(reader) or log_table(reader) is not None
        )

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        reader = SqliteRows(connection)
        # An attachment that is stored again takes the place of its row, and may lose its path.
        attached: list[Row] = []
        if reader.columns("attachments"):
            attached = reader.rows("SELECT count(*) AS count, max(rowid) AS last FROM attachments")
        for name, held in sorted(_sessions(reader).items()):
            if all("thread_id" in row for row in held):
                reason = f"{held[0]['count']} turns of thread {name}, which is not there"
                problems.append(Problem(str(path), 0, reason))
                continue
            at = max((time_of(row.get("newest")) for row in held), default=0)
            count = sum(row.get("count") or 0 for row in held)
            sign = ([sorted(row.items()) for row in held], attached)
            stamp = stamp_of_rows(path, sign, at=at, size=_BYTES_PER_REQUEST * (1 + count))
            yield Unit(f"{path.name}/{name}", (stamp,), at)

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session whole; no session where it is not there any more.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id.
            unit: The unit as it was listed.
        """
        session = RowSession(session_id, str(path))
        draft = read_session(SqliteRows(connection), session, self._library)
        if draft is None:
            return Reading([], session.problems, unit.stamps)
        wants = [SESSION_FACT + draft.lineage.parent_source_id] if draft.lineage else []
        return Reading([draft], session.problems, unit.stamps, wants=wants)


def _has_responses(reader: RowReader) -> bool:
    return reader.columns("responses") >= _RESPONSES


def _sessions(reader: RowReader) -> dict[str, list[Row]]:
    """Return by session the rows that differ when it moved."""
    found: dict[str, list[Row]] = {}

    def take(name: Any, row: Row) -> None:
        if string(name) is not None:
            found.setdefault(str(name), []).append(row)

    if threads_there(reader):
        for row in reader.rows("SELECT *, datetime_utc AS newest FROM threads"):
            take(row["id"], row)
        for row in reader.rows(
            "SELECT thread_id, count(*) AS count, max(rowid) AS last,"
            " max(datetime_utc) AS newest FROM turns GROUP BY thread_id"
        ):
            take(row["thread_id"], row)
    if _has_responses(reader):
        for row in reader.rows(
            "SELECT coalesce(conversation_id, id) AS name, count(*) AS count,"
            " max(rowid) AS last, max(datetime_utc) AS newest FROM responses GROUP BY 1"
        ):
            take(row["name"], row)
        if reader.columns("conversations"):
            for row in reader.rows("SELECT * FROM conversations"):
                if row["id"] in found:
                    take(row["id"], row)
    table = log_table(reader)
    if table is not None:
        for row in reader.rows(
            "SELECT coalesce(chat_id, rowid) AS name, count(*) AS count, max(rowid) AS last,"
            f" max(timestamp) AS newest FROM {table} GROUP BY 1"
        ):
            take(f"{LOG_PREFIX}{row['name']}", row)
    return found
