"""What requests used, each counted once, by the id of its call.

Source: the Copilot section of the format page: ``inputTokens`` holds what the cache gave,
``outputTokens`` what was reasoned; the totals of a shutdown are never added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.values import mapping, number, string
from store.sources.copilot.event import Event

TYPES = ("session.usage_record", "assistant.usage")


@dataclass(frozen=True, slots=True)
class Used:
    """What one request used.

    Attributes:
        usage: Our five buckets.
        source_session: The session that spent it; another one's in a copy.
        number: Of its record.
    """

    usage: dict[str, int]
    model: str | None
    provider: str
    details: dict[str, Any]
    source_session: str | None
    number: int
    at: int
    agent: str | None


@dataclass(slots=True)
class Spent:
    """The requests of a session by the id of their call; those without one in order."""

    _by_call: dict[str, Used] = field(default_factory=dict)
    _taken: dict[str, Used] = field(default_factory=dict)

    def note(self, event: Event) -> bool:
        """Take a usage event; return whether its request was not known yet."""
        bag = mapping(event.data.get("usage")) or event.data
        call_id = string(bag.get("apiCallId")) or event.id
        if call_id in self._by_call or call_id in self._taken:
            return False
        self._by_call[call_id] = _used(bag, event)
        return True

    def take(self, call_id: str | None) -> Used | None:
        """Return what a call used, once."""
        used = self._by_call.pop(call_id, None) if call_id else None
        if used is not None and call_id is not None:
            self._taken[call_id] = used
        return used

    def left(self) -> list[tuple[str, Used]]:
        """Return the requests that have no answer."""
        return list(self._by_call.items())


def buckets(given: int, output: int, read: int, written: int, reasoning: int) -> dict[str, int]:
    """Return Copilot's counts as our five disjoint buckets.

    Args:
        given: Input tokens, those of the cache among them.
        output: Output tokens, reasoning among them.
        read: Tokens read from the cache.
        written: Tokens written to the cache.
        reasoning: Reasoning tokens.
    """
    reasoning = min(reasoning, output)
    return {
        "input": max(given - read - written, 0),
        "output": output - reasoning,
        "reasoning": reasoning,
        "cache_read": read,
        "cache_write": written,
    }


def _used(bag: dict[str, Any], event: Event) -> Used:
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    given, output, read, written = (number(bag.get(name)) for name in names)
    details: dict[str, Any] = {}
    for name, key in (("finish_reason", "finishReason"), ("effort", "reasoningEffort"),
                      ("request_id", "apiCallId"), ("initiator", "initiator")):  # fmt: skip
        if string(bag.get(key)):
            details[name] = bag[key]
    if number(bag.get("duration")):
        details["duration_ms"] = number(bag["duration"])
    if isinstance(bag.get("cost"), int | float) and bag["cost"]:
        details["premium_requests"] = bag["cost"]
    own = bag.get("isByok") is True
    return Used(
        buckets(given, output, read, written, number(bag.get("reasoningTokens"))),
        string(bag.get("model")),
        (string(bag.get("providerType")) or "unknown") if own else "github-copilot",
        details,
        string(mapping(bag.get("accounting")).get("sourceSessionId")),
        event.number,
        event.at,
        event.agent or string(bag.get("parentToolCallId")),
    )


def compaction_usage(event: Event) -> Used | None:
    """Return what the summary of a compaction used, which no other event tells."""
    bag = mapping(event.data.get("compactionTokensUsed"))
    if not bag:
        return None
    # Older versions had shorter names for the same counts.
    older = {"inputTokens": "input", "outputTokens": "output", "cacheReadTokens": "cachedInput"}
    named = {key: bag.get(key, bag.get(old)) for key, old in older.items()}
    return _used({**bag, **named}, event)


def unanswered(name: str, used: Used, more: dict[str, Any] | None = None) -> MessageDraft:
    """Return what was used without an answer that shows, as a message without parts.

    Args:
        name: The message's id.
        used: The counts.
        more: What else is known of it.
    """
    extra = {**used.details, **(more or {}), "no_answer": True}
    message = MessageDraft(name, "assistant", used.at, used.at)
    message.metadata = {"usage": used.usage, "backscroll": extra}
    if used.model:
        message.metadata["model"] = {"provider_id": used.provider, "model_id": used.model}
    message.records = (used.number,)
    return message
