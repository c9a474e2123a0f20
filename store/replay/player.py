"""Plays a session: where it is, how fast it goes, and whether waits are skipped."""

from __future__ import annotations

from store.replay.axis import Axis

SPEEDS = (1, 2, 4, 8, 15, 30, 60)
FIRST_SPEED = 4
MOST_STEP_MS = 1_000
"""A clock that jumps moves the replay by no more than this, times its speed."""


class Player:
    """A place in a replay that moves with time; it has no clock of its own.

    Attributes:
        playing: Whether it moves.
        speed: How many times as fast as the session, one of ``SPEEDS``.
        skip: Whether waits are shortened.
        running: Whether the session still runs, so that its end is the present.
        live: Whether the present is followed: the end of a session that runs was reached.
        growing: Whether more of the session is still to come: at the end of what there is, the
            replay waits, and goes on when it has come.
    """

    def __init__(self, axis: Axis, *, running: bool = False) -> None:
        """Be at the begin, and not moving.

        Args:
            axis: The times of the session.
            running: Whether the session still runs.
        """
        self.axis = axis
        self.playing, self.live, self.running = False, False, running
        self.growing = self._to_end = False
        self.speed, self.skip = FIRST_SPEED, True
        self._played = 0.0

    @property
    def at(self) -> int:
        """The moment that is shown, epoch ms."""
        return self.axis.moment(self._played, skip=self.skip)

    @property
    def length(self) -> int:
        """How long all of it takes at the plain speed, ms."""
        return self.axis.length(skip=self.skip)

    @property
    def share(self) -> float:
        """How much of it was played, 0 to 1; of nothing all."""
        return self.share_of(self.at)

    @property
    def at_end(self) -> bool:
        """Whether there is nothing more to play."""
        return self._played >= self.length

    def share_of(self, at: int) -> float:
        """Return where a moment is, as a share of the whole."""
        length = self.length
        return self.axis.played(at, skip=self.skip) / length if length else 1.0

    def advance(self, elapsed_ms: float) -> bool:
        """Go on, as time has gone by.

        Args:
            elapsed_ms: How much, by any clock; less than nothing is nothing.

        Returns:
            Whether the moment changed.
        """
        if not self.playing or self.live:
            return False
        before = self._played
        self._played += max(0.0, min(elapsed_ms, MOST_STEP_MS)) * self.speed
        if self._played >= self.length:
            self._end()
        return self._played != before

    def _end(self) -> None:
        self._played = float(self.length)
        if self.growing:
            return
        self.live = self.running
        self.playing = self.running

    def toggle(self) -> None:
        """Stop, or go on; from the end, play it all again."""
        if self.live:
            self.live = self.playing = False
        elif self.playing:
            self.playing = False
        else:
            if self.at_end and not self.growing:
                if self.running:
                    self._end()
                    return
                self._played = 0.0
            self.playing = True

    def seek(self, at: int) -> None:
        """Go to a moment; whether it plays stays as it is."""
        self.live = self._to_end = False
        self._played = self.axis.played(at, skip=self.skip)
        if self.playing and self.at_end:
            self._end()

    def seek_share(self, share: float) -> None:
        """Go to a share of the whole, 0 to 1."""
        self.seek(self.axis.moment(share * self.length, skip=self.skip))

    def seek_end(self) -> None:
        """Go to the end, once it has come; of one that runs, the present is followed then."""
        self._to_end = self.growing
        self._end()

    def change_speed(self, step: int) -> bool:
        """Play at the next faster (1) or slower (-1) speed; return whether there is one."""
        place = SPEEDS.index(self.speed) + step
        if not 0 <= place < len(SPEEDS):
            return False
        self.speed = SPEEDS[place]
        return True

    def toggle_skip(self) -> None:
        """Shorten waits, or play them whole; the moment stays."""
        at = self.at
        self.skip = not self.skip
        self._played = self.axis.played(at, skip=self.skip)

    def take(self, axis: Axis, *, running: bool, growing: bool = False) -> None:
        """Take the session as it is now; the moment stays, or the present is followed.

        Args:
            axis: Its times now.
            running: Whether it still runs.
            growing: Whether more of it is still to come.
        """
        at, live = self.at, self.live or self._to_end
        self.axis, self.running, self.growing = axis, running, growing
        if live:
            self._end()
            return
        self._played = self.axis.played(at, skip=self.skip)
