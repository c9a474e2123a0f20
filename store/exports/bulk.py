"""Every session of a store as a file in one folder; continued where it was broken off.

``.backscroll-export`` in the folder has a line for each file that is about to be written,
and another once it is: what was written is known after a kill, and only that is replaced.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.errors import BackscrollError, Refused
from store.exports.files import Prepared
from store.exports.registry import Format
from store.system.files import made_folder, plain_name
from store.system.paths import open_regular

LIST = ".backscroll-export"
_NAMES = uuid.UUID("6f0c1a52-5b1e-5f0e-9c3a-8d1f7b6f2a10")
_LARGEST_LIST = 1 << 28


@dataclass(slots=True)
class Bulk:
    """What was exported.

    Attributes:
        written: Sessions whose file was written.
        unchanged: Sessions whose file was there already.
        failed: Why a session could not be written, by its id.
        masked: Secrets that were masked.
    """

    written: int = 0
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    masked: int = 0


Prepare = Callable[[str, str], Prepared]
"""Returns a session, ready to be written, by its id and the id that the file gets."""


def export_all(
    database: Database, format: Format, folder: Path, prepare: Prepare, *,
    settings: str = "", dry_run: bool = False,
    telling: Callable[[int, int], None] = lambda done, total: None,
) -> Bulk:
    """Write every session of a store to a folder and return how many were written.

    A session whose file is there is written again only if it has changed since. A file that this
    did not write is never replaced.

    Args:
        database: The store.
        format: How each is written.
        folder: Where; made (0700) if it is missing.
        prepare: Reads a session.
        settings: What else the files depend on; with others, all are written again.
        dry_run: Whether to write nothing, and only count.
        telling: Takes how many sessions are done, and how many there are.

    Raises:
        Refused: The folder cannot be written.
    """
    if not dry_run:
        made_folder(folder)
    known = _Known(folder, f"{format.name} {settings}".strip())
    sessions = [str(row[0]) for row in database.connection.execute(
        "SELECT id FROM chat_sessions ORDER BY updated_at DESC, id")]
    done = Bulk()
    counts = Counter(plain_name(one).casefold() for one in sessions)
    for place, session_id in enumerate(sessions):
        telling(place, len(sessions))
        stamp = _stamp(database, session_id)
        if known.has(session_id, stamp):
            done.unchanged += 1
            continue
        if dry_run:
            done.written += 1
            continue
        try:
            made = prepare(session_id, str(uuid.uuid5(_NAMES, session_id)))
            name = _name(made, session_id, counts)
            known.begin(session_id, name)
            made.write(folder / name, replace=known.is_ours(session_id, name))
            known.finish(session_id, name, stamp)
            done.masked += made.masks.counts.total()
            done.written += 1
        except BackscrollError as error:
            done.failed[session_id] = str(error)
        finally:
            if database.connection.in_transaction:
                database.connection.execute("ROLLBACK")
    return done


def _name(made: Prepared, session_id: str, counts: Mapping[str, int]) -> str:
    """Return a file's name: of harmless characters, and of no other session, on any disk.

    Args:
        made: The session.
        session_id: Its id.
        counts: How many sessions have a plain name, whatever its case.
    """
    if made.format.named is not None or made.format.view:
        return made.name  # It has an id of its own.
    plain = plain_name(session_id)
    if plain != session_id or counts[plain.casefold()] > 1:
        told = session_id.encode("utf-8", "surrogatepass")
        plain = f"{plain[:60]}-{blake2b(told, digest_size=8).hexdigest()}"
    return f"{plain}{made.format.suffix}"


def _stamp(database: Database, session_id: str) -> str:
    """Return what differs when a session has changed."""
    read = database.connection.execute
    row = read("SELECT * FROM chat_sessions WHERE id = ?", (session_id,)).fetchone()
    messages = read(
        f"SELECT count(*), max(updated_at), sum(length({database.sql.text('metadata_json')}))"
        " FROM chat_messages WHERE session_id = ?", (session_id,)).fetchone()
    parts = read(
        "SELECT count(*), max(updated_at) FROM chat_parts WHERE session_id = ?",
        (session_id,)).fetchone()
    return blake2b(repr((row, messages, parts)).encode(
        "utf-8", "surrogatepass"), digest_size=12).hexdigest()


class _Known:
    """The list of a folder: which files were begun, and which finished."""

    def __init__(self, folder: Path, settings: str) -> None:
        self._path, self._folder, self._settings = folder / LIST, folder, settings
        self._begun: set[tuple[str, str]] = set()
        self._done: dict[str, tuple[str, str]] = {}
        for line in self._lines():
            try:
                entry = json.loads(line)
                session, name = entry["session"], entry["file"]
            except (ValueError, KeyError, TypeError):
                continue  # The end of a line that a killed process began.
            if isinstance(session, str) and isinstance(name, str):
                self._begun.add((session, name))
                if entry.get("settings") == settings and isinstance(entry.get("stamp"), str):
                    self._done[session] = name, entry["stamp"]

    def _lines(self) -> list[bytes]:
        try:
            with open_regular(self._path) as file:
                return (file.read(_LARGEST_LIST) or b"").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Refused(f"{self._path} cannot be read: {error.strerror or error}") from error

    def has(self, session_id: str, stamp: str) -> bool:
        """Return whether a session's file is there as it would be written now."""
        name, stamped = self._done.get(session_id, ("", ""))
        return stamped == stamp and _is_inside(name) and (self._folder / name).is_file()

    def is_ours(self, session_id: str, name: str) -> bool:
        """Return whether a file is there that was written for this session."""
        return (session_id, name) in self._begun and (self._folder / name).exists()

    def begin(self, session_id: str, name: str) -> None:
        """Note that a file is about to be written, unless something else is there."""
        if (session_id, name) not in self._begun and not (self._folder / name).exists():
            self._add({"session": session_id, "file": name})
            self._begun.add((session_id, name))

    def finish(self, session_id: str, name: str, stamp: str) -> None:
        """Note that a file was written."""
        self._add({"session": session_id, "file": name, "stamp": stamp,
                   "settings": self._settings})

    def _add(self, entry: dict[str, Any]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        line = json.dumps(entry).encode() + b"\n"
        try:
            number = os.open(self._path, flags, 0o600)
            try:
                # A killed process may have left half a line.
                os.write(number, line if not os.fstat(number).st_size else b"\n" + line)
            finally:
                os.close(number)
        except OSError as error:
            raise Refused(f"{self._path} cannot be written: {error.strerror or error}") from error


def _is_inside(name: str) -> bool:
    """Return whether a name of the list is a file in the folder."""
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")
