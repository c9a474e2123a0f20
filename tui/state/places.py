"""The places that one has been at, to go back and forth through, as Vim's jump list does it."""

from __future__ import annotations

from typing import Any

from store.system.records import NamedTuple

MOST_VISITS = 100


class Visit(NamedTuple):
    """A part that was read, by key: it is found again whatever the session has become.

    Attributes:
        session_id: The session.
        message_id: The message; "" for the session as a whole.
        part: The part's index in the message.
        place: What the transcript showed, as ``TranscriptPane.place`` returns it.
    """

    session_id: str
    message_id: str = ""
    part: int = 0
    place: Any = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What makes two visits the same."""
        return self.session_id, self.message_id, self.part


class Places:
    """Keeps the places that jumps have left; none of them twice."""

    def __init__(self) -> None:
        """Start without places."""
        self._visits: list[Visit] = []
        self._at = 0

    def __len__(self) -> int:
        """Return how many places there are."""
        return len(self._visits)

    @property
    def number(self) -> int:
        """Which of the places one is at, from 1; one more than there are after a new jump."""
        return self._at + 1

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The places, the oldest first."""
        return tuple(self._visits)

    def leave(self, here: Visit) -> None:
        """Keep the place that a jump leaves, as the newest one."""
        self._visits = [visit for visit in self._visits if visit.key != here.key]
        self._visits.append(here)
        del self._visits[:-MOST_VISITS]
        self._at = len(self._visits)

    def step(self, by: int, here: Visit | None) -> Visit | None:
        """Go to the next (1) or previous (-1) place; None, and nothing changes, without one.

        Args:
            by: The direction.
            here: Where one is. It is kept when one goes back from the newest place, so that one
                can come forward to it again.
        """
        if by < 0 and here is not None and self._at == len(self._visits):
            self.leave(here)
            self._at -= 1
        at = self._at + by
        while 0 <= at < len(self._visits) and here is not None and (
            self._visits[at].key == here.key
        ):
            at += by
        if not 0 <= at < len(self._visits):
            return None
        self._at = at
        return self._visits[at]

    def drop(self, by: int) -> None:
        """Forget the place that ``step`` returned, which is gone; go on from there.

        Args:
            by: The direction of that step.
        """
        del self._visits[self._at]
        if by > 0:
            self._at -= 1
