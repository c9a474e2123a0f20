"""The figures of a group of answers, calls and turns, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from store.usage import BUCKETS

NO_TOKENS = (0,) * len(BUCKETS)
_CACHE_READ = next(place for place, bucket in enumerate(BUCKETS) if bucket.key == "cache_read")
_ASKED = tuple(
    place for place, bucket in enumerate(BUCKETS)
    if bucket.key in ("input", "cache_read", "cache_write")
)  # fmt: skip


@dataclass(slots=True)
class Figures:
    """What one group, or the whole, comes to.

    Attributes:
        sessions: Sessions with an answer, a call or a turn in it. A session may be in several
            groups, so these numbers do not add up.
        answers: Answers of models, copies left out.
        copies: Answers that are copies of counted ones.
        tokens: The five buckets, in the order of ``store.usage.BUCKETS``.
        told_usd: Dollars that agents told.
        told_answers: Answers whose cost is in these dollars.
        estimated_usd: Dollars by the table of prices, for answers without a told cost.
        estimated_answers: Answers whose cost is in these.
        unknown_answers: Answers without a known cost.
        calls: Tool calls.
        failed: Calls that failed.
        denied: Calls that the user refused.
        timed: Calls whose duration is known.
        tool_ms: The sum of these durations.
        active_ms: Time in turns, without pauses of more than ten minutes.
    """

    sessions: int = 0
    turns: int = 0
    answers: int = 0
    copies: int = 0
    tokens: tuple[int, ...] = NO_TOKENS
    told_usd: float = 0.0
    told_answers: int = 0
    estimated_usd: float = 0.0
    estimated_answers: int = 0
    unknown_answers: int = 0
    calls: int = 0
    failed: int = 0
    denied: int = 0
    timed: int = 0
    tool_ms: int = 0
    active_ms: int = 0

    @property
    def total(self) -> int:
        """All tokens."""
        return sum(self.tokens)

    @property
    def cost_usd(self) -> float | None:
        """What it cost, told and estimated; None where nothing is known."""
        known = self.told_usd or self.covered
        return self.told_usd + self.estimated_usd if known else None

    @property
    def covered(self) -> int:
        """Answers whose cost is known: "$0.60 of 35 of 53 answers"."""
        return self.told_answers + self.estimated_answers

    @property
    def is_estimate(self) -> bool:
        """Whether a part of the cost is an estimate."""
        return self.estimated_answers > 0

    @property
    def cache_share(self) -> float | None:
        """How much of what the models were given came from the cache, 0 to 1."""
        asked = sum(self.tokens[place] for place in _ASKED)
        return self.tokens[_CACHE_READ] / asked if asked else None

    def add(self, other: Figures) -> None:
        """Add other figures to these; ``sessions`` stay, as they do not add up."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tokens = added(self.tokens, other.tokens)


def added(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Return the sums of two rows of buckets."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


_SUMS = tuple(
    each.name for each in fields(Figures) if each.name not in ("sessions", "tokens")
)
