"""What screens and commands ask for: figures by time, model, workspace and more.

Open the counts once (``open_rollups``) and ask as often as needed:

    with open_rollups(db, prices) as rollups:
        answer = figures(db, rollups, by="day", span=ALWAYS, query=query, zone=zone)

The figures of all groups add up to the whole, for every dimension but ``tool``, whose groups
have calls alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Literal, NamedTuple

from store.engine.database import Database
from store.engine.values import decoded, text
from store.language import dates
from store.language.query import Query, quoted
from store.queries.transcript import last_usage
from store.stats.figures import Figures
from store.stats.rollups import Coverage, Rollups, open_rollups
from store.stats.selecting import NO_HELPER, Order, Row, Selection, Span
from store.stats.times import PERIODS, Buckets, Calendar, Period
from store.text.stored_json import array_of
from store.usage import context_size

__all__ = [
    "ALWAYS", "DIMENSIONS", "Answer", "Coverage", "Dimension", "Figures", "Group", "Grouping",
    "LongestTurn", "Order", "Rollups", "Share", "Span", "cache_share", "context_tokens",
    "counted_sessions", "figures", "longest_turns", "open_rollups",
]  # fmt: skip

Dimension = Literal[
    "hour", "day", "week", "month", "model", "agent", "source", "workspace", "branch", "tool",
    "session", "family",
]
DIMENSIONS: tuple[Dimension, ...] = (
    "hour", "day", "week", "month", "model", "agent", "source", "workspace", "branch", "tool",
    "session", "family",
)
Grouping = Literal["model", "agent", "source", "workspace", "branch", "tool"]
"""What sessions, answers and calls tell by a name."""
Stack = Literal["agent", "model"]

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
    order: Order = "tokens", month_starts: int = 1, sessions: Collection[str] | None = None,
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
        limit: The most groups; ``Answer.others`` has the rest, and runs that agents started for
            themselves. Periods are not limited.
        order: What the groups are ordered by, the largest first.
        month_starts: The day on which a month begins; in a shorter month its last day.
        sessions: Only these, by id; None for all.
    """
    selection = stats.select(db, span, query, sessions)
    whole = selection.whole()
    if by is None:
        return Answer(whole, [], None, stats.coverage, selection.why)
    calendar = Calendar(zone, month_starts)
    if by in PERIODS:
        buckets = Buckets(calendar, by, selection.years())
        groups = _collected(stats, selection.by_time(buckets, _part(stack, "r")))
        if stack is not None:
            for number, count in selection.sessions_by_time(buckets):
                groups[number].figures.sessions = count
        found = _periods(groups, buckets, query, zone)
        return Answer(whole, found, None, stats.coverage, selection.why)
    others = None
    if by == "tool":
        groups = _collected(stats, selection.by_tool(_part(stack, "r")))
        _name(stats, by, groups)
        found = sorted(groups.values(), key=lambda each: (*_size(each.figures, order), each.key))
        for group in found[len(found) if limit is None else limit:]:
            others = others or Figures()
            others.add(group.figures)
        found = found[:limit]
    else:
        # What an agent did for itself is no session to choose, but the sums hold it.
        shown = NO_HELPER if by == "session" and sessions is None else "1"
        found, others = _by_session(stats, selection, by, stack, order, limit, shown)
    for group in found:
        group.label = _title(db, group.key) if by in ("session", "family") else group.key
        group.query = _joined(
            _without(query, by) if group.key else query.text, _selects(by, group.key),
            _in_span(selection.span, zone))
    return Answer(whole, found, others, stats.coverage, selection.why)


