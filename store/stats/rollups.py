"""Opens the counts of a store for reading."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from store.engine.database import Database
from store.prices.estimating import AnswerUsage, estimate
from store.prices.table import PriceTable, tier_of
from store.stats import counting, tables
from store.stats.facts import REQUEST_SIZES, Charge


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a store is counted.

    Attributes:
        counted: Sessions that are.
        total: Sessions in the store.
    """

    counted: int
    total: int

    @property
    def whole(self) -> bool:
        """Whether all sessions are counted."""
        return self.counted >= self.total


class Rollups:
    """The counts of a store, and the prices of what they leave untold.

    Attributes:
        connection: A database in memory with the tables, to which others may be attached.
        coverage: How much is counted.
        prices: Of models; None estimates nothing.
    """

    def __init__(
        self, connection: sqlite3.Connection, coverage: Coverage, prices: PriceTable | None = None
    ) -> None:
        """Take tables that are filled.

        Args:
            connection: A database with them.
            coverage: How much is counted in them.
            prices: Of models.
        """
        self.connection, self.coverage, self.prices = connection, coverage, prices
        self._texts: dict[int, str] = {}
        self._charges: dict[int, Charge] = {}

    def text(self, number: int) -> str:
        """Return a text by its number; "" if there is none."""
        if number not in self._texts:
            self._texts = dict(self.connection.execute("SELECT number, text FROM name").fetchall())
        return self._texts.get(number, "")

    def session_id(self, number: int) -> str:
        """Return the id of a session."""
        (session_id,) = self.connection.execute(
            "SELECT id FROM session WHERE number = ?", (number,)
        ).fetchone()
        return str(session_id)

    def charge(self, number: int) -> Charge:
        """Return what answers of a number have in common."""
        if number not in self._charges:
            for place, model, provider, tier, told, size, present in self.connection.execute(
                "SELECT * FROM charge"
            ):
                self._charges[place] = Charge(
                    self.text(model), self.text(provider), self.text(tier), told, size, present
                )
        return self._charges[number]

    def estimate(self, charge: Charge, tokens: Sequence[int], written_1h: int) -> float | None:
        """Return what answers that tell no cost came to; None where that is unknown.

        Args:
            charge: What they have in common.
            tokens: The sums of their buckets.
            written_1h: What of the last bucket is kept for an hour.
        """
        if self.prices is None or not charge.present:
            return None
        tier = tier_of(charge.tier)
        price = self.prices.price(charge.model, charge.provider or None, tier)
        asked = REQUEST_SIZES[charge.size - 1] + 1 if charge.size else 0
        fresh, output, reasoning, read, written = tokens
        usage = AnswerUsage(fresh, output, reasoning, read, written, written_1h, tier)
        return estimate(usage, price, asked)

    def make_families(self) -> None:
        """Make the temporary table that has the first session of each one's family."""
        read = self.connection.execute
        if read("SELECT 1 FROM temp.sqlite_master WHERE name = 'family'").fetchone():
            return
        rows = read("SELECT number, id, parent FROM session").fetchall()
        numbers = {session_id: number for number, session_id, _ in rows}
        parents = {number: numbers.get(parent) for number, _, parent in rows}
        read("CREATE TEMP TABLE family (session INTEGER PRIMARY KEY, root INTEGER NOT NULL)")
        self.connection.executemany(
            "INSERT INTO temp.family VALUES (?, ?)",
            [(number, _root(parents, number)) for number in parents],
        )


def _root(parents: dict[int, int | None], number: int) -> int:
    """Return the first session of a family; in damaged lineage that leads in a circle, the least.

    Args:
        parents: By number, that of each session's parent.
        number: The session.
    """
    path = [number]
    while (above := parents.get(path[-1])) is not None:
        if above in path:
            return min(path[path.index(above):])
        path.append(above)
    return path[-1]


@contextmanager
def open_rollups(db: Database, prices: PriceTable | None = None) -> Iterator[Rollups]:
    """Open the counts of a store for a block of reads.

    Args:
        db: The store, open for reading.
        prices: What models cost, where an agent does not tell; None estimates nothing.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        tables.make_tables(connection)
        counting.count_all(db, connection)
        (total,) = db.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
        yield Rollups(connection, Coverage(total, total), prices)
    finally:
        connection.close()
