"""What requests used, as pi counts it.

Source: the pi section of the format page, and pi's own description of its messages:
``input`` is without what came from the cache, ``output`` holds what was reasoned.
"""

from __future__ import annotations

from store.sources.base.values import mapping, number


def usage_of(usage: object) -> dict[str, int] | None:
    """Return pi's counts as our five disjoint buckets; None where there are none."""
    bag = mapping(usage)
    if not bag:
        return None
    output = number(bag.get("output"))
    reasoning = min(number(bag.get("reasoning")), output)
    return {
        "input": number(bag.get("input")),
        "output": output - reasoning,
        "reasoning": reasoning,
        "cache_read": number(bag.get("cacheRead")),
        "cache_write": number(bag.get("cacheWrite")),
    }


def cost_of(usage: object) -> float | None:
    """Return what a request cost, in dollars; None where it is not recorded, or it was free."""
    cost = mapping(mapping(usage).get("cost")).get("total")
    return cost if isinstance(cost, int | float) and cost else None
