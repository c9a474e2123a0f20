"""A cache with a limit of weight: what was used longest ago is dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeightedCache(Generic[K, V]):
    """Keeps values up to a total weight, and always the newest few."""

    def __init__(self, limit: int, least: int = 1) -> None:
        """Make an empty cache.

        Args:
            limit: The total weight that is kept.
            least: Entries that are kept whatever their weight.
        """
        self._limit, self._least = limit, least
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        """Return whether a key is there, without counting it as used."""
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """Return the keys, the one used longest ago first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        """Return a value and count it as used, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Add or replace a value; the oldest are dropped above the limit.

        Args:
            key: Names the value.
            value: What is kept.
            weight: How much of the limit it takes.
        """
        self.drop(key)
        self._entries[key] = (value, weight)
        self.weight += weight
        while self.weight > self._limit and len(self._entries) > self._least:
            _key, (_value, old) = self._entries.popitem(last=False)
            self.weight -= old

    def drop(self, key: K) -> None:
        """Remove a key."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.weight -= entry[1]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.weight = 0
