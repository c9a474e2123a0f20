"""What VS Code's own index says of each chat: one value of the database beside the chats.

Source: the page on Copilot Chat in VS Code, section 1. VS Code writes the index at its exit, so
that it lacks the newest chats. Other values of the database, secrets among them, are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from store.sources.base.databases import Databases, decoded
from store.sources.base.listings import Entries, Listings, entry_stamps
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import mapping
from store.sources.base.vscode import STATE, stored_value

KEY = "chat.ChatSessionStore.index"


class ChatIndexes:
    """The indexes of workspaces and windows; each is read again when its database moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._databases = Databases()
        self._indexes = Listings(self._read)

    def entry(self, folder: Path, chat: str, problems: list[Problem]) -> dict[str, Any]:
        """Return what the index says of a chat; empty where it does not have it.

        Args:
            folder: The folder that has the database, and the folder of chats.
            chat: The chat's id.
            problems: Takes why the index cannot be read.
        """
        return self._indexes.entries(str(folder / STATE), KEY, problems).get(chat, {})

    def stamps(self, folder: Path, chat: str, problems: list[Problem]) -> list[FileStamp]:
        """Return the stamp of a chat's entry; none where the index does not have it.

        Args:
            folder: The folder that has the database, and the folder of chats.
            chat: The chat's id.
            problems: Takes why the index cannot be read.
        """
        return entry_stamps(folder, chat, self.entry(folder, chat, problems))

    def moved(self, folder: Path) -> set[str]:
        """Return the chats whose entries moved since the index was read last."""
        return self._indexes.moved(str(folder / STATE), KEY)

    def _read(self, path: str, key: str) -> Entries:
        listed = mapping(
            mapping(decoded(stored_value(self._databases, Path(path), key))).get("entries")
        )
        return {name: entry for name, entry in listed.items() if isinstance(entry, dict)}
