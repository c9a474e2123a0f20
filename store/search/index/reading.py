"""Reads a store's search index: the messages that may hold some texts, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from store.engine.database import Database


class Candidate(NamedTuple):
    """A message, or a session's title, that may hold the texts that are searched.

    Attributes:
        message_id: None for the session's title.
        created_at: Of the message; of the session for a title. Epoch ms.
        parts: Ranges of ``chat_parts.index`` (first and last) outside which none of the texts
            is; empty if they may be in any part.
    """

    session_id: str
    message_id: str | None
    created_at: int
    parts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a store is in its index.

    Attributes:
        messages: Number of messages in the index.
        total: Number of messages in the store, when the indexer last counted them.
        since: Messages created after this time (epoch ms) are in the index, but for those of
            ``Index.changed``. Below the time of every message once the index is whole.
        whole: Whether all messages and titles are in the index, but for those of
            ``Index.changed``.
    """

    messages: int
    total: int
    since: int
    whole: bool


class Index:
    """An open index; each call reads its current state. For one thread at a time."""

    def candidates(self, texts: Sequence[str], *, before: int | None = None) -> Iterator[Candidate]:
        """Yield messages that may hold all the texts, and titles, the newest first.

        The order is that of ``created_at``; within one millisecond it is arbitrary. Blocks of
        the index are read as the iterator advances, so that the first candidates are cheap.

        Args:
            texts: Words and phrases as typed. Every message that holds all of them, as
                ``store.language.matching`` compares texts, is among the candidates: also
                for texts of one or two characters, and without any text all messages.
            before: Only what was created at this time (epoch ms) or earlier.
        """
        raise NotImplementedError

    def count(self, texts: Sequence[str]) -> int:
        """Return how many candidates there are: at least the number of messages with hits."""
        raise NotImplementedError

    def coverage(self) -> Coverage:
        """Return how much of the store is in the index."""
        raise NotImplementedError

    def changed(self, database: Database) -> list[str]:
        """Return the ids of messages that changed since the index was brought up to date.

        They are to be searched in the rows. Usually there are none, or those of running sessions.

        Args:
            database: The open store.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the file."""


def open_index(store: Path) -> Index | None:
    """Return the index of a store, opened for reading; None if there is none that can be used.

    Args:
        store: The store's file.
    """
    del store
    return None
