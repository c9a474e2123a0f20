"""The end of the open session: whether it is followed, and what has come below meanwhile."""

from __future__ import annotations

from tui.kit.glyphs import glyphs
from tui.kit.lines import Run
from tui.transcript.document import Key
from tui.transcript.running import RunningPane
from tui.transcript.skeleton import QUEUED

MOST_BELOW = 9_999
LIVE = ("running", "retrying", "waiting-approval", "waiting-input")
"""States in which more is expected at the end."""


class EndPane(RunningPane):
    """The transcript with what it says of its end."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start without an end that was seen."""
        super().__init__(id=id)
        self._known_end: Key | None = None

    def show_around(self) -> None:
        """Bring header and status up to date."""
        if self.document.complete and (self.view.at_end or self._end_is_seen()):
            self._known_end = self._end_key()
        super().show_around()

    def _end(self) -> int:
        """Return the last part that is no queued message's, -1 where there is none."""
        part = len(self.document) - 1
        while part >= 0 and self.document.skeleton.flags_of(part) & QUEUED:
            part -= 1
        return part

    def _end_key(self) -> Key | None:
        end = self._end()
        return self.document.skeleton.key(end) if end >= 0 else None

    def _end_is_seen(self) -> bool:
        return self._known_end is None or self.view.shown_parts().stop > self._end()

    def below(self) -> int:
        """Return how many parts have come below since the end was last seen."""
        document, part, count = self.document, self._end(), 0
        while part >= 0 and count < MOST_BELOW:
            if document.skeleton.key(part) == self._known_end:
                return count
            count += document.shows(part)
            part -= 1
        return 0 if part < 0 else count

    def _follow_runs(self) -> list[Run]:
        running = self.activity is not None and self.activity.state in LIVE
        if self.view.at_end:
            return [(f"{glyphs().down} {'following' if running else 'end'}  ", "ok")]
        count = self.below()
        if not count:
            return []
        return [(f"{glyphs().down} {count:,} new below", "tool bold"), ("  G  ", "muted")]
