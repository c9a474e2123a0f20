"""Token counts as five disjoint buckets, once per API response.

Source: the Codex format page, section 3.4. The API's ``input_tokens`` holds the cached
ones, its ``output_tokens`` the reasoning. Versions up to 0.98 write only ``token_count``,
and repeat it; where ``token_usage_record`` is written, that alone counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.values import mapping, number, string

Usage = dict[str, int]


def usage_of(raw: dict[str, Any]) -> Usage:
    """Return an API response's usage."""
    given, cached = number(raw.get("input_tokens")), number(raw.get("cached_input_tokens"))
    written = number(raw.get("cache_write_input_tokens"))
    output, reasoning = number(raw.get("output_tokens")), number(raw.get("reasoning_output_tokens"))
    cached = min(cached, given)
    written = min(written, given - cached)
    reasoning = min(reasoning, output)
    return {
        "input": given - cached - written,
        "output": output - reasoning,
        "reasoning": reasoning,
        "cache_read": cached,
        "cache_write": written,
    }


@dataclass(slots=True)
class Counting:
    """Tells which of a thread's token lines count.

    Attributes:
        total: What the last visible ``token_count`` says about the whole thread.
        context: Tokens of the last request and its answer.
    """

    total: dict[str, Any] | None = None
    context: int | None = None
    _last: dict[str, Any] | None = None
    _has_records: bool = False
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def take_record(self, payload: dict[str, Any]) -> Usage | None:
        """Return the usage of a ``token_usage_record``; None where it was counted before."""
        self._has_records = True
        thread, response = string(payload.get("thread_id")), string(payload.get("response_id"))
        if thread and response:
            if (thread, response) in self._seen:
                return None
            self._seen.add((thread, response))
        return usage_of(mapping(payload.get("usage")))

    def take_count(self, payload: dict[str, Any], *, hidden: bool) -> Usage | None:
        """Return the usage of a ``token_count``; None unless it is a response's only count."""
        info = mapping(payload.get("info"))
        total, last = info.get("total_token_usage"), mapping(info.get("last_token_usage"))
        if not isinstance(total, dict):
            return None
        moved, self._last = total != self._last, total
        self.total = self.total if hidden else total
        context = last.get("total_tokens")
        self.context = context if type(context) is int else self.context
        return usage_of(last) if moved and last and not self._has_records else None
