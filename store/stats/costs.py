"""What sessions cost, from the file of statistics alone: quick, and empty where it has nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path

from store.engine import sidecars
from store.engine.sidecars import value_of
from store.errors import StoreError
from store.prices.table import PriceTable
from store.stats.rollups import Coverage, Rollups
from store.stats.tables import STATISTICS


@dataclass(slots=True)
class SessionCost:
    """What a session cost itself, copies of other sessions' answers left out.

    Attributes:
        told_usd: Dollars that its agent told.
        estimated_usd: Dollars by the table of prices, for answers whose agent tells none.
        answers: Its answers.
        known: Answers whose cost is in these dollars.
        estimated: Those of them whose cost is an estimate; that of a free model is one too.
        updated_at: The session's ``updated_at`` when this was counted.
    """

    told_usd: float = 0.0
    estimated_usd: float = 0.0
    answers: int = 0
    known: int = 0
    estimated: int = 0
    updated_at: int = 0

    @property
    def usd(self) -> float | None:
        """All dollars; None where nothing is known."""
        return self.told_usd + self.estimated_usd if self.told_usd or self.known else None

    @property
    def is_estimate(self) -> bool:
        """Whether a part of the dollars is an estimate."""
        return self.estimated > 0


def is_kept(store: Path) -> bool:
    """Return whether a store has a file of statistics."""
    try:
        return STATISTICS.path(store).exists()
    except (OSError, StoreError):
        return False


def costs_of(
    store: Path, session_ids: Sequence[str], prices: PriceTable
) -> dict[str, SessionCost]:
    """Return what sessions cost, by id; those that are not counted yet are missing.

    Args:
        store: The store's file.
        session_ids: The sessions.
        prices: Of models.
    """
    try:
        file = STATISTICS.open_for_reading(STATISTICS.path(store))
        if file is None:
            return {}
        try:
            if value_of(file, "store") != sidecars.store_identity(store):
                return {}
            return _read(Rollups(file, Coverage(0, 0), prices), session_ids)
        finally:
            file.close()
    except (sqlite3.Error, OSError, StoreError):
        return {}  # Its keeper mends it.


def _read(rollups: Rollups, session_ids: Sequence[str]) -> dict[str, SessionCost]:
    found: dict[str, SessionCost] = {}
    for session_id in session_ids:
        row = rollups.connection.execute(
            "SELECT number, updated_at FROM session WHERE id = ? AND counted = 1", (session_id,)
        ).fetchone()
        if row is None:
            continue
        found[session_id] = cost = SessionCost(updated_at=row[1])
        for number, answers, usd, fresh, output, read, written, written_1h in (
            rollups.connection.execute(
                "SELECT charge, sum(answers), sum(usd), sum(input), sum(output + reasoning),"
                " sum(cache_read), sum(cache_write), sum(cache_write_1h)"
                " FROM spent WHERE session = ? GROUP BY charge", (row[0],),
            )
        ):  # fmt: skip
            told, estimated, _, *rates = rollups.rates(number)
            cost.answers += answers
            cost.told_usd += usd
            cost.known += answers if told or estimated else 0
            cost.estimated += answers if estimated else 0
            tokens = fresh, output, read, written - written_1h, written_1h
            cost.estimated_usd += sum(map(mul, tokens, rates))
    return found
