"""Tokens and cost of answers and sessions: the one list of the five buckets.

The buckets are disjoint: ``input`` excludes what came from the cache, ``output`` excludes
the reasoning that the source reports. So a total is their plain sum. A message has them in
``metadata_json.usage`` (``Bucket.key``), a session in columns (``Bucket.column``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from store.engine.dialect import Dialect


class Bucket(NamedTuple):
    """One of the five kinds of tokens.

    Attributes:
        key: Its name in ``metadata_json.usage``, in our JSON and in ``Spent``.
        column: The column of ``chat_sessions`` that sums it up.
        label: Its name on the screen.
        short: The same for narrow columns.
    """

    key: str
    column: str
    label: str
    short: str


BUCKETS = (
    Bucket("input", "prompt_tokens", "input", "in"),
    Bucket("output", "completion_tokens", "output", "out"),
    Bucket("reasoning", "reasoning_tokens", "thinking", "think"),
    Bucket("cache_read", "cache_read", "cache read", "read"),
    Bucket("cache_write", "cache_write", "cache write", "write"),
)
"""The five buckets, in the order of the columns of ``chat_sessions``."""
KEYS = tuple(bucket.key for bucket in BUCKETS)
COLUMNS = tuple(bucket.column for bucket in BUCKETS)
MOST_SPENT = 1e9
"""Most dollars of one answer; a larger or non-numeric cost is ignored as damaged."""


class Rollups(NamedTuple):
    """The sums of a session over its assistant messages, named as their columns."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0

    @classmethod
    def of(cls, tokens: Iterable[int], cost: float) -> Rollups:
        """Return the rollups of five sums, in the order of ``BUCKETS``, and a cost."""
        five = tuple(tokens)
        return cls._make((*five, sum(five), cost))

    @property
    def tokens(self) -> tuple[int, ...]:
        """The five buckets, without their total."""
        return tuple(getattr(self, column) for column in COLUMNS)


@dataclass(slots=True)
class Spent:
    """Tokens in the five buckets, and the cost in dollars where a source reports it.

    Attributes:
        cost: None where nothing was said about it, which is not the same as free.
        estimated: Dollars by the table of prices, for answers of which nothing was said; None
            where no price is known, or was asked for.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    estimated: float | None = None

    @classmethod
    def of(cls, tokens: Iterable[int], cost: float | None = None) -> Spent:
        """Return the usage of five counts, in the order of ``BUCKETS``, and a cost."""
        fresh, output, reasoning, cache_read, cache_write = tokens
        return cls(fresh, output, reasoning, cache_read, cache_write, cost)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The five buckets, in the order of ``BUCKETS``."""
        return _tokens(self)

    @property
    def total(self) -> int:
        """All five buckets together."""
        return sum(_tokens(self))

    def add(self, other: Spent) -> None:
        """Add another usage to this one."""
        for key in KEYS:
            setattr(self, key, getattr(self, key) + getattr(other, key))
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost
        if other.estimated is not None:
            self.estimated = (self.estimated or 0.0) + other.estimated


_tokens = attrgetter(*KEYS)


def spent_of(metadata: Mapping[str, Any]) -> Spent:
    """Return a message's usage, from its decoded ``metadata_json``.

    As in the rollups, a recorder's own sum over the steps (``backscroll.usage``) goes
    before ``usage``, which may be the stream's value for the last step.
    """
    own = metadata.get("backscroll")
    own = own if isinstance(own, dict) else {}
    given = own.get("usage"), metadata.get("usage")
    summed, said = (usage if isinstance(usage, dict) else {} for usage in given)
    cost = own.get("cost_usd")
    if cost is None:
        cost = metadata.get("cost_usd", metadata.get("cost"))
    buckets = {
        key: _count(summed[key] if _is_number(summed.get(key)) else said.get(key)) for key in KEYS
    }
    return Spent(**buckets, cost=float(cost) if isinstance(cost, int | float) else None)


def _count(value: Any) -> int:
    if type(value) is int:
        return value if abs(value) < 2**63 else 0
    is_number = isinstance(value, int | float) and abs(value) < 2**63
    return int(value) if is_number else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole_counts(usage: object) -> dict[str, int]:
    """Return a usage's buckets by key; what is missing or no whole number is 0."""
    bag = usage if isinstance(usage, dict) else {}
    return {key: value if type(value := bag.get(key)) is int else 0 for key in KEYS}


def context_size(metadata: Mapping[str, Any]) -> int:
    """Return how many tokens are in the context after an answer, from its decoded metadata.

    Its input and its output. After a compaction only the summary: the input of the request
    for it, which some agents report as its input, is no longer in the context.
    """
    spent = spent_of(metadata)
    return (metadata.get("compaction") is True and spent.output) or spent.total


def bucket_sql(table: str, key: str, sql: Dialect) -> str:
    """Return SQL for one bucket of a message's usage, 0 where it is no number.

    Args:
        table: The name of ``chat_messages`` in the query.
        key: The bucket's key; as in ``spent_of``, ``backscroll.usage`` goes first.
        sql: The words of the store's engine.
    """
    return sql.first_number(f"{table}.metadata_json", f"backscroll.usage.{key}", f"usage.{key}")
