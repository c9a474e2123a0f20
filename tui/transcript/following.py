"""The open session as it happens: what moved is read again, the end is followed.

Following is a mode that the user sets, not a measurement: ``view.at_end``. It is on where a
session opens at its end, is left by any move up and by what opens a part so far that the end
leaves the screen, and comes back with the key for the end.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.timer import Timer

from store.activity.judgement import Activity
from store.activity.states import OPEN_STATES
from store.engine.changes import Moved
from store.errors import StoreError
from store.queries import transcript as queries
from store.usage import context_size
from tui.messages import ProblemOccurred
from tui.transcript import rereading
from tui.transcript.comparing import differs
from tui.transcript.document import Document
from tui.transcript.end import EndPane
from tui.transcript.plain import as_dict, decode
from tui.transcript.standing import Standing

if TYPE_CHECKING:
    from store.rows import SessionRow
    from store.store import Store
    from tui.transcript.reader import SessionReader

WHOLE_EVERY_S = 0.4
"""At least this long between two readings of the whole skeleton."""
MOST_WHOLE = 3
"""Readings of the whole skeleton for one that holds all that is shown already."""
WHOLE_SHARE = 20
"""So many times as long as such a reading took is waited before the next."""


class FollowingPane(EndPane):
    """The transcript with its live view."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start with nothing to follow."""
        super().__init__(id=id)
        self._moved = Moved()
        self._during_whole = Moved()
        self.changing = asyncio.Lock()
        self._whole_due: Timer | None = None
        self._whole_running = self._whole_sure = False
        self._whole_cost = 0.0

    async def open_session(
        self, store: Store, row: SessionRow, *, message_id: str | None = None, place: Any = None
    ) -> None:
        """Show a session, and from then on what happens to it."""
        await super().open_session(store, row, message_id=message_id, place=place)
        self._moved, self._known_end = Moved(), None
        if self.reader is not None:
            # What moved is read between two pages of the skeleton, not behind all of them.
            self.reader.turn = self.changing

    async def _fill(self) -> None:
        await super()._fill()
        reader = self.reader
        if reader is None or not self.document.complete:
            return
        # The first window was read before anybody looked for changes of this session.
        for part in self.view.shown_parts():
            self._moved.add(reader.row.id, self.document.skeleton.key(part)[0])
        self._moved.sessions.setdefault(reader.row.id, set())
        await self._catch_up()

    # What moved

    async def look_again(self, moved: Moved) -> None:
        """Read again what moved of the open session; returns when it is shown.

        Raises:
            StoreError: The store is busy or gone; it is done with the next call then.
        """
        reader = self.reader
        if reader is None:
            return
        if moved.touches(reader.row.id):
            own = Moved(moved.vague)
            if not moved.vague:
                own.sessions[reader.row.id] = moved.sessions[reader.row.id]
            self._moved.merge(own)
            if self._whole_running:
                self._during_whole.merge(own)
        await self._catch_up()

    @property
    def may_have_ended(self) -> bool:
        """Whether the session runs or waits, so that its process may have ended since."""
        return self.activity is not None and self.activity.state in OPEN_STATES

    async def time_went_by(self) -> None:
        """Ask again what a session does that runs or waits: its process may have ended.

        Raises:
            StoreError: The store is busy or gone.
        """
        if self.reader is not None and self.may_have_ended:
            self._moved.sessions.setdefault(self.reader.row.id, set())
            await self._catch_up()

    async def _catch_up(self) -> None:
        async with self.changing:
            while self._moved and self.document.complete and self.reader is not None:
                moved, self._moved = self._moved, Moved()
                try:
                    await self._apply(self.reader, moved)
                except BaseException:
                    self._moved.merge(moved)
                    raise

    async def _apply(self, reader: SessionReader, moved: Moved) -> None:
        """Bring the document up to date with some writes."""
        written = None if moved.vague else moved.sessions.get(reader.row.id, set())
        facts = await rereading.facts(reader, written or ())
        usage = await reader.store.read(queries.last_usage, reader.row.id)
        if reader is not self.reader:
            return
        if facts is None:
            self.show_session_none("This session is no longer in the store")
            return
        self._context_size = context_size(as_dict(decode(usage))) if usage else 0
        self._take_activity(facts.activity)
        self.document.setting.children = facts.children
        found = await rereading.reread(
            reader, self.document, written, facts.places, at_end=self.view.at_end,
            shown=self.view.shown_parts(),
        )
        if reader is not self.reader:
            return
        if found is None or written is None:
            self._whole_sure = self._whole_sure or found is None
            self._read_whole_soon()
        if found is None:
            self.show_around()
        else:
            await self._changed(found[1], found[0])

    async def _changed(self, change: rereading.Change, start: int | None = None) -> None:
        """Change the document, and stay where the reader stands, or at the end.

        Args:
            change: Changes it at once.
            start: The first message that is another; None where none is.
        """
        # Keys may have moved the place until now, and will again once something is awaited.
        stood = Standing.of(self.document, self.view)
        change()
        self.stand(stood)
        if start is not None:
            self.search_again(start)
        await self.stay()
        self.told_of_change(stood.row)

    def _take_activity(self, activity: Activity) -> None:
        self.activity, setting = activity, self.document.setting
        setting.now = self.reader.store.clock() if self.reader is not None else setting.now
        if setting.take(activity):
            self.lay_out_unsettled()

    def search_again(self, start: int) -> None:
        """Take it that the session is another from a message on, for a search that is on."""

    # The whole skeleton, at a slower pace

    def _read_whole_soon(self) -> None:
        if self._whole_due is None:
            pause = max(WHOLE_EVERY_S, WHOLE_SHARE * self._whole_cost)
            self._whole_due = self.set_timer(pause, partial(self.read_whole_now, rested=True))

    def read_whole_now(self, *, rested: bool = False) -> None:
        """Look at the whole skeleton again, as rows may have come, gone or changed anywhere.

        Args:
            rested: Rest between two slices, so that nothing else has to wait.
        """
        if self._whole_running:
            self._whole_due = None
            self._read_whole_soon()
            return
        if self._whole_due is not None:
            self._whole_due.stop()
            self._whole_due = None
        if self.reader is not None and self.document.complete:
            self.background(partial(self._read_whole, rested), group="whole")

    @property
    def whole_is_due(self) -> bool:
        """Whether the whole skeleton is still to be read again."""
        return self._whole_due is not None or self._whole_running

    async def _read_whole(self, rested: bool) -> None:
        reader = self.reader
        if reader is None:
            return
        self._whole_running, self._during_whole, self._whole_cost = True, Moved(), 0.0
        sure, self._whole_sure = self._whole_sure, False
        reader.turn = self.changing
        try:
            if sure or await differs(reader, self.document, rested=rested):
                sure, started = True, time.monotonic()
                await self._replace_whole(reader)
                self._whole_cost = time.monotonic() - started
            else:
                await self._renew_rows(reader)
        except StoreError:
            # The screen says that the store is busy or gone; what is owed stays owed.
            self._whole_sure = self._whole_sure or sure
            self._read_whole_soon()
        except Exception as error:
            self.post_message(ProblemOccurred("The session could not be read again", error))
        finally:
            self._whole_running = False

    async def _renew_rows(self, reader: SessionReader) -> None:
        """Forget rows beside the screen: what they hold may be another of the same length."""
        async with self.changing:
            if reader is self.reader:
                change = await rereading.renew(reader, self.document, self.view.shown_parts())
                if reader is self.reader:
                    await self._changed(change)

    async def _replace_whole(self, reader: SessionReader) -> None:
        for left in reversed(range(MOST_WHOLE)):
            self._during_whole = Moved()
            fresh = Document(self.document.setting)
            skeleton, heights = await reader.skeleton(fresh.setting)
            async with self.changing:
                if reader is not self.reader:
                    return
                fresh.use(skeleton, heights, complete=True)
                if not await self._came_meanwhile(reader, fresh) and left:
                    continue
                renew = await rereading.renew(reader, self.document, self.view.shown_parts())
                if reader is self.reader:
                    self._moved.merge(self._during_whole)
                    await self._changed(partial(self._use_instead, renew, fresh), 0)
            break
        await self._catch_up()

    def _use_instead(self, renew: rereading.Change, fresh: Document) -> None:
        renew()
        self.document.use(fresh.skeleton, fresh.heights, complete=True)

    async def _came_meanwhile(self, reader: SessionReader, fresh: Document) -> bool:
        """Add what was written, and shown, while a session was read whole.

        Returns:
            Whether all of it is there now; else the session is to be read anew.
        """
        moved = self._during_whole
        if not moved or not reader.in_display_order:
            return True
        written = None if moved.vague else moved.sessions.get(reader.row.id, set())
        facts = await rereading.facts(reader, written or ())
        if facts is None:
            return True
        found = await rereading.reread(
            reader, fresh, written, facts.places, at_end=False, shown=range(0))
        if found is not None:
            found[1]()
        return found is not None
