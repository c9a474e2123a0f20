"""Small stores for tests, in each form, filled row by row."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from store.engine import schema
from store.engine.connection import Connection
from store.engine.database import Database, open_database
from store.queries import sessions

GRIDA = Path(__file__).parents[1] / "data" / "grida" / "sessions.db"
WRAP = 26 * 2**36
"""Epoch ms at which the stamp of the ids wrapped."""


def own(path: Path) -> Path:
    open_database(path, create=True).close()
    return path


def contract(path: Path, *, wal: bool = True) -> Path:
    """A host's file with exactly the contract's tables and indexes."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
    connection.executescript(schema.CONTRACT_TABLES + schema.CONTRACT_INDEXES)
    connection.close()
    return path


def loose(path: Path) -> Path:
    """A host's file whose columns take everything, NULL too."""
    connection = sqlite3.connect(path)
    for table, columns in schema.REQUIRED_COLUMNS.items():
        names = ", ".join(f'"{name}"' for name in columns)
        connection.execute(f"CREATE TABLE {table} ({names})")
    connection.commit()
    connection.close()
    return path


def grida(path: Path) -> Path:
    shutil.copyfile(GRIDA, path)
    return path


def _insert(connection: Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    places = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))


def add_session(connection: Connection, id: str, at: float = 0, **more: Any) -> str:
    row: dict[str, Any] = {
        "id": id, "agent": "claude", "workspace_root": "/w", "model_json": "{}",
        "metadata_json": "{}", "created_at": at, "updated_at": at,
    }  # fmt: skip
    _insert(connection, "chat_sessions", row | _encoded(more))
    return id


def add_message(
    connection: Connection, session: str, id: str, at: int, **more: Any
) -> str:
    row: dict[str, Any] = {
        "id": id, "session_id": session, "role": "user", "metadata_json": "{}",
        "created_at": at, "updated_at": at,
    }  # fmt: skip
    _insert(connection, "chat_messages", row | _encoded(more))
    return id


def add_part(
    connection: Connection, session: str, message: str, id: str, index: int, **more: Any
) -> str:
    row: dict[str, Any] = {
        "id": id, "message_id": message, "session_id": session, "index": index, "type": "text",
        "data_json": json.dumps({"type": "text", "text": id}), "created_at": 0, "updated_at": 0,
    }  # fmt: skip
    _insert(connection, "chat_parts", row | _encoded(more))
    return id


def _encoded(more: dict[str, Any]) -> dict[str, Any]:
    """``metadata={...}`` and ``data={...}`` stand for their JSON columns."""
    return {
        f"{name}_json" if isinstance(value, dict) else name: json.dumps(value)
        if isinstance(value, dict)
        else value
        for name, value in more.items()
    }


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()
    }


def ids(database: Database) -> list[str]:
    return [row.id for row in sessions.page(database, sessions.SessionFilter(archived="include"))]


def host_writes(path: Path, *names: str) -> sqlite3.Connection:
    """What a host does: it opens its file and commits sessions."""
    connection = sqlite3.connect(path)
    for at, name in enumerate(names):
        add_session(connection, name, at)
    connection.commit()
    return connection
