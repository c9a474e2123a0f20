"""What VS Code's own index says of each chat: one value of the database beside the chats.

Source: the page on Copilot Chat in VS Code, section 1. VS Code writes the index at its exit, so
that it lacks the newest chats. Other values of the database, secrets among them, are not read.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.databases import Databases, decoded, stamp_of_rows
from store.sources.base.growing import FACT
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import mapping
from store.sources.base.vscode import STATE, stored_value

KEY = "chat.ChatSessionStore.index"
Entries = dict[str, dict[str, Any]]


class _Index(NamedTuple):
    """An index as it was read last."""

    stamps: tuple[FileStamp, ...]
    entries: Entries


class ChatIndexes:
    """The indexes of workspaces and windows; each is read again when its database moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._databases = Databases()
        self._read: dict[str, _Index] = {}

    def entry(self, folder: Path, chat: str, problems: list[Problem]) -> dict[str, Any]:
        """Return what the index says of a chat; empty where it does not have it.

        Args:
            folder: The folder that has the database, and the folder of chats.
            chat: The chat's id.
            problems: Takes why the index cannot be read.
        """
        return self._entries(folder / STATE, problems).get(chat, {})

    def stamps(self, folder: Path, chat: str, problems: list[Problem]) -> list[FileStamp]:
        """Return the stamp of a chat's entry; none where the index does not have it.

        Args:
            folder: The folder that has the database, and the folder of chats.
            chat: The chat's id.
            problems: Takes why the index cannot be read.
        """
        entry = self.entry(folder, chat, problems)
        if not entry:
            return []
        return [stamp_of_rows(folder / f"{FACT}{chat}", sorted(entry.items()), at=0, size=0)]

    def moved(self, folder: Path) -> set[str]:
        """Return the chats whose entries moved since the index was read last."""
        path = folder / STATE
        before = self._read[str(path)].entries if str(path) in self._read else {}
        now = self._entries(path, [])
        return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}

    def _entries(self, path: Path, problems: list[Problem]) -> Entries:
        stamps = tuple(FileStamp.now(f"{path}{end}") for end in ("", "-wal"))
        known = self._read.get(str(path))
        if known is not None and known.stamps == stamps:
            return known.entries
        try:
            kept = stored_value(self._databases, path, KEY) if stamps[0].inode else None
        except (StoreError, sqlite3.Error, OSError) as error:
            problems.append(Problem(str(path), 0, f"cannot be read: {error}"))
            return known.entries if known is not None else {}
        listed = mapping(mapping(decoded(kept)).get("entries"))
        entries = {name: entry for name, entry in listed.items() if isinstance(entry, dict)}
        self._read[str(path)] = _Index(stamps, entries)
        return entries
