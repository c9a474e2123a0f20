"""What a program's own lists say of its sessions, by id: in files, or as values of a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.databases import stamp_of_rows
from store.sources.base.growing import FACT
from store.sources.base.json_values import LineError
from store.sources.base.protocol import FileStamp, Problem

Entries = dict[str, dict[str, Any]]
"""What a list says of each session, by the session's id."""


class _Kept(NamedTuple):
    """A list as it was read last."""

    stamps: tuple[FileStamp, ...]
    entries: Entries


class Listings:
    """Lists of sessions; each is read again when its file moved."""

    def __init__(self, read: Callable[[str, str], Entries]) -> None:
        """Start with nothing read.

        Args:
            read: Returns the entries of a list by its file, and the key of a value in it.
        """
        self._read = read
        self._kept: dict[tuple[str, str], _Kept] = {}

    def entries(self, path: str, key: str, problems: list[Problem]) -> Entries:
        """Return the entries of a list; those that it had where it cannot be read.

        Args:
            path: The file, which may be missing.
            key: Of a value in it.
            problems: Takes why it cannot be read.
        """
        stamps = tuple(FileStamp.now(path + end) for end in ("", "-wal"))
        known = self._kept.get((path, key))
        if known is not None and known.stamps == stamps:
            return known.entries
        try:
            entries = self._read(path, key) if stamps[0].inode else {}
        except (StoreError, sqlite3.Error, OSError, LineError) as error:
            problem = Problem(path, 0, f"cannot be read: {error}")
            # It is asked once for each of its sessions.
            problems += [problem] if problem not in problems else []
            return known.entries if known is not None else {}
        self._kept[path, key] = _Kept(stamps, entries)
        return entries

    def moved(self, path: str, key: str) -> set[str]:
        """Return the sessions whose entries moved since a list was read last.

        Args:
            path: The file.
            key: Of a value in it.
        """
        before = self._kept[path, key].entries if (path, key) in self._kept else {}
        now = self.entries(path, key, [])
        return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


def entry_stamps(folder: Path, session: str, entry: dict[str, Any]) -> list[FileStamp]:
    """Return the stamp of what lists say of a session; none where they say nothing.

    Args:
        folder: Where the session is.
        session: Its id.
        entry: What they say.
    """
    if not entry:
        return []
    return [stamp_of_rows(folder / f"{FACT}{session}", sorted(entry.items()), at=0, size=0)]


def by_id(listed: Iterable[Any], key: str) -> Entries:
    """Return the entries of a list by their ids.

    Args:
        listed: The entries; what is none is left out.
        key: The member that holds the id.
    """
    found = (each for each in listed if isinstance(each, dict))
    return {each[key]: each for each in found if isinstance(each.get(key), str) and each[key]}
