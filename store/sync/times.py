"""Times of a session that cannot be right do not move it, nor what follows them.

Every draft goes through here, of whatever source. A time that no session can be of (the year 1,
9999, a number of 20 digits) counts as missing; one that is years or days off what is around it
takes the time of what is before. The session itself is of the time of its messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.sources.base.drafts import SessionDraft
from store.sources.base.odd_times import LONG_MS, OddTimes
from store.sources.base.values import EARLIEST_MS, LATEST_MS, plausible_ms


@dataclass(slots=True)
class Times:
    """The times of a session's rows.

    Attributes:
        created: When the session began; 0 where nothing tells.
        updated: When it last changed; 0 where nothing tells.
        messages: When each message began; 0 where it has no time of its own.
        odd: Times that messages have and that were not believed.
    """

    created: int
    updated: int
    messages: list[int]
    odd: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Moment:
    """A message's time, which a later one may change."""

    at: int


def believed(stamp: int) -> int:
    """Return a time; 0 for one that no session can be of."""
    return plausible_ms(stamp) or 0


def times_of(draft: SessionDraft) -> Times:
    """Return the times of a session and its messages."""
    stated = [message.created_at for message in draft.messages]
    if stated and not EARLIEST_MS <= min(stated) <= max(stated) < LATEST_MS:
        stated = [believed(at) for at in stated]
    times = Times(believed(draft.created_at), believed(draft.updated_at), stated)
    if not draft.times_settled:
        _settle_messages(times)
        _ask_session(times)
        times.odd.difference_update(times.messages)
    own = [at for at in times.messages if at]
    if own:
        # Of a session that is read from its middle on, the first message is not here.
        first = 0 if draft.times_settled else own[0]
        last = max(own)
        if not _fits(times.created, min(own) if first else 0, last, times):
            times.created = own[0]
        if not _fits(times.updated, first, last, times):
            times.updated = max(
                ended_at(message.updated_at, at, times)
                for message, at in zip(draft.messages, times.messages, strict=True) if at
            )  # fmt: skip
    times.created = times.created or times.updated
    times.updated = times.updated or times.created
    return times


def ended_at(stamp: int, began: int, times: Times) -> int:
    """Return when something ended.

    Args:
        stamp: The time that its source gives; 0 for none.
        began: When it began.
        times: The times of its session.

    Returns:
        The time when it began where the other one cannot be right.
    """
    if began <= stamp <= began + LONG_MS and not times.odd:
        return stamp
    ended = max(began, believed(stamp))
    return began if ended - began > LONG_MS or ended in times.odd else ended


def part_times(created: int, updated: int, at: int, times: Times) -> tuple[int, int]:
    """Return when a part began and ended.

    Args:
        created: The time when it began, as its source gives it; 0 for none.
        updated: The time when it ended; 0 for none.
        at: When its message began.
        times: The times of its session.
    """
    if at - LONG_MS <= created <= updated <= at + LONG_MS and not times.odd:
        return created, updated
    began = believed(created)
    if not began or began in times.odd or abs(began - at) > LONG_MS:
        began = at
    return began, ended_at(updated, began, times)


def _settle_messages(times: Times) -> None:
    """Let the messages tell which times fit neither what is before nor what is after."""
    moments, odd_times = list[_Moment](), OddTimes[_Moment]()
    for at in times.messages:
        if at:
            moment = _Moment(at)
            odd_times.take(moments, moment)
            moments.append(moment)
    last = next(filter(None, reversed(times.messages)), 0)
    if last and last != moments[-1].at and abs(last - times.created) <= LONG_MS:
        # It waits for a later one to agree, and the session does.
        moments[-1].at = last
    settled = iter(moments)
    for place, at in enumerate(times.messages):
        if at and (now := next(settled).at) != at:
            times.messages[place] = now
            times.odd.add(at)


def _ask_session(times: Times) -> None:
    """Let the session's own two times tell which message is years off, where few are."""
    created, updated = times.created, times.updated
    if not created or not updated or times.odd & {created, updated} or updated - created > LONG_MS:
        return
    early = [place for place, at in enumerate(times.messages) if 0 < at < created - LONG_MS]
    late = [place for place, at in enumerate(times.messages) if at > updated + LONG_MS]
    timed = sum(map(bool, times.messages))
    # What was taken over from elsewhere can be older than its session, but not newer.
    if len(late) + len(early) <= max(timed // 2, 1) and len(early) < timed:
        for place in sorted(early + late):
            times.odd.add(times.messages[place])
            times.messages[place] = times.messages[place - 1] if place else created


def _fits(stamp: int, first: int, last: int, times: Times) -> bool:
    """Return whether a session can have a time, by those of its messages."""
    return bool(stamp) and first - LONG_MS <= stamp <= last + LONG_MS and stamp not in times.odd
