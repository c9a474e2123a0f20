"""Checks whether a session was read from agents' own files on this machine.

The id, file and folder of such a session come from the user's own agents. Those of an import,
a host's store or another machine's store may be anything, so nothing is started with them
before the user has seen the command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.queries.sessions import get
from store.rows import SessionRow
from store.system.locations import cache_dir, data_dir
from store.system.paths import open_regular, real_path
from store.text.exact_json import column_value

_MOST_FORKS = 64
_LOOKED_AT = 1 << 20
"""Bytes at the start and end of an agent's file that are searched for its folder."""


def source_of(session: SessionRow) -> dict[str, str]:
    """Return the string values of a session's ``metadata_json.source``; empty without one."""
    source = metadata_of(session).get("source")
    if not isinstance(source, dict):
        return {}
    return {key: value for key, value in source.items() if isinstance(value, str)}


def metadata_of(session: SessionRow) -> dict[str, Any]:
    """Return a session's decoded metadata; empty if it is damaged."""
    metadata = column_value(session.metadata_json)
    return metadata if isinstance(metadata, dict) else {}


def doubt(
    db: Database, session: SessionRow, environment: Mapping[str, str], home: Path
) -> str | None:
    """Return why the user must confirm before a session is resumed, or None.

    Args:
        db: The session's store.
        session: The session; for a fork, the session it was forked from is checked.
        environment: The agents' own variables, which set the location of their files.
        home: The user's home folder.

    Returns:
        None for a session that sync read from an agent's files on this machine.
    """
    if db.form.name != "own":
        return "this store belongs to another program"
    read = _read_session(db, session)
    if read is None:
        return "the session was imported or recorded, not read from an agent on this machine"
    source = source_of(read)
    path = Path(source.get("path", ""))
    if not _is_in_own_folder(source.get("kind", ""), path, environment, home):
        return "the session's file is not where its agent keeps sessions on this machine"
    if _moved(session, read) or not (_is_our_store(db) or _names_folder(path, read)):
        return "the store seems to come from another machine"
    return None


def _read_session(db: Database, session: SessionRow) -> SessionRow | None:
    """Return the synced session: this one, or the origin of a fork; None for others."""
    for _ in range(_MOST_FORKS):
        rows = db.connection.execute(
            "SELECT u.session_id, u.stamp_json FROM source_units u WHERE u.session_id = $1"
            f" OR {db.sql.contains('u.stamp_json', '$1')}", {"1": session.id})
        if any(row[0] == session.id or session.id in _held_by(row[1]) for row in rows):
            return session
        parent = get(db, session.parent_id) if session.parent_id else None
        if source_of(session) or parent is None:
            return None
        session = parent
    return None


def _held_by(stamp_json: str) -> list[str]:
    """Return the ids of the sessions that a unit holds, by its stamp."""
    held = json.loads(stamp_json)[4:5]
    return held[0] if held and isinstance(held[0], list) else []


def _moved(session: SessionRow, read: SessionRow) -> bool:
    """Return whether a fork has another folder than the session it was forked from."""
    return session.workspace_root != read.workspace_root


def _is_in_own_folder(
    kind: str, path: Path, environment: Mapping[str, str], home: Path
) -> bool:
    """Return whether a file, existing or deleted, is in the folders of its agent."""
    from store.sources.registry import all_sources

    try:
        real = real_path(path)
        if not path.is_absolute() or (real.exists() and not real.is_file()):
            return False
    except (OSError, ValueError):
        return False
    roots = (
        real_path(root)
        for source in all_sources() if source.kind == kind
        for root in source.default_roots(environment, home)
    )  # fmt: skip
    return any(root == real or root in real.parents for root in roots)


def _is_our_store(db: Database) -> bool:
    """Return whether a store is in this program's own folders."""
    try:
        real = real_path(db.path)
        return any(real_path(ours) in real.parents for ours in (data_dir(), cache_dir()))
    except OSError:
        return False


def _names_folder(path: Path, session: SessionRow) -> bool:
    """Return whether an agent's file contains the session's stored folder."""
    folder = session.workspace_root
    if folder is None:
        return True
    forms = (json.dumps(folder).encode(), json.dumps(folder, ensure_ascii=False).encode())
    try:
        with open_regular(path) as file:
            start = file.read(_LOOKED_AT)
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOOKED_AT))
            end = file.read(_LOOKED_AT)
    except OSError:
        return False
    return any(form in start or form in end for form in forms)
