"""Reads what the inspector shows; the selection may move on faster than it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from store.engine.database import Database
from store.queries import originals
from tui.inspector.records import Records

T = TypeVar("T")


class Latest(Generic[T]):
    """Handles the newest of many requests: those that came in between are skipped.

    One request is handled at a time, so that reads never pile up behind each other.
    """

    def __init__(self, handle: Callable[[T], Awaitable[None]]) -> None:
        """Take what handles a request; it looks at ``stale`` before it shows anything."""
        self._handle = handle
        self._wanted: list[T] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def stale(self) -> bool:
        """Whether a newer request waits already."""
        return bool(self._wanted)

    def request(self, wanted: T) -> None:
        """Ask for something; what was asked for before and waits is forgotten."""
        self._wanted = [wanted]
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def settled(self) -> None:
        """Wait until the newest request is handled."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def drop(self) -> None:
        """Forget a request that waits."""
        self._wanted = []

    async def _run(self) -> None:
        while self._wanted:
            wanted = self._wanted.pop()
            await self._handle(wanted)


def read_records(db: Database, part_id: str, message_id: str) -> Records:
    """Return the original records of a part; of its message where the part has none."""
    texts = originals.records_of_part(db, part_id)
    if texts:
        return Records(texts)
    return Records(originals.records_of_message(db, message_id), whole_message=True)
