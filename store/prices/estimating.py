"""What an answer costs by its tokens, where its agent tells no cost."""

from __future__ import annotations

from dataclasses import dataclass

from store.prices.table import STANDARD, Price, tier_of


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """The tokens of one answer, or the sum of answers that one price holds for.

    Attributes:
        input: As the five buckets of ``store.usage``: disjoint.
        output: Without reasoning.
        reasoning: Costs what output does.
        cache_read: Read from the cache.
        cache_write: Written to the cache, for whatever time.
        cache_write_1h: The part of ``cache_write`` that was written for an hour; None where
            the agent does not say, then all of it was written for 5 minutes.
        tier: How it was served: ``standard``, ``batch``, ``flex``, ``priority``, ``fast``, or as
            the agent says it.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int | None = None
    tier: str = STANDARD

    @property
    def asked(self) -> int:
        """The size of the request, which decides whether it costs more."""
        return self.input + self.cache_read + self.cache_write


def estimate(usage: AnswerUsage, price: Price | None, asked: int | None = None) -> float | None:
    """Return what tokens cost in dollars; None where a price that is needed is unknown.

    Args:
        usage: The tokens.
        price: The line for its model and tier, from ``PriceTable.price``.
        asked: The size of the request, where ``usage`` is a sum of several answers of a
            like size; None takes that of ``usage``. A larger request costs more as a whole.
    """
    if price is None or price.tier != tier_of(usage.tier):
        return None
    rates = price.rates(usage.asked if asked is None else asked)
    hour = min(max(usage.cache_write_1h or 0, 0), usage.cache_write)
    cost = 0.0
    for tokens, rate in (
        (usage.input, rates.input),
        (usage.output + usage.reasoning, rates.output),
        (usage.cache_read, rates.cache_read),
        (usage.cache_write - hour, rates.cache_write_5m),
        (hour, rates.cache_write_1h),
    ):
        if tokens:
            if rate is None:
                return None
            cost += tokens * rate
    return cost / 1_000_000
