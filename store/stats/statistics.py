"""What screens and commands ask for: figures by time, model, workspace and more.

Open the counts once (``open_rollups``) and ask as often as needed:

    with open_rollups(db, prices) as rollups:
        answer = figures(db, rollups, by="day", span=ALWAYS, query=query, zone=zone)

The figures of all groups add up to the whole, for every dimension but ``tool``, whose groups
have calls alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Literal, NamedTuple

from store.engine.database import Database
from store.engine.values import decoded, text
from store.language import dates
from store.language.query import Query, quoted
from store.queries.transcript import last_usage
from store.stats import edges
from store.stats.facts import COVERED, TOLD
from store.stats.figures import Figures
from store.stats.narrowing import Narrowed, narrowed
from store.stats.rollups import Coverage, Rollups, open_rollups
from store.stats.times import PERIODS, Buckets, Calendar, Period
from store.usage import context_size

__all__ = [
    "ALWAYS", "DIMENSIONS", "Answer", "Coverage", "Dimension", "Figures", "Group", "LongestTurn",
    "Rollups", "Share", "Span", "cache_share", "context_tokens", "figures", "longest_turns",
    "open_rollups",
]  # fmt: skip

Dimension = Literal[
    "hour", "day", "week", "month", "model", "agent", "source", "workspace", "branch", "tool",
    "session", "family",
]
DIMENSIONS: tuple[Dimension, ...] = (
    "hour", "day", "week", "month", "model", "agent", "source", "workspace", "branch", "tool",
    "session", "family",
)
Stack = Literal["agent", "model"]
Order = Literal["tokens", "cost", "answers", "calls", "time", "active"]
"""What comes first: the largest; of tools ``time`` is that of their calls."""


class Span(NamedTuple):
    """A span of time: epoch ms, the end excluded; None has no limit."""

    start: int | None = None
    end: int | None = None


ALWAYS = Span()


@dataclass(slots=True)
class Group:
    """One row or bar.

    Attributes:
        key: The period, name or id; "" where sessions have none.
        label: What is shown for it: the title of a session, else the key.
        figures: What it comes to.
        parts: The same by agent or model, where a stack was asked for.
        query: Opens its sessions in the list.
        span: Of a period; None for other groups.
    """

    key: str
    label: str
    figures: Figures
    parts: dict[str, Figures] = field(default_factory=dict)
    query: str = ""
    span: Span | None = None


@dataclass(slots=True)
class Answer:
    """Figures, whole and by group.

    Attributes:
        whole: Everything that the query selects.
        groups: Periods by time, others by size.
        others: What the groups beyond the limit come to; None without any.
        coverage: How much of the store is counted.
        why: Why the query did not find all sessions; "" where it did.
    """

    whole: Figures
    groups: list[Group]
    others: Figures | None
    coverage: Coverage
    why: str = ""


def figures(
    db: Database, stats: Rollups, *, by: Dimension | None, span: Span, query: Query,
    zone: tzinfo | None, stack: Stack | None = None, limit: int | None = None,
    order: Order = "tokens", month_starts: int = 1,
) -> Answer:  # fmt: skip
    """Return figures, whole and by group.

    Args:
        db: The store.
        stats: Its counts.
        by: What to group by; None for the whole alone.
        span: The time that is counted.
        query: What narrows it, in the language of the list.
        zone: The time zone of hours, days, weeks and months; None is the computer's own.
        stack: What each group is divided by, for plots.
        limit: The most groups; ``Answer.others`` has the rest. Periods are not limited.
        order: What the groups are ordered by, the largest first.
        month_starts: The day on which a month begins; in a shorter month its last day.
    """
    with _Asking(db, stats, span, query, Calendar(zone, month_starts)) as asking:
        whole = Figures()
        groups = asking.groups(by, stack)
        for group in groups.values():
            whole.add(group.figures)
        if by == "tool" or by is None or not groups:
            whole = asking.groups(None, None).get(None, Group("", "", Figures())).figures
        whole.sessions = asking.sessions()
        found = [] if by is None else asking.named(by, groups, order, limit, query)
        others = None
        kept = {id(group) for group in found}
        for group in groups.values() if by is not None else ():
            if id(group) not in kept:
                others = others or Figures()
                others.add(group.figures)
        return Answer(whole, found, others, stats.coverage, asking.narrowed.why)


class _Asking:
    """One question: what of the counts it selects, and the SQL that sums them up."""

    def __init__(
        self, db: Database, stats: Rollups, span: Span, query: Query, calendar: Calendar
    ) -> None:
        self._db, self._stats, self._calendar = db, stats, calendar
        self._zone = calendar.zone
        self._read = stats.connection.execute
        self.narrowed = narrowed(db, query)
        self._span = _both(span, self.narrowed)
        self._buckets: Buckets | None = None
        self._whole = {table: table for table in ("spent", "called", "turned")}

    def __enter__(self) -> _Asking:
        """Make the temporary tables of this question."""
        chosen = self.narrowed
        self._conditions: dict[str, list[str]] = {"spent": [], "called": [], "turned": []}
        inner = edges.inner(self._span.start, self._span.end)
        for conditions in self._conditions.values():
            if inner.first is not None:
                conditions.append(f"quarter >= {inner.first}")
            if inner.last is not None:
                conditions.append(f"quarter < {inner.last}")
        if inner.ragged:
            edges.count(self._db, self._stats.connection, inner.ragged)
            self._whole = {table: f"edge_{table}" for table in self._whole}
            for table, conditions in self._conditions.items():
                edges.join(self._stats.connection, table, conditions)
                conditions.clear()
        if chosen.sessions is not None:
            self._choose("wanted", self._numbers(chosen.sessions))
            self._limit("session IN wanted")
        if chosen.model is not None:
            self._choose("models", self._fitting(chosen.model))
            self._limit("model IN models")
        if chosen.tool is not None:
            self._choose("tools", self._fitting(chosen.tool))
            self._conditions["called"].append("tool IN tools")
            rows = self._read(f"SELECT DISTINCT session FROM {self._from('called')}").fetchall()
            self._choose("callers", [row[0] for row in rows])
            self._limit("session IN callers")
        if not chosen.answers:
            self._conditions["spent"].append("0")
            self._conditions["called"].append("0")
        if not chosen.turns:
            self._conditions["turned"].append("0")
        return self

    def __exit__(self, *_: object) -> None:
        """Drop them."""
        for table in ("wanted", "models", "tools", "callers"):
            self._read(f"DROP TABLE IF EXISTS temp.{table}")
        edges.drop(self._stats.connection)

    def _choose(self, name: str, numbers: Sequence[int]) -> None:
        self._read(f"CREATE TEMP TABLE {name} (number INTEGER PRIMARY KEY)")
        self._stats.connection.executemany(
            f"INSERT OR IGNORE INTO temp.{name} VALUES (?)", [(each,) for each in numbers])

    def _limit(self, condition: str) -> None:
        for conditions in self._conditions.values():
            conditions.append(condition)

    def _numbers(self, session_ids: set[str]) -> list[int]:
        return [
            number for number, session_id in self._read("SELECT number, id FROM session")
            if session_id in session_ids
        ]

    def _fitting(self, test: Callable[[str], bool]) -> list[int]:
        rows = self._read("SELECT number, text FROM name").fetchall()
        return [number for number, name in rows if test(name)]

    def _from(self, table: str) -> str:
        conditions = self._conditions[table]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{self._whole[table]}{where}"

    # Groups

    def groups(self, by: Dimension | None, stack: Stack | None) -> dict[Any, Group]:
        """Return the sums by the number of each group; that of the whole is None."""
        found: dict[Any, Group] = {}

        def figures_of(number: Any, part: Any) -> Iterator[Figures]:
            group = found.get(number)
            if group is None:
                group = found[number] = Group("", "", Figures())
            yield group.figures
            if stack is not None:
                name = self._stats.text(part)
                yield group.parts.setdefault(name, Figures())

        part = _STACKS[stack] if stack else "NULL"
        group = "tool" if by == "tool" else self._group(by)
        if by != "tool":
            for number, piece, *sums in self._sums("spent", group, part, _SPENT, ", charge"):
                row = self._spent(sums)
                for each in figures_of(number, piece):
                    each.add(row)
            for number, piece, turns, active in self._sums("turned", group, part, _TURNED):
                for each in figures_of(number, piece):
                    each.turns += turns
                    each.active_ms += active
        for number, piece, calls, failed, denied, timed, took in self._sums(
            "called", group, part, _CALLED
        ):
            for each in figures_of(number, piece):
                each.calls += calls
                each.failed += failed
                each.denied += denied
                each.timed += timed
                each.tool_ms += took
        if by is not None:
            for number, sessions in self._sessions_of(by, group):
                if number in found:
                    found[number].figures.sessions = sessions
        return found

    def _sums(
        self, table: str, group: str, part: str, columns: str, further: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        joined = f"(SELECT * FROM {self._from(table)}) r JOIN session s ON s.number = r.session"
        if group in ("NULL", "tool", "r.model") and part in ("NULL", "r.model"):
            joined = f"(SELECT * FROM {self._from(table)}) r"
        if "f.root" in group:
            joined += " JOIN family f ON f.session = r.session"
        yield from self._read(
            f"SELECT {group}, {part}, {columns} FROM {joined} GROUP BY 1, 2{further}"
        )

    def _group(self, by: Dimension | None) -> str:
        if by is None:
            return "NULL"
        for period in PERIODS:
            if by == period:
                return self._bucketed(period).sql("quarter")
        if by == "family":
            self._stats.make_families()
        return _GROUPS[by]

    def _bucketed(self, period: Period) -> Buckets:
        lows, highs = [], []
        for table in ("spent", "called", "turned"):
            low, high = self._read(
                f"SELECT min(quarter), max(quarter) FROM {self._from(table)}"
            ).fetchone()
            lows += [low] if low is not None else []
            highs += [high] if high is not None else []
        self._buckets = Buckets(self._calendar, period, min(lows, default=0), max(highs, default=0))
        return self._buckets

    def _spent(self, sums: Sequence[Any]) -> Figures:
        number, answers, copies, *tokens, written, usd = sums
        charge = self._stats.charge(number)
        row = Figures(answers=answers, copies=copies, tokens=tuple(tokens), told_usd=usd)
        if charge.told in (TOLD, COVERED):
            row.told_answers = answers
            return row
        cost = self._stats.estimate(charge, tokens, written)
        if cost is None:
            row.unknown_answers = answers
        else:
            row.estimated_usd, row.estimated_answers = cost, answers
        return row

    def _sessions_of(self, by: Dimension, group: str) -> list[tuple[Any, int]]:
        table = "called" if by == "tool" else "spent"
        if by == "session":
            return [(row[0], 1) for row in self._read(
                f"SELECT DISTINCT session FROM {self._from(table)}")]
        joined = f"(SELECT * FROM {self._from(table)}) r JOIN session s ON s.number = r.session"
        if "f.root" in group:
            joined += " JOIN family f ON f.session = r.session"
        return self._read(
            f"SELECT {group}, count(DISTINCT r.session) FROM {joined} GROUP BY 1"
        ).fetchall()

    def sessions(self) -> int:
        """Return how many sessions have an answer."""
        (count,) = self._read(
            f"SELECT count(DISTINCT session) FROM {self._from('spent')}"
        ).fetchone()
        return int(count)

    # What groups are called

    def named(
        self, by: Dimension, groups: dict[Any, Group], order: Order, limit: int | None, query: Query
    ) -> list[Group]:
        """Return the groups with their names, in order."""
        if by in PERIODS:
            assert self._buckets is not None
            for number in sorted(groups):
                bucket = self._buckets.bucket(number)
                group = groups[number]
                group.key, group.label = bucket.key, bucket.label
                group.span = Span(bucket.start, bucket.end)
                group.query = _joined(query, _in_span(group.span, self._zone))
            return [groups[number] for number in sorted(groups)]
        for number, group in groups.items():
            group.key = self._stats.session_id(number) if by in ("session", "family") else (
                self._stats.text(number))
        found = sorted(groups.values(), key=lambda each: (*_size(each.figures, order), each.key))
        found = found[:limit]
        for group in found:
            group.label = _title(self._db, group.key) if by in ("session", "family") else group.key
            group.query = _joined(query, _selects(by, group.key), _in_span(self._span, self._zone))
        return found


_STACKS: dict[Stack, str] = {"agent": "s.agent", "model": "r.model"}
_GROUPS: dict[Dimension, str] = {
    "model": "r.model", "agent": "s.agent", "source": "s.source", "workspace": "s.workspace",
    "branch": "s.branch", "session": "r.session", "family": "f.root",
}  # fmt: skip
_SPENT = (
    "charge, sum(answers), sum(copies), sum(input), sum(output), sum(reasoning), sum(cache_read),"
    " sum(cache_write), sum(cache_write_1h), sum(usd)"
)
_TURNED = "sum(turns), sum(active_ms)"
_CALLED = "sum(calls), sum(failed), sum(denied), sum(timed), sum(milliseconds)"


def _both(span: Span, chosen: Narrowed) -> Span:
    starts = [each for each in (span.start, chosen.start) if each is not None]
    ends = [each for each in (span.end, chosen.end) if each is not None]
    return Span(max(starts, default=None), min(ends, default=None))


def _size(found: Figures, order: Order) -> tuple[float, ...]:
    sizes: dict[Order, float] = {
        "tokens": found.total, "cost": found.cost_usd or 0.0, "answers": found.answers,
        "calls": found.calls, "time": found.tool_ms, "active": found.active_ms,
    }  # fmt: skip
    return -sizes[order], -found.total, -found.calls


def _title(db: Database, session_id: str) -> str:
    row = db.connection.execute(
        f"SELECT {db.form.title('s')} FROM chat_sessions s WHERE s.id = ?", (session_id,)
    ).fetchone()
    return (text(row[0]) if row else None) or session_id


def _selects(by: Dimension, key: str) -> str:
    if by == "session":
        return f"id:{quoted(key)}"
    if by == "family":
        return f"id:{quoted(key)}"
    if by == "tool":
        return f"tool:={quoted(key)}"
    return f"{by}:={quoted(key)}" if key else f"-{by}:*"


def _in_span(span: Span, zone: tzinfo | None) -> str:
    pieces = [
        f"{name}:{_date(moment, zone)}" for name, moment in
        (("after", span.start), ("before", span.end)) if moment is not None
    ]  # fmt: skip
    return " ".join(pieces)


def _date(moment: int, zone: tzinfo | None) -> str:
    """Return a moment as a query has it: the day where that is it, for the computer's own zone."""
    at = datetime.fromtimestamp(moment / 1000, zone)
    day = f"{at:%Y-%m-%d}"
    if dates.moment(day, now=moment, zone=None) == moment:
        return day
    return at.isoformat(timespec="seconds" if at.second else "minutes")


