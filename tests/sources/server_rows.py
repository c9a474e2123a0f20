"""What the tests of sources on servers share."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from store.engine.database import Database, open_database
from store.engine.server_url import Root, ServerUrl, server_url
from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import Problem, Source
from store.sync import roots
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target

TABLES = ("chat_sessions", "chat_messages", "chat_parts")


def url_of(name: str) -> ServerUrl:
    url = server_url(name)
    assert url is not None
    return url


def drafts_of(source: Source, root: Root) -> tuple[dict[str, SessionDraft], list[Problem]]:
    problems: list[Problem] = []
    drafts: dict[str, SessionDraft] = {}
    for unit in roots.units_of(source, root, problems):
        reading = roots.read(source, root, unit)
        problems += reading.problems
        drafts |= {draft.source_id: draft for draft in reading.sessions}
    return drafts, problems


def synced(source: Source, root: Root, store: Path) -> Sync:
    """Sync a root into a store, made where it is missing."""
    database = open_database(store, create=True)
    sync = Sync(database, Settings(helpers=0))
    sync.run([Target(source, root)])
    return sync


def contents(database: Database) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the three tables, JSON decoded, without the path of the source."""
    found = {}
    for table in TABLES:
        cursor = database.file.cursor()
        cursor.row_factory = sqlite3.Row
        rows = [dict(row) for row in cursor.execute(f"SELECT * FROM {table} ORDER BY id")]
        for row in rows:
            for name in [name for name in row if name.endswith("_json") and row[name]]:
                row[name] = json.loads(row[name])
            row.get("metadata_json", {}).get("source", {}).pop("path", None)
        found[table] = rows
    return found
