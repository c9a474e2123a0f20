"""A session of llm in one form, whichever tables hold it: messages one after the other.

Source: the llm format page, sections 2 (threads), 3 (responses) and 5 (tokens).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.row_reader import Row
from store.sources.base.values import iso_ms, mapping, number, string

Part = dict[str, Any]
"""``{type: text, text, typed?}``, ``{type: reasoning, text}``, ``{type: tool_call, name,
arguments, tool_call_id}``, ``{type: tool_result, name, output, tool_call_id, exception?,
attachments?}`` or ``{type: attachment, id}``."""


@dataclass(slots=True)
class Request:
    """One request to a model: a row of ``turns`` or ``responses``.

    Attributes:
        at: When it began, epoch ms.
        end: When it had been answered.
    """

    row: Row
    at: int
    end: int

    @classmethod
    def of(cls, row: Row) -> Request:
        """Return the request of a row with ``datetime_utc`` and ``duration_ms``."""
        at = time_of(row.get("datetime_utc"))
        return cls(row, at, at + max(0, number(row.get("duration_ms"))))

    @property
    def name(self) -> str:
        """Return its id."""
        return str(self.row["id"])


@dataclass(slots=True)
class Node:
    """One message.

    Attributes:
        name: Identifies it within its session.
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        record: Number of its original record.
        at: Epoch ms; 0 where nothing tells.
        requests: Those that it answers, which are counted here.
        hidden_at: When another branch took its place.
        inherited_from: What it is called in the thread that it was forked from.
    """

    name: str
    role: str
    parts: list[Part]
    record: int
    at: int = 0
    end: int = 0
    requests: list[Request] = field(default_factory=list)
    hidden_at: int | None = None
    inherited_from: str | None = None


def time_of(stamp: object) -> int:
    """Return an ISO time, UTC where it names no zone, as epoch ms; 0 for anything else."""
    return (iso_ms(stamp, utc=True) or 0) if isinstance(stamp, str) else 0


def usage_of(row: Row) -> dict[str, int] | None:
    """Return a request's tokens as the five buckets; None where none are known.

    What was cached is among the input and what was reasoned among the output, as OpenAI's
    API counts; details of other providers' plugins are not known and split nothing.
    """
    given, said = row.get("input_tokens"), row.get("output_tokens")
    if not isinstance(given, int) and not isinstance(said, int):
        return None
    details = mapping(decoded(row.get("token_details")))
    cached = _detail(details, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    thought = _detail(
        details, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
    )
    whole, answer = max(0, number(given)), max(0, number(said))
    cached, thought = min(cached, whole), min(thought, answer)
    return {
        "input": whole - cached, "output": answer - thought, "reasoning": thought,
        "cache_read": cached, "cache_write": 0,
    }  # fmt: skip


def _detail(details: dict[str, Any], groups: tuple[str, ...], name: str) -> int:
    return max(0, *(number(mapping(details.get(group)).get(name)) for group in groups))


def is_prompt(node: Node) -> bool:
    """Return whether a message has words that were sent as a prompt."""
    return node.role == "user" and any(
        part["type"] == "text" and string(part.get("text")) for part in node.parts
    )


def filled(times: list[int]) -> list[int]:
    """Return times with those of the next message, else the last one, where none is known."""
    found, following = list(times), 0
    for place in range(len(found) - 1, -1, -1):
        following = found[place] = found[place] or following
    known = 0
    for place, at in enumerate(found):
        known = found[place] = at or known
    return found
