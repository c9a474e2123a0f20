"""Reads a session for the transcript: a window at once, the skeleton behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from store.activity.judgement import Activity, current
from store.engine.database import Database
from store.queries import transcript as queries
from store.queries import windows
from store.queries.transcript import Keyset
from store.queries.windows import Opening
from store.rows import SessionRow
from tui.transcript.document import Document
from tui.transcript.heights import Heights
from tui.transcript.item import Setting
from tui.transcript.measures import estimates
from tui.transcript.search import Search, find
from tui.transcript.skeleton import Skeleton, build

if TYPE_CHECKING:
    from store.store import Store

PAGE_MESSAGES = 250
"""Messages in one read of the skeleton: some 10 ms, so that other reads go in between."""


class SessionReader:
    """One session of a store, read in small pieces."""

    in_display_order: ClassVar[bool] = True
    """Whether all messages are shown, in the order in which they happened."""

    def __init__(self, store: Store, row: SessionRow) -> None:
        """Make a reader of a session; nothing is read yet."""
        self.store = store
        self.row = row
        self.activity: Activity | None = None
        """The session's activity when it was opened."""
        self.left = False
        """Whether another session is shown: reads of this one that still run can stop."""
        self.turn = asyncio.Lock()
        """Held for each page of the skeleton, so that other work can go in between."""
        self.counting = asyncio.Lock()
        """Held while the whole skeleton is read, so that it is read once."""

    async def open(self, setting: Setting, around: str | None, *, at_end: bool) -> Document:
        """Return a document that holds a first window.

        Args:
            setting: The widths and modes of the layout.
            around: The message to show; None for an end of the session.
            at_end: Which end.
        """
        row, setting.now = self.row, self.store.clock()
        opening, activity = await self.store.read(
            _open, row, around, setting.now, at_end=at_end)
        self.activity = activity
        setting.root, setting.agent = row.workspace_root, row.agent
        setting.take(activity)
        setting.parent = opening.parent_title or ""
        setting.children = opening.children
        document = Document(setting)
        window = opening.window
        document.put(window.messages, window.parts)
        skeleton = build(window.outlines)
        document.use(
            skeleton, estimates(skeleton, setting),
            complete=window.at_start and window.at_end, at_start=window.at_start,
            at_end=window.at_end,
        )
        return document

    async def skeleton(self, setting: Setting) -> tuple[Skeleton, Heights]:
        """Return the whole skeleton with estimated heights, made on the store's thread."""
        skeleton = Skeleton()
        waiting: list[queries.Outline] = []
        after: Keyset | None = None
        while True:
            async with self.turn:
                after = await self.store.read(_extend, self.row.id, skeleton, waiting, after)
            if after is None or self.left:
                break
        for outline in waiting:
            skeleton.add(outline)
        heights = await self.store.read(lambda _db: estimates(skeleton, setting))
        return skeleton, heights

    async def have(self, document: Document, parts: Iterable[int]) -> bool:
        """Load the rows of parts that are not loaded yet; return whether any were missing."""
        spans = document.missing(part for part in parts if 0 <= part < len(document))
        if not spans:
            return False
        messages, rows = await self.store.read(queries.rows_of, spans)
        document.put(messages, rows)
        return True

    async def scan(self, search: Search, document: Document) -> AsyncIterator[None]:
        """Search the messages that were not searched yet, or were written since.

        First from the reading place to the end, then from the start. Yields after each chunk.
        """
        skeleton = document.skeleton
        while (messages := search.next_chunk(skeleton)) is not None:
            ids = skeleton.message_ids[messages.start: messages.stop]
            search.add(skeleton, messages, await self.store.read(partial(_find, ids, search)))
            yield
        search.cut(skeleton, len(skeleton.message_ids))
        search.done = True
        yield


def _open(
    db: Database, row: SessionRow, around: str | None, now: int, *, at_end: bool
) -> tuple[Opening, Activity]:
    found = windows.opening(db, row.id, row.parent_id, around, at_end=at_end)
    return found, current(db, row, now)


def _extend(
    db: Database, session_id: str, skeleton: Skeleton, waiting: list[queries.Outline],
    after: Keyset | None,
) -> Keyset | None:
    """Add a page to a skeleton; returns where the next one begins, None at the end."""
    page = queries.outline_page(db, session_id, after, PAGE_MESSAGES)
    for outline in page:
        if outline.cancelled_at is not None and outline.hidden_at:
            continue
        if outline.queued_at is not None:
            waiting.append(outline)
        else:
            skeleton.add(outline)
    return (page[-1].created_at, page[-1].message_id) if page else None


def _find(ids: list[str], search: Search, db: Database) -> list[tuple[str, int, int]]:
    return find(db, ids, search.needle, search.pattern)
