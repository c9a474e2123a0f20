"""The main screen as it follows the store: what moved goes to the panes, and only that."""

from __future__ import annotations

import time
from typing import Any

from textual.timer import Timer

from store.engine import changes
from store.engine.changes import Moved
from store.errors import StoreError
from tui.host import Rewound
from tui.live.notifying import Notifier
from tui.live.polling import Health, Poller
from tui.live.summary import Freshness
from tui.main.bars import TopLine
from tui.main.panes import PanesScreen
from tui.messages import ProblemOccurred

COUNTED_EVERY_S = 1.0
"""Pace at which the store is counted for the top line while somebody writes."""
AGES_EVERY_S = 5.0
"""Pace at which times that have gone by are painted anew."""
OPEN_EVERY_S = 1.0
"""Pace at which sessions that run or wait are judged again: their process may have ended."""


class LiveScreen(PanesScreen):
    """Holds the panes, and follows the store for them."""

    def __init__(
        self, *args: Any, unfocused_poll_ms: int = 250, repaint_ms: int = 50, **kwargs: Any
    ) -> None:
        """Make the screen; what is written from now on is shown.

        Args:
            args: As ``PanesScreen``'s; the library first.
            unfocused_poll_ms: Between two looks at the store while the terminal has no focus.
            repaint_ms: At least this long between two passes over what moved; the first one
                is done at once.
            kwargs: As ``PanesScreen``'s.
        """
        library = args[0]
        # Before anything is read, so that nothing can be written in between unseen.
        self.poller = Poller(library, self._noticed, self._said, self._reopen)
        self._seq = changes.newest(library.database)
        super().__init__(*args, **kwargs)
        self.freshness = Freshness(library)
        self.notifier = Notifier(self)
        self._unfocused_poll_ms = unfocused_poll_ms
        self._repaint_s = repaint_ms / 1000
        self._due = self._all_moved = self._following = False
        self._owed = Moved()
        self.rewinds: dict[str, Rewound] = {}
        self._passed_at = self._counted_at = 0.0
        self._pass_due: Timer | None = None
        self._count_due: Timer | None = None

    def start_following(self) -> None:
        """Look at the store from now on; the pace is slower while the terminal has no focus."""
        if self._poll_ms:
            self._set_pace()
            self.watch(self.app, "app_focus", self._set_pace, init=False)
            self.set_interval(AGES_EVERY_S, self._time_went_by)
            self.set_interval(OPEN_EVERY_S, self.look_at_open)
        self.refresh_summary()

    def _set_pace(self) -> None:
        slow = max(self._poll_ms, self._unfocused_poll_ms)
        self.poller.start(self._poll_ms if self.app.app_focus else slow)

    def on_unmount(self) -> None:
        """Stop looking."""
        self.poller.stop()

    # What the poller notices

    def _noticed(self) -> None:
        self._due = True
        self._pass_soon()

    def _said(self, health: Health) -> None:
        self._show_summary()
        if health.state == "fresh":
            self._all_moved = True
            self._noticed()

    def _reopen(self) -> None:
        self._all_moved = True
        self.run_worker(self._open_again(), group="reopen", exit_on_error=False)

    async def _open_again(self) -> None:
        try:
            await self.library.reopen()
        except Exception as error:
            self.poller.reopened(error)
        else:
            self.poller.reopened()

    def look_now(self) -> None:
        """Show what the app itself has just written, without waiting for the next poll."""
        if not self.poller.poll():
            self._noticed()

    async def show_written(self) -> None:
        """Show what the app itself has just written; returns when the panes show it."""
        self._due = True
        await self._follow()

    def _pass_soon(self) -> None:
        if self._following or self._pass_due is not None or not self.is_attached:
            return
        pause = self._passed_at + self._repaint_s - time.monotonic()
        if pause <= 0:
            self.run_worker(self._follow(), group="live", exit_on_error=False)
        else:
            self._pass_due = self.set_timer(pause, self._pass_now)

    def _pass_now(self) -> None:
        self._pass_due = None
        self._pass_soon()

    async def _follow(self) -> None:
        try:
            await self.follow()
        except StoreError:
            # It is done again when the store can be read.
            self._all_moved = True
            self.poller.say("busy")
        except Exception as error:
            self.post_message(ProblemOccurred("What was written could not be shown", error))

    async def follow(self) -> None:
        """Hand all that has moved to the panes; returns when they show it.

        Raises:
            StoreError: The store is busy or gone; what is owed stays owed.
        """
        if self._following:
            return
        self._following = True
        try:
            while self._due:
                self._due, self._passed_at = False, time.monotonic()
                await self._hand_on()
        finally:
            self._following = False

    async def _hand_on(self) -> None:
        self._seq, moved = await self.library.read(changes.since, self._seq)
        moved.vague = moved.vague or self._all_moved
        self._all_moved = False
        self._owed.merge(moved)
        owed, self._owed = self._owed, Moved()
        try:
            if self.transcript is not None:
                await self.transcript.look_again(owed)
            await self.sessions.look_again(owed)
        except BaseException:
            self._owed.merge(owed)
            raise
        await self._look_at_rewinds(owed)
        self.freshness.moved_at = self.library.clock()
        self._count_soon()
        above: Any = self.app.screen
        if above is not self and hasattr(above, "store_changed"):
            above.store_changed()

    async def _look_at_rewinds(self, moved: Moved) -> None:
        """Report a rewind of the shown session that another program's write has undone."""
        session_id = self.shown_session
        rewound = self.rewinds.get(session_id or "")
        if session_id is None or rewound is None or not moved.touches(session_id):
            return
        from store.verbs.rewind import shown_again

        count = await self.library.read(
            shown_again, session_id, rewound.kept, rewound.last_at)
        if self.rewinds.get(session_id) != rewound:
            return
        if count and not rewound.told:
            what = "message" if count == 1 else "messages"
            self.app.notify(
                f"Another program shows {count} rewound {what} again · ctrl+r hides them again",
                severity="warning", timeout=20, markup=False)
        self.rewinds[session_id] = rewound._replace(told=bool(count))

    # The top line

    def _count_soon(self) -> None:
        if self._count_due is not None:
            return
        pause = self._counted_at + COUNTED_EVERY_S - time.monotonic()
        if pause <= 0:
            self.refresh_summary()
        else:
            self._count_due = self.set_timer(pause, self.refresh_summary)

    def refresh_summary(self) -> None:
        """Count the store again for the top line."""
        if self._count_due is not None:
            self._count_due.stop()
            self._count_due = None
        self._counted_at = time.monotonic()
        work: Any = self._summarise  # made only when it is its turn
        self.run_worker(work, group="summary", exclusive=True, exit_on_error=False)

    async def _summarise(self) -> None:
        try:
            active = await self.freshness.count()
        except StoreError:
            self.poller.say("busy")
        except Exception as error:
            self.post_message(ProblemOccurred("The store could not be counted", error))
        else:
            self.notifier.look(active, self.shown_session)
            self._show_summary()

    def _show_summary(self) -> None:
        if self.is_attached:
            self.query_one(TopLine).summary = self.freshness.summary(self.poller.health)

    async def _look_at_time(self) -> None:
        try:
            if self.transcript is not None:
                await self.transcript.time_went_by()
        except StoreError:
            self.poller.say("busy")
        except Exception as error:
            self.post_message(ProblemOccurred("What the session does is not known", error))

    def _time_went_by(self) -> None:
        self._show_summary()
        self.sessions.time_went_by()

    def look_at_open(self) -> None:
        """Judge again what runs or waits: in the list, in the transcript, in the top line."""
        self.sessions.look_at_open()
        look: Any = self._look_at_time  # made only when it is its turn
        if self.transcript is not None and self.transcript.may_have_ended:
            self.run_worker(look, group="time", exclusive=True, exit_on_error=False)
        if self.freshness.lives:
            self._count_soon()
