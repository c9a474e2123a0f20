"""Tokens and cost of a message: the sum over its steps.

``input`` is without what came from or went to the cache, ``output`` as the program counts
it (opencode format page, section 2.7). A message's own numbers are those of its last step,
so they count only where no step was written.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.values import mapping, number
from store.sources.opencode.stored import StoredMessage

Usage = dict[str, int]


def usage_of(message: StoredMessage) -> tuple[Usage | None, float | None]:
    """Return the tokens and the cost in dollars; None where there are none."""
    steps = [part.data for part in message.parts if part.data.get("type") == "step-finish"]
    if not steps:
        return _own(message.data)
    usage: Usage = {}
    for step in steps:
        for name, count in buckets(step.get("tokens")).items():
            usage[name] = usage.get(name, 0) + count
    costs = [cost for step in steps if (cost := _cost(step)) is not None]
    return usage, sum(costs) if costs else None


def _own(data: dict[str, Any]) -> tuple[Usage | None, float | None]:
    usage, cost = buckets(data.get("tokens")), _cost(data)
    return (usage if any(usage.values()) else None), (cost or None)


def buckets(tokens: Any) -> Usage:
    """Return the program's token counts as the five buckets."""
    counts = mapping(tokens)
    cache = mapping(counts.get("cache"))
    return {
        "input": number(counts.get("input")),
        "output": number(counts.get("output")),
        "reasoning": number(counts.get("reasoning")),
        "cache_read": number(cache.get("read")),
        "cache_write": number(cache.get("write")),
    }


def _cost(data: dict[str, Any]) -> float | None:
    cost = data.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if known and cost is not None else None
