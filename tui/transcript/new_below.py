"""How many parts have come below since the end was last seen."""

from __future__ import annotations

from tui.transcript.document import Key
from tui.transcript.shown import ShownSession
from tui.transcript.skeleton import QUEUED

MOST_BELOW = 9_999


class NewBelow:
    """Counts the parts below the end that the user has seen; queued messages do not count."""

    def __init__(self, shown: ShownSession) -> None:
        """Start without an end that was seen."""
        self._shown = shown
        self._seen: Key | None = None

    def reset(self) -> None:
        """Forget the end that was seen: another session is shown."""
        self._seen = None

    def note(self) -> None:
        """Remember the end where it is on the screen."""
        if self._shown.document.complete and (self._shown.view.at_end or self._end_is_seen()):
            end = self._end()
            self._seen = self._shown.document.skeleton.key(end) if end >= 0 else None

    def _end(self) -> int:
        """Return the last part of a message that is not queued, -1 where there is none."""
        skeleton = self._shown.document.skeleton
        part = len(skeleton) - 1
        while part >= 0 and skeleton.flags_of(part) & QUEUED:
            part -= 1
        return part

    def _end_is_seen(self) -> bool:
        return self._seen is None or self._shown.view.shown_parts().stop > self._end()

    def count(self) -> int:
        """Return how many parts have come below since the end was last seen."""
        document, part, count = self._shown.document, self._end(), 0
        while part >= 0 and count < MOST_BELOW:
            if document.skeleton.key(part) == self._seen:
                return count
            count += document.shows(part)
            part -= 1
        return 0 if part < 0 else count
