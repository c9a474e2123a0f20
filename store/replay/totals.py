"""What a session had used, and how large its context was, at a moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from store.replay.reading import Answer
from store.replay.timeline import Timeline
from store.usage import Spent

_LOOKED_BACK = 500
"""Answers that are looked at for one that tells the size of the context."""


class Totals:
    """Sums over the answers of a session, which count once they are complete."""

    def __init__(self, timeline: Timeline, answers: Iterable[Answer] = ()) -> None:
        """Take what the answers used.

        Args:
            timeline: When each of them was complete.
            answers: In any order; those of messages that the timeline lacks are left out.
        """
        self._timeline = timeline
        known = ((place, answer) for answer in answers
                 if (place := timeline.place_of(answer.message_id)) is not None)
        self._answers = sorted(known, key=lambda each: timeline.message_ends[each[0]])
        self._times = [timeline.message_ends[place] for place, _answer in self._answers]
        self._sums = [Spent()]
        for _place, answer in self._answers:
            total = replace(self._sums[-1])
            total.add(answer.spent)
            self._sums.append(total)

    def spent(self, at: int) -> Spent:
        """Return what the answers that were complete at a moment used."""
        return self._sums[bisect_right(self._times, at)]

    def turn_spent(self, message: int, at: int) -> tuple[Spent | None, int]:
        """Return what the answers of a message's turn used, complete at a moment, and their number.

        Args:
            message: Any message of the turn.
            at: Epoch ms.
        """
        first, end = self._timeline.turn_around(message)
        spent, count = Spent(), 0
        if first is None:
            return None, 0
        low = bisect_right(self._times, self._timeline.message_starts[first] - 1)
        for place, answer in self._answers[low: bisect_right(self._times, at)]:
            if first <= place < end:
                spent.add(answer.spent)
                count += 1
        return (spent, count) if count else (None, 0)

    def context(self, at: int) -> int:
        """Return how many tokens were in the context at a moment, 0 where no answer told."""
        place = bisect_right(self._times, at)
        for number, answer in reversed(self._answers[max(0, place - _LOOKED_BACK): place]):
            if answer.context and not self._timeline.is_hidden(number, at):
                return answer.context
        return 0