def _joined(query: Query, *pieces: str) -> str:
    return " ".join(piece for piece in (query.text.strip(), *pieces) if piece)


# Further questions


class LongestTurn(NamedTuple):
    """One of the longest turns, from its prompt to its last change."""

    session_id: str
    title: str
    message_id: str
    at: int
    milliseconds: int


def longest_turns(
    db: Database, stats: Rollups, *, span: Span, query: Query, limit: int = 10
) -> list[LongestTurn]:
    """Return the longest turns that began in a span; of each session the five longest at most.

    Args:
        db: The store.
        stats: Its counts.
        span: When they began.
        query: What narrows the sessions.
        limit: The most turns.
    """
    chosen = narrowed(db, query)
    start, end = _both(span, chosen)
    rows = stats.connection.execute(
        "SELECT s.id, l.message, l.at, l.milliseconds FROM longest l"
        " JOIN session s ON s.number = l.session"
        " WHERE l.at >= ? AND l.at < ? ORDER BY l.milliseconds DESC, l.at, l.message",
        (-(2**63) if start is None else start, 2**63 - 1 if end is None else end),
    )
    found = []
    for session_id, message_id, at, took in rows:
        if chosen.sessions is None or session_id in chosen.sessions:
            found.append(LongestTurn(session_id, _title(db, session_id), message_id, at, took))
        if len(found) >= limit:
            break
    return found


class Share(NamedTuple):
    """How much of what models were given in a period came from the cache, 0 to 1."""

    key: str
    label: str
    share: float | None
    figures: Figures


def cache_share(
    db: Database, stats: Rollups, *, by: Period, span: Span, query: Query, zone: tzinfo
) -> list[Share]:
    """Return the cache share over time.

    Args:
        db: The store.
        stats: Its counts.
        by: The length of a period.
        span: The time that is counted.
        query: What narrows it.
        zone: The time zone of the periods.
    """
    found = figures(db, stats, by=by, span=span, query=query, zone=zone)
    return [
        Share(each.key, each.label, each.figures.cache_share, each.figures)
        for each in found.groups
    ]


def context_tokens(db: Database, session_id: str) -> int | None:
    """Return how many tokens are in a session's context now; None where nothing tells.

    What the newest visible answer was given and gave itself; after a compaction its summary.
    """
    found = last_usage(db, session_id)
    return None if found is None else context_size(decoded(found))
