"""What an answer costs by its tokens, where its agent tells no cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from store.prices.table import STANDARD, Price, PriceTable, tier_of
from store.usage import Spent, spent_of


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


def usage_details(metadata: Mapping[str, Any]) -> tuple[str, int]:
    """Return the tier of an answer, and what it wrote to the cache for an hour.

    Args:
        metadata: The answer's decoded ``metadata_json``.
    """
    details = metadata.get("usage_details")
    if not isinstance(details, dict):
        return "", 0
    tier, written = details.get("tier"), details.get("cache_write_1h")
    return tier if isinstance(tier, str) else "", max(0, written) if type(written) is int else 0


def priced(metadata: Mapping[str, Any], prices: PriceTable | None) -> Spent:
    """Return what an answer spent, estimated where its agent tells no cost.

    Args:
        metadata: The answer's decoded ``metadata_json``.
        prices: Of models; None estimates nothing.
    """
    spent = spent_of(metadata)
    model = metadata.get("model")
    if prices is None or spent.cost or not spent.total or not isinstance(model, dict):
        return spent
    name, provider = model.get("model_id"), model.get("provider_id")
    if isinstance(name, str):
        tier, written = usage_details(metadata)
        price = prices.price(name, provider if isinstance(provider, str) else None, tier)
        usage = AnswerUsage(
            spent.input, spent.output, spent.reasoning, spent.cache_read, spent.cache_write,
            written, tier,
        )  # fmt: skip
        spent.estimated = estimate(usage, price)
        # An agent writes 0 where it knows no price.
        spent.cost = None if spent.estimated is not None else spent.cost
    return spent
