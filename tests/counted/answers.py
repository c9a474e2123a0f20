"""What was counted: one answer of a model, or a cost that belongs to no answer."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")
ANY_MODEL = ""
"""The model of a cost that may be of any model of its session."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One answer of a model.

    Attributes:
        at: Epoch ms.
        usd: What the agent says that it cost; None where it says nothing.
        answers: 0 for a cost that the agent notes beside its answers.
    """

    model: str
    at: int
    tokens: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    usd: float | None = None
    answers: int = 1


@dataclass(slots=True)
class Sum:
    """The figures of a group.

    Attributes:
        usd: What agents say that it cost, added up; None where none says anything.
    """

    answers: int = 0
    tokens: tuple[int, ...] = (0, 0, 0, 0, 0)
    usd: float | None = None

    def add(self, one: Counted) -> None:
        self.answers += one.answers
        self.tokens = tuple(a + b for a, b in zip(self.tokens, one.tokens, strict=True))
        if one.usd is not None:
            self.usd = (self.usd or 0.0) + one.usd


def summed(found: Iterable[Counted], key: Callable[[Counted], str]) -> dict[str, Sum]:
    sums: defaultdict[str, Sum] = defaultdict(Sum)
    for one in found:
        sums[key(one)].add(one)
    return dict(sums)


def day_in(zone: tzinfo | None) -> Callable[[Counted], str]:
    return lambda one: datetime.fromtimestamp(one.at / 1000, zone).strftime("%Y-%m-%d")


def parted(given: int, output: int, *, reasoning: int = 0, read: int = 0, write: int = 0,
           ) -> tuple[int, int, int, int, int]:
    """Return the five buckets where input holds the cached tokens and output the reasoning."""
    return given - read - write, output - reasoning, reasoning, read, write


def ms(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines; what is torn is passed over."""
    decoder = json.JSONDecoder()
    for line in path.read_text(errors="replace").split("\n"):
        rest = line.strip("\x00 \r")
        while rest:
            try:
                value, end = decoder.raw_decode(rest)
            except ValueError:
                break
            yield value
            rest = rest[end:].lstrip()  # Two writers may have shared a line.


def rows(path: Path, sql: str) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        return db.execute(sql).fetchall()


def largest(found: Iterable[tuple[Any, Counted]]) -> list[Counted]:
    """Return one of those that share a name: the largest output, at the earliest time."""
    best: dict[Any, Counted] = {}
    for name, one in found:
        known = best.get(name)
        if known is None:
            best[name] = one
        elif sum(one.tokens[1:3]) > sum(known.tokens[1:3]):
            best[name] = replace(one, at=min(one.at, known.at))
    return list(best.values())