def _by_session(
    stats: Rollups, selection: Selection, by: Dimension, stack: Stack | None, order: Order,
    limit: int | None, shown: str,
) -> tuple[list[Group], Figures | None]:  # fmt: skip
    """Return the groups by something that sessions or models tell, and the rest of them.

    ``shown`` is the condition for what has a group.
    """
    if by == "family":
        stats.make_families()
    group, part, others = _GROUPS[by], _part(stack, "b"), None
    largest = [] if limit is None else selection.largest(group, order, limit + 1, shown)
    if limit is not None and len(largest) > limit:
        largest.pop()
        shown = f"{group} IN ({', '.join(map(str, largest))})"
    groups = _collected(stats, selection.by_session(group, part, shown))
    if shown != "1":
        for _, _, rest in selection.by_session("NULL", None, f"NOT ({shown})"):
            others = rest
    _name(stats, by, groups)
    if part is not None:
        for number, sessions in selection.sessions_by(group):
            if number in groups:
                groups[number].figures.sessions = sessions
    found = sorted(groups.values(), key=lambda each: (*_size(each.figures, order), each.key))
    return found, others


def _part(stack: Stack | None, table: str) -> str | None:
    return None if stack is None else {"agent": "s.agent", "model": f"{table}.model"}[stack]


def _collected(stats: Rollups, rows: Iterable[Row]) -> dict[Any, Group]:
    """Return groups, each with its parts, by number."""
    found: dict[Any, Group] = {}
    for number, part, sums in rows:
        group = found.setdefault(number, Group("", "", Figures()))
        group.figures.add(sums)
        group.figures.sessions += sums.sessions
        if part is not None:
            group.parts.setdefault(stats.text(part), Figures()).add(sums)
    return found


def _name(stats: Rollups, by: Dimension, groups: dict[Any, Group]) -> None:
    of_sessions = by in ("session", "family")
    for number, group in groups.items():
        group.key = stats.session_id(number) if of_sessions else stats.text(number)


def _periods(
    groups: dict[Any, Group], buckets: Buckets, query: Query, zone: tzinfo | None
) -> list[Group]:
    for number, group in groups.items():
        bucket = buckets.bucket(number)
        group.key, group.label = bucket.key, bucket.label
        group.span = Span(bucket.start, bucket.end)
        group.query = _joined(query.text, _in_span(group.span, zone))
    return [groups[number] for number in sorted(groups)]


_GROUPS: dict[Dimension, str] = {
    "model": "b.model", "agent": "s.agent", "source": "s.source", "workspace": "s.workspace",
    "branch": "s.branch", "session": "b.session", "family": "f.root",
}  # fmt: skip


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
    day, is_midnight = at.date().isoformat(), not (at.hour or at.minute or at.second)
    if is_midnight and dates.moment(day, now=moment, zone=None) == moment:
        return day
    return at.isoformat(timespec="seconds" if at.second else "minutes")


def _without(query: Query, field: str) -> str:
    """Return a query's text without the values of a field: one more would be an alternative."""
    found = query.text
    spans = {each.span for each in query.filters if each.field == field and not each.negated}
    for start, end in sorted(spans, reverse=True):
        found = f"{found[:start].rstrip()} {found[end:].lstrip()}"
    return found


def _joined(text: str, *pieces: str) -> str:
    return " ".join(piece for piece in (text.strip(), *pieces) if piece)


# Further questions


def counted_sessions(
    db: Database, stats: Rollups, *, by: Grouping | None, key: str, span: Span, query: Query
) -> set[int]:
    """Return the rowids of the sessions that a group counts, or a period.

    The list's own test of ``Group.query`` is another one: there ``model:`` asks for the model
    that the session has now, and a session is at all times from its first to its last change.

    Args:
        db: The store.
        stats: Its counts.
        by: What is grouped by; None for all in the span.
        key: ``Group.key``.
        span: The time that is counted.
        query: What narrows it.
    """
    group = None if by is None else "b.tool" if by == "tool" else _GROUPS[by]
    ids = stats.select(db, span, query, None).sessions(group, key)
    return {row[0] for row in db.connection.execute(
        f"SELECT {db.sql.rowid()} FROM chat_sessions WHERE id IN"
        f" (SELECT value FROM {db.sql.texts('?', 'j')})",
        (array_of(ids),),
    ).fetchall()}


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
    chosen = stats.narrowed(db, query)
    start = max((each for each in (span.start, chosen.start) if each is not None), default=None)
    end = min((each for each in (span.end, chosen.end) if each is not None), default=None)
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
