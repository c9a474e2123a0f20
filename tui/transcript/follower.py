"""The open session as it happens: what changed is read again, and the end is followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from textual.timer import Timer

from store.activity.judgement import Activity
from store.activity.states import OPEN_STATES
from store.conversation.readable import decode
from store.engine.changes import Moved
from store.errors import StoreError
from store.queries import transcript as queries
from store.text.stored_json import as_dict
from store.usage import context_size
from tui.messages import ProblemOccurred
from tui.transcript import rereading
from tui.transcript.document import Document
from tui.transcript.finder import Finder
from tui.transcript.new_below import NewBelow
from tui.transcript.placement import Placement
from tui.transcript.reader import SessionReader
from tui.transcript.running import RunningCalls
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.snapshot import ViewportSnapshot

WHOLE_EVERY_S = 0.4
"""At least this long between two checks of the whole skeleton."""
WHOLE_SHARE = 20
"""A check waits so many times as long as the last reading of the whole skeleton took."""
MOST_WHOLE = 3
"""Readings of the whole skeleton until one holds all that is shown already."""


class Follower:
    """Brings the document up to date with what is written to the store.

    A change near the end is read at once. Where it is not known what was written, or it lies
    far above the end, the whole skeleton is checked as well, at a slower pace.
    """

    def __init__(
        self, shown: ShownSession, pane: PaneServices, *, placement: Placement, finder: Finder,
        selected: SelectedPart, running: RunningCalls, new_below: NewBelow,
        gone: Callable[[str], None],
    ) -> None:
        """Start with nothing to follow.

        Args:
            shown: The session.
            pane: Runs the slower checks.
            placement: Keeps the position.
            finder: Searches what was written.
            selected: Announces the selected part where it changed.
            running: Lays out running calls again.
            new_below: Counts what comes below.
            gone: Called with the reason where the session is no longer in the store.
        """
        self._shown, self._pane, self._placement = shown, pane, placement
        self._finder, self._selected, self._running = finder, selected, running
        self._new_below, self._gone = new_below, gone
        self._changes = Moved()
        self._during_whole = Moved()
        self.changing = asyncio.Lock()
        """Held while the document changes."""
        self._whole_due: Timer | None = None
        self._whole_running = self._whole_differs = False
        self._whole_cost = 0.0

    def begin(self, reader: SessionReader) -> None:
        """Follow a session that was just opened."""
        self._changes = Moved()
        self._new_below.reset()
        # Changes are read between two pages of the skeleton, not behind all of them.
        reader.turn = self.changing

    # What was written

    async def refresh(self, changes: Moved) -> None:
        """Read what changed in the session; returns when it is shown.

        Raises:
            StoreError: The store is busy or gone; the next call reads it then.
        """
        reader = self._shown.reader
        if reader is None:
            return
        if changes.touches(reader.row.id):
            own = Moved(changes.vague)
            if not changes.vague:
                own.sessions[reader.row.id] = changes.sessions[reader.row.id]
            self._changes.merge(own)
            if self._whole_running:
                self._during_whole.merge(own)
        await self._catch_up()

    async def refresh_screen(self) -> None:
        """Read the parts on the screen again: they were loaded before changes were looked for.

        Raises:
            StoreError: The store is busy or gone.
        """
        reader, document = self._shown.reader, self._shown.document
        if reader is None or not document.complete:
            return
        for part in self._shown.view.shown_parts():
            self._changes.add(reader.row.id, document.skeleton.key(part)[0])
        self._changes.sessions.setdefault(reader.row.id, set())
        await self._catch_up()

    @property
    def may_have_ended(self) -> bool:
        """Whether the session runs or waits, so that its process may have ended since."""
        activity = self._shown.activity
        return activity is not None and activity.state in OPEN_STATES

    async def refresh_activity(self) -> None:
        """Judge again what a session does that runs or waits.

        Raises:
            StoreError: The store is busy or gone.
        """
        reader = self._shown.reader
        if reader is not None and self.may_have_ended:
            self._changes.sessions.setdefault(reader.row.id, set())
            await self._catch_up()

    async def _catch_up(self) -> None:
        shown = self._shown
        async with self.changing:
            while self._changes and shown.document.complete and shown.reader is not None:
                changes, self._changes = self._changes, Moved()
                try:
                    await self._apply(shown.reader, changes)
                except BaseException:
                    self._changes.merge(changes)
                    raise

    async def _apply(self, reader: SessionReader, changes: Moved) -> None:
        """Bring the document up to date with some writes."""
        shown = self._shown
        written = None if changes.vague else changes.sessions.get(reader.row.id, set())
        facts = await rereading.facts(reader, written or ())
        usage = await reader.store.read(queries.last_usage, reader.row.id)
        if reader is not shown.reader:
            return
        if facts is None:
            self._gone("This session is no longer in the store")
            return
        shown.context_size = context_size(as_dict(decode(usage))) if usage else 0
        self._take_activity(reader, facts.activity)
        shown.document.setting.children = facts.children
        found = await rereading.reread(
            reader, shown.document, written, facts.places, at_end=shown.view.at_end,
            shown=shown.view.shown_parts(),
        )
        if reader is not shown.reader:
            return
        if found is None or written is None:
            self._whole_differs = self._whole_differs or found is None
            self._check_whole_soon()
        if found is None:
            self._pane.update_headings()
        else:
            await self._change(found[1], found[0])

    async def _change(self, change: rereading.Change, start: int | None = None) -> None:
        """Change the document, and keep the position, or follow the end.

        Args:
            change: Changes it at once.
            start: The first message that differs; None where none does.
        """
        # Keys may have moved the position until now, and will again once something is awaited.
        snapshot = ViewportSnapshot.of(self._shown.view)
        change()
        snapshot.restore(self._shown.view)
        if start is not None:
            self._finder.refresh(start)
        await self._placement.stay()
        self._selected.changed(snapshot.row)

    def _take_activity(self, reader: SessionReader, activity: Activity) -> None:
        shown = self._shown
        shown.activity, setting = activity, shown.document.setting
        setting.now = reader.store.clock()
        if setting.take(activity):
            self._running.lay_out()

    # The whole skeleton, at a slower pace

    def _check_whole_soon(self) -> None:
        if self._whole_due is None:
            pause = max(WHOLE_EVERY_S, WHOLE_SHARE * self._whole_cost)
            self._whole_due = self._pane.set_timer(
                pause, partial(self.check_whole_now, rested=True))

    def check_whole_now(self, *, rested: bool = False, differs: bool = False) -> None:
        """Check the whole skeleton: rows may have come, gone or changed anywhere.

        Args:
            rested: Rest between two slices, so that nothing else has to wait.
            differs: Read it whole without a check.
        """
        self._whole_differs = self._whole_differs or differs
        if self._whole_running:
            self._whole_due = None
            self._check_whole_soon()
            return
        if self._whole_due is not None:
            self._whole_due.stop()
            self._whole_due = None
        if self._shown.reader is not None and self._shown.document.complete:
            self._pane.background(partial(self._check_whole, rested), group="whole")

    @property
    def whole_is_due(self) -> bool:
        """Whether the whole skeleton is still to be checked, or is being checked."""
        return self._whole_due is not None or self._whole_running

    async def _check_whole(self, rested: bool) -> None:
        reader = self._shown.reader
        if reader is None:
            return
        self._whole_running, self._during_whole, self._whole_cost = True, Moved(), 0.0
        differs, self._whole_differs = self._whole_differs, False
        reader.turn = self.changing
        try:
            if differs or await rereading.differs(reader, self._shown.document, rested=rested):
                differs, started = True, time.monotonic()
                await self._replace_whole(reader)
                self._whole_cost = time.monotonic() - started
            else:
                await self._renew_rows(reader)
        except StoreError:
            # The screen says that the store is busy or gone; the check is done later.
            self._whole_differs = self._whole_differs or differs
            self._check_whole_soon()
        except Exception as error:
            problem = ProblemOccurred("The session could not be read again", error)
            self._pane.post_message(problem)
        finally:
            self._whole_running = False

    async def _renew_rows(self, reader: SessionReader) -> None:
        """Drop the rows outside the screen: they may hold something else of the same length."""
        shown = self._shown
        async with self.changing:
            if reader is shown.reader:
                change = await rereading.renew(reader, shown.document, shown.view.shown_parts())
                if reader is shown.reader:
                    await self._change(change)

    async def _replace_whole(self, reader: SessionReader) -> None:
        shown = self._shown
        for left in reversed(range(MOST_WHOLE)):
            self._during_whole = Moved()
            fresh = Document(shown.document.setting)
            skeleton, heights = await reader.skeleton(fresh.setting)
            async with self.changing:
                if reader is not shown.reader:
                    return
                fresh.use(skeleton, heights, complete=True)
                if not await self._add_written_meanwhile(reader, fresh) and left:
                    continue
                renew = await rereading.renew(reader, shown.document, shown.view.shown_parts())
                if reader is shown.reader:
                    self._changes.merge(self._during_whole)
                    await self._change(partial(self._use_instead, renew, fresh), 0)
            break
        await self._catch_up()

    def _use_instead(self, renew: rereading.Change, fresh: Document) -> None:
        renew()
        self._shown.document.use(fresh.skeleton, fresh.heights, complete=True)

    async def _add_written_meanwhile(self, reader: SessionReader, fresh: Document) -> bool:
        """Add what was written, and shown, while a session was read whole.

        Returns:
            Whether all of it is there now; else the session must be read again.
        """
        changes = self._during_whole
        if not changes or not reader.in_display_order:
            return True
        written = None if changes.vague else changes.sessions.get(reader.row.id, set())
        facts = await rereading.facts(reader, written or ())
        if facts is None:
            return True
        found = await rereading.reread(
            reader, fresh, written, facts.places, at_end=False, shown=range(0))
        if found is not None:
            found[1]()
        return found is not None
