"""Token counts as five disjoint buckets, once per API message.

Every row of an API message repeats its usage, some with the opening value only, and a
fork taken after a compaction zeroes the rows it copies: the row with the largest
``output_tokens`` counts (Claude Code format page, section 3).
"""

from __future__ import annotations

from typing import Any

from store.sources.claude_code.rows import mapping, number

SYNTHETIC = "<synthetic>"


def usage_of(message: dict[str, Any]) -> dict[str, int] | None:
    """Return an API message's usage, or None where it has none.

    ``output`` is without ``reasoning``: their sum is the API's ``output_tokens``.
    """
    raw = message.get("usage")
    if not isinstance(raw, dict) or message.get("model") == SYNTHETIC:
        return None
    output = _count(raw, "output_tokens")
    details = raw.get("output_tokens_details")
    reasoning = 0
    if details:
        reasoning = max(0, min(number(mapping(details).get("thinking_tokens")), output))
    return {
        "input": _count(raw, "input_tokens"),
        "output": output - reasoning,
        "reasoning": reasoning,
        "cache_read": _count(raw, "cache_read_input_tokens"),
        "cache_write": _count(raw, "cache_creation_input_tokens"),
    }


def details_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return what else decides the price of an API message, where it is not the usual.

    ``cache_write_1h`` is the part of the cache's tokens that was written for an hour, ``tier``
    how the request was served: fast, as a batch, or in the United States alone.
    """
    raw = mapping(message.get("usage"))
    details: dict[str, Any] = {}
    hour = _count(mapping(raw.get("cache_creation")), "ephemeral_1h_input_tokens")
    if hour:
        details["cache_write_1h"] = hour
    said = [raw.get("service_tier"), raw.get("speed")]
    said += ["us"] if raw.get("inference_geo") == "us" else []
    tier = " ".join(one for one in said if isinstance(one, str) and one not in _USUAL)
    if tier:
        details["tier"] = tier[:64]
    return details


_USUAL = ("", "standard", "default", "auto")


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    if type(value) is not int or not 0 <= value < 1_000_000_000:
        value = max(0, number(value))
    return value


def larger(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    """Return the usage with the larger output; the first when they are equal."""
    if one is None or other is None:
        return one or other
    more = other["output"] + other["reasoning"] > one["output"] + one["reasoning"]
    return other if more else one


def is_zeroed(usage: dict[str, int] | None) -> bool:
    """Return whether a usage looks like a copy whose counts were set to 0."""
    return usage is not None and not any(usage.values())
