"""Follows the store for a screen: polls it, and has what moved shown, and only that."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from textual.screen import Screen

from store.engine import changes
from store.engine.changes import Moved
from store.errors import StoreError
from store.system.records import NamedTuple
from tui.kit.later import Later
from tui.live.polling import Health, Poller
from tui.messages import ProblemOccurred
from tui.state.library import Library


class Pace(NamedTuple):
    """How often the store is looked at and the screen repainted.

    Attributes:
        poll_ms: Between two looks at the store; 0 never looks.
        unfocused_poll_ms: The same while the terminal has no focus.
        repaint_ms: At least this long between two passes over what moved; the first one is
            done at once.
        rests: After a pass, nothing is done for so many times as long as it took, at most for
            ``LONGEST_REST_S``.
    """

    poll_ms: int = 50
    unfocused_poll_ms: int = 250
    repaint_ms: int = 50
    rests: int = 9


LONGEST_REST_S = 0.3
"""A busy machine or server makes passes longer, and gets fewer of them."""


class StoreWatcher:
    """Notices what is written, by anybody, and has the panes show it.

    Attributes:
        poller: Looks at the store.
    """

    def __init__(
        self, screen: Screen[None], library: Library, pace: Pace, *,
        show: Callable[[Moved], Awaitable[None]], health_changed: Callable[[], None],
    ) -> None:
        """Make a watcher; what is written from now on is shown, once it is started.

        Args:
            screen: Runs timers and workers.
            library: The store.
            pace: How often.
            show: Shows what moved; what it raises leaves that to the next pass.
            health_changed: Called when the store turns busy, gone or fresh, or was opened again.
        """
        # Before anything is read, so that nothing can be written in between unseen.
        self.poller = Poller(library, self._noticed, self._health_changed, self._reopen)
        self._seq = changes.newest(library.database)
        self._screen, self._library, self.pace = screen, library, pace
        self._show, self._tell_health = show, health_changed
        self._due = self._all_moved = self._following = self._is_awaited = False
        self._owed = Moved()
        self.passed_at = self._took_s = 0.0
        self.pass_due: Later | None = None

    def start(self) -> None:
        """Look at the store from now on; less often while the terminal has no focus."""
        self._set_pace()
        self._screen.watch(self._screen.app, "app_focus", self._set_pace, init=False)

    def _set_pace(self) -> None:
        focused, pace = self._screen.app.app_focus, self.pace
        slow = max(pace.poll_ms, pace.unfocused_poll_ms)
        self.poller.start(pace.poll_ms if focused else slow)

    def stop(self) -> None:
        """Stop looking."""
        self.poller.stop()

    def busy(self) -> None:
        """Note that a read found the store busy."""
        self.poller.set_health("busy")

    def shows_all(self) -> bool:
        """Return whether all that is in the store now is shown, or on its way to the screen."""
        moved = self.poller.poll(file=True) or self._due or self._following or self._owed
        return not moved and self.poller.health.state == "fresh"

    # What the poller notices

    def _noticed(self) -> None:
        self._due = True
        self._pass_soon()

    def _health_changed(self, health: Health) -> None:
        self._tell_health()
        if health.state == "fresh":
            self._all_moved = True
            self._noticed()

    def _reopen(self) -> None:
        self._all_moved = True
        self._screen.run_worker(self._open_again(), group="reopen", exit_on_error=False)

    async def _open_again(self) -> None:
        try:
            await self._library.reopen()
        except Exception as error:
            self.poller.reopened(error)
        else:
            self.poller.reopened()
            self._tell_health()

    # Passes over what moved

    async def show_written(self) -> None:
        """Show what the app itself has just written; returns when the panes show it."""
        self._due = self._is_awaited = True
        await self._follow()

    def _pass_soon(self) -> None:
        if self._following or self.pass_due is not None or not self._screen.is_attached:
            return
        rest = self._took_s + min(self.pace.rests * self._took_s, LONGEST_REST_S)
        pause = self.passed_at + max(self.pace.repaint_ms / 1000, rest) - time.monotonic()
        if pause <= 0:
            self._screen.run_worker(
                # A coroutine is made only when it runs: the app may end before.
                self._follow, group="live", exit_on_error=False)  # type: ignore[arg-type]
        else:
            self.pass_due = Later(self._screen, pause, self.pass_now)

    def pass_now(self) -> None:
        """Show what moved, without waiting for the timer."""
        self.pass_due = None
        self._pass_soon()

    async def _follow(self) -> None:
        try:
            await self.follow()
        except StoreError:
            # It is done again when the store can be read.
            self._all_moved = True
            self.busy()
        except Exception as error:
            self._screen.post_message(
                ProblemOccurred("What was written could not be shown", error))

    async def follow(self) -> None:
        """Show all that has moved; returns when the panes show it.

        Raises:
            StoreError: The store is busy or gone; what moved is kept for the next pass.
        """
        if self._following:
            return
        self._following = True
        try:
            while self._due:
                self._due = self._is_awaited = False
                self.passed_at = time.monotonic()
                await self._pass()
                self._took_s = time.monotonic() - self.passed_at
                if not self._is_awaited:
                    break
        finally:
            self._following = False
        if self._due:
            self._pass_soon()

    async def _pass(self) -> None:
        self._seq, moved = await self._library.read(changes.since, self._seq)
        moved.vague = moved.vague or self._all_moved
        self._all_moved = False
        self._owed.merge(moved)
        owed, self._owed = self._owed, Moved()
        try:
            await self._show(owed)
        except BaseException:
            self._owed.merge(owed)
            raise
