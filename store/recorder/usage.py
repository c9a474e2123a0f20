"""Token usage of one message: summed over its steps, whatever shape the host sends.

The stream itself carries no usage; hosts put one into the message metadata, once for each
step (version 6 after ``finish-step``, version 7 before it) and often once more, as the
total, with ``finish``. Source: formats of the AI SDK's ``LanguageModelUsage``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from store.usage import KEYS

Buckets = dict[str, int]


def _count(value: object) -> int:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53
    return int(value) if fits else 0  # type: ignore[call-overload]


def buckets_of(usage: object) -> Buckets | None:
    """Return a usage as the five disjoint buckets.

    Args:
        usage: The contract's ``{input, output, reasoning, cache_read, cache_write}``, or
            the SDK's ``{inputTokens, outputTokens, ...}``, whose input includes what came
            from the cache and whose output includes the reasoning.

    Returns:
        None where it is neither.
    """
    if not isinstance(usage, Mapping):
        return None
    if any(key in usage for key in KEYS):
        return {key: _count(usage.get(key)) for key in KEYS}
    if "inputTokens" in usage or "outputTokens" in usage:
        return _from_sdk(usage)
    return None


def _from_sdk(usage: Mapping[str, Any]) -> Buckets:
    read_from = usage.get("inputTokenDetails")
    written_to = usage.get("outputTokenDetails")
    inputs = read_from if isinstance(read_from, Mapping) else {}
    outputs = written_to if isinstance(written_to, Mapping) else {}
    cache_read = _count(inputs.get("cacheReadTokens", usage.get("cachedInputTokens")))
    cache_write = _count(inputs.get("cacheWriteTokens"))
    reasoning = _count(outputs.get("reasoningTokens", usage.get("reasoningTokens")))
    fresh = max(_count(usage.get("inputTokens")) - cache_read - cache_write, 0)
    said = max(_count(usage.get("outputTokens")) - reasoning, 0)
    return {
        "input": _count(inputs["noCacheTokens"]) if inputs.get("noCacheTokens") else fresh,
        "output": _count(outputs["textTokens"]) if outputs.get("textTokens") else said,
        "reasoning": reasoning, "cache_read": cache_read, "cache_write": cache_write,
    }


def added(left: Mapping[str, int], right: Mapping[str, int], sign: int = 1) -> Buckets:
    """Return ``left + sign * right``, bucket by bucket.

    Args:
        left: One usage.
        right: The other.
        sign: 1 to add, -1 to take away.
    """
    return {key: left.get(key, 0) + sign * right.get(key, 0) for key in KEYS}


class UsageSum:
    """The usage of one message so far.

    Attributes:
        total: What earlier runs recorded of this message, and this run's steps.
    """

    def __init__(self, earlier: Mapping[str, int] | None = None) -> None:
        """Start with what is stored of the message already."""
        self.total: Buckets = added(earlier or {}, {})
        self._steps = 0
        self._step: Buckets = {}
        self._counted = False

    def go_on(self) -> None:
        """Note that what is stored is of the stream that goes on now: its total counts once."""
        self._counted = any(self.total.values())

    def start_step(self) -> None:
        """Note that a step starts; what is reported from now on is another step's."""
        self._steps += 1
        self._step = {}

    def report(self, usage: object) -> bool:
        """Take the usage of the step that runs or has just ended.

        A second report for one step replaces the first. Where a stream has no steps each
        report is one.

        Returns:
            Whether it was a usage.
        """
        found = buckets_of(usage)
        if found is None:
            return False
        self.total = added(added(self.total, self._step, -1), found)
        self._step = found if self._steps else {}
        self._counted = True
        return True

    def report_total(self, metadata: Mapping[str, Any]) -> bool:
        """Take what came with ``finish``: it counts only where no step reported.

        Returns:
            Whether it counted.
        """
        if self._counted:
            return False
        found = buckets_of(metadata.get("usage")) or buckets_of(metadata.get("totalUsage"))
        if found is not None:
            self.total = added(self.total, found)
            self._counted = True
        return found is not None
