"""Selects rows of the counts, and sums them up in SQL.

What a query and a span select is summed by session and model once, into a temporary table;
every dimension but time and tools is summed up from that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from store.engine.database import Database
from store.language.query import Query
from store.queries.helpers import helper_ids
from store.stats import edges
from store.stats.figures import Figures
from store.stats.times import Buckets, years_sql
from store.usage import KEYS

if TYPE_CHECKING:
    from store.stats.rollups import Rollups

Order = Literal["tokens", "cost", "answers", "calls", "time", "active"]
"""What comes first: the largest; ``time`` is that of calls."""
Row = tuple[Any, Any, Figures]
"""The number of a group, that of a part of it, and their figures."""


class Span(NamedTuple):
    """A span of time: epoch ms, the end excluded; None has no limit."""

    start: int | None = None
    end: int | None = None


_COUNTS = ("answers", "copies", *KEYS, "told_usd", "told_answers", "estimated_usd",
           "estimated_answers", "unknown_answers")  # fmt: skip
_CALLS = ("calls", "failed", "denied", "timed", "tool_ms")
_WORK = ("turns", "active_ms", *_CALLS)
_ALL = (*_COUNTS, *_WORK)
_SPENT = (
    "sum(answers), sum(copies), " + ", ".join(f"sum({key})" for key in KEYS) + ", sum(usd),"
    " sum(answers * c.told), total(input * c.fresh + (output + reasoning) * c.output_rate"
    " + cache_read * c.read + (cache_write - cache_write_1h) * c.written"
    " + cache_write_1h * c.written_1h), sum(answers * c.known), sum(answers * c.unknown)"
)
_WORKED = (
    "sum(turns), sum(active_ms), sum(calls), sum(failed), sum(denied), sum(timed),"
    " sum(milliseconds)"
)
_CALLED = "sum(calls), sum(failed), sum(denied), sum(timed), sum(milliseconds)"
_SUMS = ", ".join(f"sum({name})" for name in _ALL)
_HAVE_ANSWERS = (
    "count(DISTINCT CASE WHEN answers + copies > 0 AND {table}.session NOT IN temp.helper"
    " THEN {table}.session END)"
)
_BASE_HAVE_ANSWERS = _HAVE_ANSWERS.format(table="b")
_TOKENS = " + ".join(KEYS)
_ORDERS: dict[Order, str] = {
    "tokens": f"sum({_TOKENS})", "cost": "sum(told_usd + estimated_usd)",
    "answers": "sum(answers)", "calls": "sum(calls)", "time": "sum(tool_ms)",
    "active": "sum(active_ms)",
}  # fmt: skip
NO_HELPER = "b.session NOT IN temp.helper"
"""Condition on ``base b``: no run that an agent started for itself."""
_TEMPORARY = ("helper", "wanted", "models", "tools", "callers", "rate", "base")


class Selection:
    """What a query and a span select of the counts.

    Attributes:
        span: Its limits and those of the query together.
        why: Why the query did not find all sessions; "" where it did.
    """

    def __init__(
        self, db: Database, stats: Rollups, span: Span, query: Query,
        sessions: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        """Make the temporary tables of a selection; there is one at a time.

        Args:
            db: The store.
            stats: Its counts.
            span: The time that is counted.
            query: What narrows it.
            sessions: Only these, by id; None for all.
        """
        self._stats, self._write = stats, stats.connection.execute
        chosen = stats.narrowed(db, query).among(sessions)
        self.why = chosen.why
        self.span = _both(span, Span(chosen.start, chosen.end))
        self._tables = {table: table for table in edges.TABLES}
        self._conditions: dict[str, list[str]] = {table: [] for table in edges.TABLES}
        self._whole: Figures | None = None
        self._years: set[int] | None = None
        self._is_based = False
        self._limit_time(db)
        self._make_rates()
        self._choose("helper", self._numbers(set(helper_ids(db))))
        if chosen.sessions is not None:
            self._choose("wanted", self._numbers(chosen.sessions))
            self._limit("session IN wanted")
        if chosen.model is not None:
            self._choose("models", self._fitting(chosen.model))
            self._limit("model IN models")
        self._has_tools = chosen.tool is not None
        if chosen.tool is not None:
            self._choose("tools", self._fitting(chosen.tool))
            self._conditions["called"].append("tool IN tools")
            rows = self._write(f"SELECT DISTINCT session FROM {self._from('called')}").fetchall()
            self._choose("callers", [row[0] for row in rows])
            self._limit("session IN callers")
        if not chosen.answers:
            self._conditions["spent"].append("0")
            self._conditions["called"].append("0")
        self._answers, self._turns = chosen.answers, chosen.turns

    def close(self) -> None:
        """Drop the temporary tables."""
        for table in _TEMPORARY:
            self._write(f"DROP TABLE IF EXISTS temp.{table}")
        edges.drop(self._stats.connection)

    def _limit_time(self, db: Database) -> None:
        inner = edges.inner(self.span.start, self.span.end)
        if inner.first is not None:
            self._limit(f"quarter >= {inner.first}")
        if inner.last is not None:
            self._limit(f"quarter < {inner.last}")
        if inner.ragged:
            edges.count(db, self._stats.connection, inner.ragged)
            for table, conditions in self._conditions.items():
                edges.join(self._stats.connection, table, conditions)
                self._tables[table] = f"edge_{table}"
                conditions.clear()

    def _make_rates(self) -> None:
        """Make the table of what a token of each kind costs in the answers of a charge."""
        self._write(
            "CREATE TEMP TABLE rate (charge INTEGER PRIMARY KEY, told INTEGER, known INTEGER,"
            " unknown INTEGER, fresh REAL, output_rate REAL, read REAL, written REAL,"
            " written_1h REAL)"
        )
        rows = self._write("SELECT number FROM charge").fetchall()
        self._stats.connection.executemany(
            "INSERT INTO temp.rate VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *self._stats.rates(number)) for (number,) in rows],
        )

    def _choose(self, name: str, numbers: Sequence[int]) -> None:
        self._write(f"CREATE TEMP TABLE {name} (number INTEGER PRIMARY KEY)")
        self._stats.connection.executemany(
            f"INSERT OR IGNORE INTO temp.{name} VALUES (?)", [(each,) for each in numbers])

    def _limit(self, condition: str) -> None:
        for conditions in self._conditions.values():
            conditions.append(condition)

    def _numbers(self, session_ids: set[str]) -> list[int]:
        if not session_ids:
            return []
        return [
            number for number, session_id in self._write("SELECT number, id FROM session")
            if session_id in session_ids
        ]

    def _fitting(self, test: Callable[[str], bool]) -> list[int]:
        rows = self._write("SELECT number, text FROM name").fetchall()
        return [number for number, name in rows if test(name)]

    def _from(self, table: str) -> str:
        conditions = self._conditions[table]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{self._tables[table]}{where}"

    def _sources(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield what is summed: a table with its joins, its sums, and the names of these."""
        spent = f"(SELECT * FROM {self._from('spent')}) r JOIN rate c ON c.charge = r.charge"
        yield spent, _SPENT, _COUNTS
        worked = f"(SELECT * FROM {self._from('worked')}) r"
        if self._turns and self._answers and not self._has_tools:
            yield worked, _WORKED, _WORK
            return
        if self._turns:
            yield worked, "sum(turns), sum(active_ms)", _WORK[:2]
        yield f"(SELECT * FROM {self._from('called')}) r", _CALLED, _CALLS

    # Sums

    def _make_base(self) -> None:
        if self._is_based:
            return
        self._is_based = True
        columns = ", ".join(f"{name} DEFAULT 0" for name in _ALL)
        self._write(
            f"CREATE TEMP TABLE base (session INTEGER, model INTEGER, {columns},"
            " PRIMARY KEY (session, model)) WITHOUT ROWID"
        )
        for source, sums, names in self._sources():
            added = ", ".join(f"{name} = excluded.{name}" for name in names)
            self._write(
                f"INSERT INTO temp.base (session, model, {', '.join(names)})"
                f" SELECT r.session, r.model, {sums} FROM {source} WHERE 1 GROUP BY 1, 2"
                f" ON CONFLICT DO UPDATE SET {added}"
            )

    def whole(self) -> Figures:
        """Return the sums over everything."""
        if self._whole is None:
            self._make_base()
            row = self._write(f"SELECT {_BASE_HAVE_ANSWERS}, {_SUMS} FROM base b").fetchone()
            self._whole = _figures(_ALL, row[1:], row[0])
        return replace(self._whole)

    def by_session(self, group: str, part: str | None = None, where: str = "1") -> Iterator[Row]:
        """Yield sums by something that sessions and models tell.

        Args:
            group: The SQL expression of the group; of ``base b``, ``session s`` or ``family f``.
            part: That of what each group is divided by; None for nothing.
            where: A condition on these.
        """
        self._make_base()
        rows = self._write(
            f"SELECT {group}, {part or 'NULL'}, {_BASE_HAVE_ANSWERS}, {_SUMS}"
            f" FROM {_joined('base b', f'{group} {where}', part, 'b')} WHERE {where} GROUP BY 1, 2"
        )
        for number, piece, sessions, *sums in rows:
            yield number, piece, _figures(_ALL, sums, sessions)

    def sessions_by(self, group: str) -> Iterator[tuple[int, int]]:
        """Yield how many sessions have an answer in each group of ``by_session``."""
        self._make_base()
        yield from self._write(
            f"SELECT {group}, {_BASE_HAVE_ANSWERS}"
            f" FROM {_joined('base b', group, None, 'b')} GROUP BY 1"
        )

    def largest(self, group: str, order: Order, limit: int, where: str = "1") -> list[int]:
        """Return the numbers of the largest groups.

        Args:
            group: As in ``by_session``.
            order: What they are ordered by.
            limit: The most groups.
            where: As in ``by_session``.
        """
        self._make_base()
        return [row[0] for row in self._write(
            f"SELECT {group} FROM {_joined('base b', group, None, 'b')} WHERE {where} GROUP BY 1"
            f" ORDER BY {_ORDERS[order]} DESC, sum({_TOKENS}) DESC, sum(calls) DESC, 1 LIMIT ?",
            (limit,),
        )]

    def by_time(self, buckets: Buckets, part: str | None = None) -> Iterator[Row]:
        """Yield sums by periods.

        Args:
            buckets: The periods.
            part: As in ``by_session``, of a row ``r`` or ``session s``; sessions are not
                counted then.
        """
        group = buckets.sql("r.quarter")
        for source, sums, names in self._sources():
            counted = _HAVE_ANSWERS.format(table="r") if names is _COUNTS and not part else "0"
            rows = self._write(
                f"SELECT {group}, {part or 'NULL'}, {counted}, {sums}"
                f" FROM {_joined(source, '', part, 'r')} GROUP BY 1, 2"
            )
            for number, piece, sessions, *values in rows:
                yield number, piece, _figures(names, values, sessions)

    def sessions_by_time(self, buckets: Buckets) -> Iterator[tuple[int, int]]:
        """Yield how many sessions have an answer in each period."""
        yield from self._write(
            f"SELECT {buckets.sql('quarter')}, {_HAVE_ANSWERS.format(table='r')}"
            f" FROM (SELECT * FROM {self._from('spent')}) r GROUP BY 1"
        )

    def sessions(self, group: str | None = None, name: str = "") -> list[str]:
        """Return the ids of the sessions that are counted, as in ``Figures.sessions``.

        They have an answer, or a call where tools are asked for. Where no session has, they
        have a turn or a call.

        Args:
            group: As in ``by_session``, or ``b.tool``; None for the whole.
            name: The text of the group.
        """
        by_tool = group == "b.tool"
        tables = ("called",) if by_tool or self._has_tools else ("spent", "worked", "called")
        ids = dict[str, None]()
        for table in tables:
            if ids and table == "worked":
                break
            source = _joined(f"(SELECT * FROM {self._from(table)}) b", group or "", None, "b")
            where = "b.answers + b.copies > 0" if table == "spent" else "1"
            if group is not None:
                where += f" AND coalesce((SELECT text FROM name WHERE number = {group}), '') = ?"
            rows = self._write(
                "SELECT id FROM session WHERE number NOT IN temp.helper AND number IN"
                f" (SELECT b.session FROM {source} WHERE {where})",
                () if group is None else (name,),
            )
            ids.update(dict.fromkeys(row[0] for row in rows))
        return list(ids)

    def by_tool(self, part: str | None = None) -> Iterator[Row]:
        """Yield sums by tool; of each with calls alone.

        Args:
            part: As in ``by_time``.
        """
        source = _joined(f"(SELECT * FROM {self._from('called')}) r", "", part, "r")
        rows = self._write(
            f"SELECT tool, {part or 'NULL'}, count(DISTINCT CASE WHEN r.session NOT IN temp.helper"
            f" THEN r.session END), {_CALLED} FROM {source}"
            " GROUP BY 1, 2"
        )
        for number, piece, sessions, *values in rows:
            yield number, piece, _figures(_CALLS, values, sessions)

    def years(self) -> set[int]:
        """Return the stretches of 365 days that something is counted in, by ``years_sql``."""
        if self._years is None:
            self._years = {
                year for table in ("spent", "worked") for (year,) in self._write(
                    f"SELECT DISTINCT {years_sql('quarter')} FROM {self._from(table)}")
            }  # fmt: skip
        return self._years


def _both(one: Span, other: Span) -> Span:
    starts = [each for each in (one.start, other.start) if each is not None]
    ends = [each for each in (one.end, other.end) if each is not None]
    return Span(max(starts, default=None), min(ends, default=None))


def _joined(source: str, group: str, part: str | None, name: str) -> str:
    asked = f"{group} {part or ''}"
    if "s." in asked:
        source += f" JOIN session s ON s.number = {name}.session"
    if "f." in asked:
        source += f" JOIN family f ON f.session = {name}.session"
    return source


def _figures(names: Sequence[str], values: Sequence[Any], sessions: int) -> Figures:
    by_name = {name: value or 0 for name, value in zip(names, values, strict=True)}
    tokens = tuple(by_name.pop(key, 0) for key in KEYS)
    return Figures(sessions=sessions, tokens=tokens, **by_name)
