"""What was noted for each entry of a session, so that the last ones can be taken back.

A session grows at its end: its last answer gets its calls, a call its result. Only what was
made of the entries from the first changed one on is made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_ABSENT = object()


@dataclass(slots=True)
class _Step:
    """What one entry brought.

    Attributes:
        needs: The first entry whose message it changed; its own place where none.
        made: How many messages there were before it.
        before: What was there before: dict, key, value.
    """

    needs: int
    made: int
    before: list[tuple[dict[Any, Any], Any, Any]] = field(default_factory=list)


class Ledger:
    """The steps of a session, one for each entry."""

    def __init__(self) -> None:
        """Start without steps."""
        self._steps: list[_Step] = []

    def __len__(self) -> int:
        """Return how many entries were taken."""
        return len(self._steps)

    def begin(self, made: int) -> None:
        """Begin the step of the next entry.

        Args:
            made: How many messages there are.
        """
        self._steps.append(_Step(len(self._steps), made))

    def put(self, into: dict[Any, Any], key: Any, value: Any) -> None:
        """Set a value, such that it can be taken back with the step.

        Args:
            into: The object that is changed.
            key: Which of its values.
            value: The new value.
        """
        self._steps[-1].before.append((into, key, into.get(key, _ABSENT)))
        into[key] = value

    def needs(self, place: int) -> None:
        """Note that the step changed what an earlier entry became."""
        self._steps[-1].needs = min(self._steps[-1].needs, place)

    def back_to(self, place: int) -> int | None:
        """Take back the steps from an entry on, and those that they are tied to.

        Returns:
            How many messages there were before the first step that was taken back; None
            where there was none to take back.
        """
        while place < len(self._steps):
            first = min(step.needs for step in self._steps[place:])
            if first >= place:
                break
            place = first
        if place >= len(self._steps):
            return None
        made = self._steps[place].made
        for step in reversed(self._steps[place:]):
            for into, key, value in reversed(step.before):
                if value is _ABSENT:
                    del into[key]
                else:
                    into[key] = value
        del self._steps[place:]
        return made
