"""``session-store.db``: the program's own index of its sessions.

It keeps the words and the counts of sessions whose folder is gone; where the folder is
there it says nothing that the folder does not.

Source: the Copilot section of the format page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any

import orjson

from store.engine.access import open_for_reading, read_header
from store.errors import StoreError
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.plain_parts import text_part
from store.sources.base.protocol import Problem
from store.sources.base.titles import shortened
from store.sources.base.values import epoch_ms, number, string
from store.sources.copilot.session import KIND
from store.sources.copilot.usage import buckets
from store.system.paths import real_path

NAME = "session-store.db"
_TABLES = {"sessions", "turns"}
Row = dict[str, Any]


def is_index(path: Path) -> bool:
    """Return whether a file is the program's index."""
    if path.suffix != ".db":
        return False
    try:
        opened = open_for_reading(real_path(path), read_header(path), ours=False, prepare=_check)
    except (StoreError, sqlite3.Error, OSError):
        return False
    try:
        return {*_TABLES, "assistant_usage_events"} <= _tables(opened.connection)
    finally:
        opened.close()


def _check(connection: sqlite3.Connection) -> None:
    _tables(connection)


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {str(row[0]) for row in rows}


def indexed_drafts(
    path: Path, elsewhere: Collection[str], problems: list[Problem]
) -> list[SessionDraft]:
    """Return the sessions that only the index knows.

    Args:
        path: The database.
        elsewhere: Ids of the sessions that are read from their folders.
        problems: Takes why it cannot be read.
    """
    try:
        opened = open_for_reading(real_path(path), read_header(path), ours=False, prepare=_check)
    except (StoreError, sqlite3.Error, OSError) as error:
        problems.append(Problem(str(path), 0, str(error)))
        return []
    try:
        return [
            _draft(opened.connection, str(path), row)
            for row in _rows(opened.connection, "SELECT * FROM sessions ORDER BY id")
            if string(row.get("id")) and row["id"] not in elsewhere
        ]
    except sqlite3.Error as error:
        problems.append(Problem(str(path), 0, str(error)))
        return []
    finally:
        opened.close()


def _rows(connection: sqlite3.Connection, query: str, *values: object) -> list[Row]:
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _draft(connection: sqlite3.Connection, path: str, row: Row) -> SessionDraft:
    session_id = str(row["id"])
    draft = SessionDraft(
        session_id,
        path,
        KIND,
        created_at=epoch_ms(row.get("created_at")) or 0,
        updated_at=epoch_ms(row.get("updated_at")) or epoch_ms(row.get("created_at")) or 0,
        workspace_root=string(row.get("cwd")),
        partial=True,
    )
    summary = string(row.get("summary"))
    if summary:
        draft.title, draft.title_from = shortened(summary), "summary"
    if string(row.get("branch")):
        draft.metadata["git_branch"] = row["branch"]
    draft.metadata["backscroll"] = {"from": "index"}
    turns = _rows(
        connection, "SELECT * FROM turns WHERE session_id = ? ORDER BY turn_index", session_id
    )
    used: list[Row] = []
    if "assistant_usage_events" in _tables(connection):
        query = "SELECT * FROM assistant_usage_events WHERE session_id = ? ORDER BY id"
        used = _rows(connection, query, session_id)
    records = [row, *turns, *used]
    draft.records = [orjson.dumps(record, default=str) for record in records]
    for number_, turn in enumerate(turns, 1):
        spent = [n for n, one in enumerate(used, 1 + len(turns))
                 if one.get("turn_index") == turn.get("turn_index")]  # fmt: skip
        draft.messages += _turn(draft, turn, number_, records, spent)
    return draft


def _turn(
    draft: SessionDraft, turn: Row, record: int, records: list[Row], spent: list[int]
) -> list[MessageDraft]:
    """Return a turn's prompt, and its answer with all that its requests used."""
    at = epoch_ms(turn.get("timestamp")) or draft.created_at
    name = f"turn-{turn.get('turn_index')}"
    found = []
    if string(turn.get("user_message")):
        parts = [text_part(str(turn["user_message"]), at, record)]
        found.append(MessageDraft(f"{name}:user", "user", at, at, {"origin": "human"}, parts))
    answer = string(turn.get("assistant_response"))
    if answer or spent:
        message = MessageDraft(f"{name}:assistant", "assistant", at, at)
        message.parts = [text_part(answer, at, record)] if answer else []
        message.records = tuple(spent)
        _spend(draft, message, [records[n] for n in spent])
        found.append(message)
    return found


def _spend(draft: SessionDraft, message: MessageDraft, used: list[Row]) -> None:
    total: dict[str, int] = {}
    for row in used:
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
                 "reasoning_tokens")  # fmt: skip
        for bucket, count in buckets(*(number(row.get(name)) for name in names)).items():
            total[bucket] = total.get(bucket, 0) + count
        if string(row.get("model")):
            draft.model = {"provider_id": "github-copilot", "model_id": row["model"]}
            message.metadata["model"] = draft.model
    if total:
        message.metadata["usage"] = total


