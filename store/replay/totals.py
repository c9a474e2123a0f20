"""What a session had used, and how large its context was, at a moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType

from store.replay.log import FOREVER
from store.replay.reading import Answer
from store.replay.timeline import Timeline
from store.usage import Spent

_LOOKED_BACK = 500
"""Answers that are looked at for one that tells the size of the context."""
_NONE: Mapping[int, Answer] = MappingProxyType({})


class _Sums:
    """What answers used, summed up in the order of some times of theirs."""

    def __init__(self, timed: Iterable[tuple[int, Answer]]) -> None:
        """Take answers with their times."""
        ordered = sorted(timed, key=itemgetter(0))
        self._times = [at for at, _answer in ordered]
        self._sums, self._costs, self._estimates = [Spent()], [0], [0]
        for _at, answer in ordered:
            total = replace(self._sums[-1])
            total.add(answer.spent)
            self._sums.append(total)
            self._costs.append(self._costs[-1] + (answer.spent.cost is not None))
            self._estimates.append(self._estimates[-1] + (answer.spent.estimated is not None))

    def at(self, moment: int) -> tuple[Spent, int, int]:
        """Return the sum until a moment, and how many have a cost, and an estimate."""
        place = bisect_right(self._times, moment)
        return self._sums[place], self._costs[place], self._estimates[place]


class Totals:
    """Sums over the answers of a session, which count once they are complete.

    One that was deleted counts until then.
    """

    def __init__(
        self, timeline: Timeline, answers: Iterable[Answer] = (),
        past: Mapping[int, Answer] = _NONE,
    ) -> None:
        """Take what the answers used.

        Args:
            timeline: When each of them was complete.
            answers: In any order; those of messages that are not there in the end are left out.
            past: Those of messages that are gone in the end, by the numbers of these.
        """
        self._timeline = timeline
        places = timeline.places_in_the_end()
        known = [(places[answer.message_id], answer, FOREVER) for answer in answers
                 if answer.message_id in places]
        known += [(place, answer, timeline.gone_at(place)) for place, answer in past.items()]
        self._answers = sorted(known, key=lambda each: timeline.message_ends[each[0]])
        self._times = [timeline.message_ends[place] for place, _answer, _until in self._answers]
        self._came = _Sums((at, answer) for at, (_place, answer, _until) in zip(
            self._times, self._answers, strict=True))
        self._went = _Sums(
            (until, answer) for _place, answer, until in self._answers if until < FOREVER)

    def spent(self, at: int) -> Spent:
        """Return what the answers used that were complete, and there, at a moment."""
        (came, costs, estimates), (went, lost, unsure) = self._came.at(at), self._went.at(at)
        if went == Spent():
            return came
        found = Spent.of(
            (one - other for one, other in zip(came.tokens, went.tokens, strict=True)),
            _left(came.cost, went.cost, costs - lost))
        found.estimated = _left(came.estimated, went.estimated, estimates - unsure)
        return found

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
        for place, answer, until in self._answers[low: bisect_right(self._times, at)]:
            if first <= place < end and at < until:
                spent.add(answer.spent)
                count += 1
        return (spent, count) if count else (None, 0)

    def context(self, at: int) -> int:
        """Return how many tokens were in the context at a moment, 0 where no answer told."""
        place = bisect_right(self._times, at)
        for number, answer, until in reversed(
                self._answers[max(0, place - _LOOKED_BACK): place]):
            if answer.context and at < until and not self._timeline.is_hidden(number, at):
                return answer.context
        return 0


def _left(came: float | None, went: float | None, count: int) -> float | None:
    """Return the dollars that are left of some; None where no answer that told any is left."""
    return max(0.0, round((came or 0.0) - (went or 0.0), 9)) if count else None
