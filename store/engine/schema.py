"""The contract's DDL, and the migrations between versions of library files.

Source of the three tables: the contract's "The three-table schema" and "Pragmas".
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

from store.engine.side_tables import (
    DEPENDENCIES,
    LEASES,
    NEWS,
    OUTLINES,
    READING_STATES,
    SERVERS,
    SHARED,
    SIDE_TABLES,
    VERB_LOG,
)
from store.engine.transactions import is_busy, transaction

APPLICATION_ID = 0x42534352
"""``PRAGMA application_id`` of library files ("BSCR"); only they are migrated."""

CONNECTION_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA foreign_keys = ON",
)
"""Set on every connection; ``journal_mode = WAL`` is set once, when a file is created."""

CONTRACT_TABLES = """
CREATE TABLE chat_sessions (
    id                TEXT PRIMARY KEY,
    agent             TEXT NOT NULL,
    workspace_root    TEXT,
    model_json        TEXT NOT NULL,
    parent_id         TEXT,
    parent_message_id TEXT,
    permissions_json  TEXT NOT NULL DEFAULT '[]',
    metadata_json     TEXT NOT NULL DEFAULT '{}',
    prompt_tokens     INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_read        INTEGER NOT NULL DEFAULT 0,
    cache_write       INTEGER NOT NULL DEFAULT 0,
    total_tokens      INTEGER NOT NULL DEFAULT 0,
    cost_usd          REAL NOT NULL DEFAULT 0,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    archived_at       INTEGER
);
CREATE TABLE chat_messages (
    id            TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES chat_sessions(id) ON DELETE CASCADE,
    role          TEXT NOT NULL,
    metadata_json TEXT NOT NULL DEFAULT '{}',
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
);
CREATE TABLE chat_parts (
    id           TEXT PRIMARY KEY,
    message_id   TEXT NOT NULL REFERENCES chat_messages(id) ON DELETE CASCADE,
    session_id   TEXT NOT NULL,
    "index"      INTEGER NOT NULL,
    type         TEXT NOT NULL,
    data_json    TEXT NOT NULL,
    tool_call_id TEXT,
    tool_state   TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
);
"""

REQUIRED_COLUMNS: dict[str, tuple[str, ...]] = {
    "chat_sessions": (
        "id", "agent", "workspace_root", "model_json", "parent_id", "parent_message_id",
        "permissions_json", "metadata_json", "prompt_tokens", "completion_tokens",
        "reasoning_tokens", "cache_read", "cache_write", "total_tokens", "cost_usd",
        "created_at", "updated_at", "archived_at",
    ),
    "chat_messages": ("id", "session_id", "role", "metadata_json", "created_at", "updated_at"),
    "chat_parts": (
        "id", "message_id", "session_id", "index", "type", "data_json", "tool_call_id",
        "tool_state", "created_at", "updated_at",
    ),
}  # fmt: skip
"""Columns that a file must have to be read as a store; it may have more."""

CONTRACT_INDEXES = """
CREATE INDEX chat_sessions_agent_updated ON chat_sessions(agent, updated_at);
CREATE INDEX chat_sessions_workspace_updated ON chat_sessions(workspace_root, updated_at);
CREATE INDEX chat_sessions_parent ON chat_sessions(parent_id);
CREATE INDEX chat_sessions_archived ON chat_sessions(archived_at);
CREATE INDEX chat_messages_session_created ON chat_messages(session_id, created_at);
CREATE INDEX chat_parts_message_index ON chat_parts(message_id, "index");
CREATE INDEX chat_parts_session ON chat_parts(session_id);
CREATE INDEX chat_parts_tool_call ON chat_parts(tool_call_id);
"""

SOURCE_KIND = (
    "CASE WHEN json_valid(metadata_json) THEN json_extract(metadata_json, '$.source.kind') END"
)
SOURCE_ID = (
    "CASE WHEN json_valid(metadata_json) THEN json_extract(metadata_json, '$.source.id') END"
)

EXTRA_INDEXES = f"""
CREATE INDEX chat_sessions_recent ON chat_sessions(updated_at, id);
CREATE INDEX chat_sessions_shelf ON chat_sessions(archived_at, updated_at, id);
CREATE INDEX chat_sessions_agent_shelf ON chat_sessions(agent, archived_at, updated_at, id);
CREATE INDEX chat_sessions_workspace_shelf
    ON chat_sessions(workspace_root, archived_at, updated_at, id);
CREATE INDEX chat_sessions_source_shelf
    ON chat_sessions({SOURCE_KIND}, archived_at, updated_at, id);
CREATE INDEX chat_sessions_source_id ON chat_sessions({SOURCE_ID});
CREATE INDEX chat_sessions_archive ON chat_sessions(updated_at, id)
    WHERE archived_at IS NOT NULL;
CREATE INDEX chat_sessions_agent_archive ON chat_sessions(agent, updated_at, id)
    WHERE archived_at IS NOT NULL;
CREATE INDEX chat_sessions_workspace_archive ON chat_sessions(workspace_root, updated_at, id)
    WHERE archived_at IS NOT NULL;
CREATE INDEX chat_sessions_source_archive ON chat_sessions({SOURCE_KIND}, updated_at, id)
    WHERE archived_at IS NOT NULL;
CREATE INDEX chat_messages_order ON chat_messages(session_id, created_at, id);
CREATE INDEX chat_parts_live ON chat_parts(session_id, updated_at);
"""
"""Indexes of library files beside the contract's, for every list without sorting.

The ``archive`` indexes contain only archived sessions, so they cost other sessions nothing.
The expressions must be the text that ``Form.source_kind`` and ``Form.source_id`` return.
"""

ANSWER_NAME = (
    "CASE WHEN json_valid(metadata_json) THEN coalesce("
    "json_extract(metadata_json, '$.source.answer[0]'),"
    " json_extract(metadata_json, '$.inherited_from')) END"
)
ANSWERS_BY_NAME = f"""
CREATE INDEX chat_messages_answer ON chat_messages({ANSWER_NAME}) WHERE role = 'assistant';
"""
"""Index of answers by name; the expression must be the text of ``Form.answer_name``."""

HELPERS = """
CREATE INDEX session_links_helpers ON session_links(session_id) WHERE kind = 'helper';
"""
"""Index of the sessions that lists leave out (``store.queries.helpers``)."""

MIGRATIONS: tuple[str, ...] = (
    CONTRACT_TABLES + CONTRACT_INDEXES + EXTRA_INDEXES + SIDE_TABLES + VERB_LOG + ";\n",
    READING_STATES,
    DEPENDENCIES,
    ANSWERS_BY_NAME,
    HELPERS,
    OUTLINES,
    SERVERS,
    SHARED,
    LEASES,
    NEWS,
)
"""Script ``n`` migrates a library file from ``user_version`` n to n + 1."""

CURRENT_VERSION = len(MIGRATIONS)


def apply_pragmas(connection: sqlite3.Connection) -> None:
    """Set the pragmas that the contract requires on each connection."""
    for pragma in CONNECTION_PRAGMAS:
        connection.execute(pragma)


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate a library file, or an empty one, to the current version.

    Each step is one transaction, so a killed process leaves a complete version. Several
    processes may do it at once. A newer version is not changed.
    """
    _switch_to_wal(connection)
    while True:
        with transaction(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version >= CURRENT_VERSION:
                return
            for statement in statements(MIGRATIONS[version]):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {version + 1}")


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, each trigger with its whole body."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode, waiting for other processes; SQLite itself does not wait here."""
    (timeout_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    until = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
