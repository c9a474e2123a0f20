"""Looks up what a session has to do with others of the same store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from store.sources.base.values import mapping, ms_or_0, number, string
from store.sources.opencode.first_form import is_first_form, later_form
from store.sources.opencode.folders import Folders
from store.sources.opencode.forks import Candidate
from store.sources.opencode.stored import StoredSession, parsed
from store.system.paths import read_regular


class Call(NamedTuple):
    """A call that started a session: the id of its message, and its own."""

    message: str
    id: str


def candidates_in_database(
    connection: sqlite3.Connection, at: int, own_id: str
) -> Iterator[Candidate]:
    """Yield the sessions that have a message of a time; found by the index of each session.

    Args:
        connection: The database, open for reading.
        at: The message's time, epoch ms.
        own_id: The session to leave out.
    """
    rows = connection.execute(
        "SELECT id, time_created FROM session s WHERE id <> ? AND EXISTS ("
        "SELECT 1 FROM message m WHERE m.session_id = s.id AND m.time_created = ?)",
        (own_id, at),
    ).fetchall()
    for session_id, created in rows:
        signs = connection.execute(
            "SELECT id, time_created, CASE WHEN json_valid(data)"
            " THEN json_extract(data, '$.role') END FROM message"
            " WHERE session_id = ? AND time_created <= ? ORDER BY time_created, id",
            (session_id, at),
        ).fetchall()
        yield Candidate(
            session_id, number(created), [(name, when, str(role)) for name, when, role in signs]
        )


def call_in_database(connection: sqlite3.Connection, stored: StoredSession) -> Call | None:
    """Return the call of the parent that started a subagent's session."""
    parent = string(stored.info.get("parentID"))
    if parent is None:
        return None
    rows = connection.execute(
        "SELECT message_id, data FROM part WHERE session_id = ? AND instr(data, ?)",
        (parent, stored.id),
    )
    return next(
        (Call(str(name), call) for name, text in rows if (call := _call(text, stored.id))), None
    )


def _call(text: Any, child: str) -> str | None:
    try:
        data = parsed(text)
    except (ValueError, TypeError):
        return None
    state = mapping(mapping(data).get("state"))
    started = mapping(state.get("metadata")).get("sessionId") == child
    return string(data.get("callID")) if started else None


def candidates_in_json_store(folders: Folders, at: int, own_id: str) -> Iterator[Candidate]:
    """Yield the sessions of a JSON store that have a message of a time.

    Ids carry their time, but a copy's id is of the time of copying: files are looked into.

    Args:
        folders: The store's folders.
        at: The message's time, epoch ms.
        own_id: The session to leave out.
    """
    for path in folders.session_files():
        if path.stem == own_id:
            continue
        signs = sorted(_signs(folders.messages(path.stem)), key=lambda sign: (sign[1], sign[0]))
        if any(sign[1] == at for sign in signs):
            yield Candidate(path.stem, _created(path), signs)


def _signs(folder: Path) -> Iterator[tuple[str, int, str]]:
    for path in _documents(folder):
        data = _load(path)
        if is_first_form(data):
            data, _ = later_form(data)
        when = ms_or_0(mapping(data.get("time")).get("created"))
        yield path.stem, when, str(data.get("role"))


def _created(path: Path) -> int:
    return ms_or_0(mapping(_load(path).get("time")).get("created"))


def _documents(folder: Path) -> list[Path]:
    """Return the documents of a folder; one that cannot be read is reported by the listing."""
    try:
        return sorted(folder.glob("*.json"))
    except OSError:
        return []


def _load(path: Path) -> dict[str, Any]:
    try:
        return mapping(parsed(read_regular(path)))
    except (OSError, ValueError):
        return {}


def call_in_json_store(folders: Folders, stored: StoredSession) -> Call | None:
    """Return the call of the parent that started a subagent's session."""
    parent = string(stored.info.get("parentID"))
    if parent is None:
        return None
    for message in _documents(folders.messages(parent)):
        for path in _documents(folders.parts(parent, message.stem)):
            try:
                text = read_regular(path)
            except OSError:
                continue
            if stored.id.encode() in text and (call := _call(text, stored.id)):
                return Call(message.stem, call)
    return None
