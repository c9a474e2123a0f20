"""What both kinds of trajectories have in common: tokens, settled calls, the session.

Source: the SWE-agent format page. Runs have no ids: the path is the id, and of a file that each
run overwrites what its first answer was called too.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import settle_call
from store.sources.base.values import mapping, number

KIND = "swe-agent"


def tokens_of(usage: dict[str, Any]) -> dict[str, int] | None:
    """Return an answer's usage as our buckets; the sums of the API hold the cached and reasoned."""
    given = number(usage.get("prompt_tokens", usage.get("input_tokens")))
    output = number(usage.get("completion_tokens", usage.get("output_tokens")))
    inside = mapping(usage.get("prompt_tokens_details", usage.get("input_tokens_details")))
    thought = mapping(usage.get("completion_tokens_details", usage.get("output_tokens_details")))
    read = max(0, number(inside.get("cached_tokens")))
    written = max(0, number(usage.get("cache_creation_input_tokens")))
    reasoned = min(max(0, number(thought.get("reasoning_tokens"))), max(0, output))
    found = {
        "input": max(0, given - read - written), "output": max(0, output - reasoned),
        "reasoning": reasoned, "cache_read": read, "cache_write": written,
    }  # fmt: skip
    return found if any(found.values()) else None


def no_answer(name: str, at: int, record: int, *, initiator: str) -> MessageDraft:
    """Return a message that only tells what was spent.

    Args:
        name: Its id.
        at: Epoch ms.
        record: The number of its record.
        initiator: What spent it.
    """
    metadata = {"backscroll": {"no_answer": True, "initiator": initiator}}
    return MessageDraft(name, "assistant", at, at, metadata, records=(record,))


def dollars(value: object) -> float | None:
    """Return a cost in US dollars; None where it is nothing."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9:
        return float(value)
    return None


def settle(
    part: PartDraft, status: str, output: str, at: int, record: int, **extra: Any
) -> None:
    """Put a result into the part of its call.

    Args:
        part: The call's part.
        status: ``ok``, ``error``, ``denied`` or ``interrupted``.
        output: What the command printed, or why it was not run.
        at: When it ended, epoch ms.
        record: The number of its record.
        extra: What else is known of it.
    """
    code = extra.get("exit_code")
    ended = status if code is None else f"exit {code}"
    words = output if output or status in ("ok", "denied") else ended
    settle_call(part, status, words, at, record, extra)
