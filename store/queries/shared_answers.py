"""Which message counts an answer of a model, where several messages hold that answer.

An answer is paid for once and may be stored many times: in forks, in copies of a file, in
a resumed session's new file, in an agent's side file. Sync gives each answer a name
(``metadata_json.source.answer``, see ``store.sync.answers``), and copies that were made
here point at their original (``inherited_from``). This module alone decides from both which
rows are one answer, which of them counts it and with which usage.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.queries.running_totals import CostSoFar, cost_so_far
from store.usage import KEYS, Spent, bucket_sql

_BATCH = 400
"""Names in one query."""
_ASKED = ("input", "cache_read", "cache_write")
"""The buckets of what a request was given."""


@dataclass(slots=True)
class SharedAnswers:
    """What several messages hold, and how it is counted.

    Attributes:
        usage: By id of each message whose answer others hold too: what it counts with, None
            where another message counts it. A message that is not here counts as it is.
        begun_at: By session and running total, the dollars that the total began with because
            another session had spent them; see ``metadata_json.backscroll.cost_so_far``.
        together: The sessions that hold the same answer, each set of them once.
        begun_models: The same by model, where the source tells it.
    """

    usage: dict[str, Spent | None] = field(default_factory=dict)
    begun_at: dict[tuple[str, str], float] = field(default_factory=dict)
    together: set[frozenset[str]] = field(default_factory=set)
    begun_models: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)


@dataclass(slots=True)
class _Row:
    """A message that holds an answer.

    Attributes:
        name: The answer's name; None for a message that no sync brought.
        request: Which request it answers; None where the source does not say.
        words: Digest of what it says; None where the name is already made of that.
        origin: The id of the message that it was copied from.
        at: When the answer began, epoch ms.
        rank: The least of several rows counts: originals before copies, sessions before
            their subagents, older sessions before newer ones, and the one that the source
            noted a running total in.
        total: What the source noted after this message of the costs so far.
    """

    id: str
    session: str
    name: str | None
    request: str | None
    words: str | None
    origin: str | None
    at: int
    usage: Spent
    rank: tuple[Any, ...]
    total: CostSoFar | None


class _Copied(NamedTuple):
    """What a message was copied from, and the session that this is in."""

    id: str
    session: str


def shared_answers(db: Database, session_ids: Sequence[str] | None = None) -> SharedAnswers:
    """Return how the answers are counted that more than one message holds.

    Args:
        db: The store.
        session_ids: Only the answers of these sessions, wherever their copies are; None for
            the whole store.
    """
    rows = _every_row(db) if session_ids is None else _rows_around(db, session_ids)
    found = SharedAnswers()
    for group in _groups(rows):
        _count(found, group)
    return found


def _count(found: SharedAnswers, group: list[_Row]) -> None:
    first = min(group, key=lambda row: row.rank)
    usage = first.usage
    for row in group:
        usage = _largest(usage, row.usage)
    for row in group:
        found.usage[row.id] = usage if row is first else None
    found.together.add(frozenset(row.session for row in group))
    totals = [row.total for row in group if row.total is not None and row is first]
    for session in {row.session for row in group} - {first.session}:
        for total in totals:
            key = session, total.counter
            if total.usd > found.begun_at.get(key, -1.0):
                found.begun_at[key], found.begun_models[key] = total.usd, total.models


def _largest(one: Spent, other: Spent) -> Spent:
    """Return the larger output and the larger cost: copies may be cut short or zeroed."""
    most = max(one, other, key=lambda usage: (usage.output + usage.reasoning, usage.total))
    costs = [usage.cost for usage in (one, other) if usage.cost is not None]
    return replace(most, cost=max(costs, default=None))


def _groups(rows: dict[str, _Row]) -> Iterator[list[_Row]]:
    """Yield the rows that hold one answer, two at least each time."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := leader.get(name, name)) != name:
            leader[name] = leader.get(above, above)
            name = above
        return name

    by_name: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows.values():
        if row.name is not None:
            by_name[row.name].append(row)
    for named in by_name.values():
        for alike in _alike(named):
            for row in alike[1:]:
                leader[find(row.id)] = find(alike[0].id)
    for row in rows.values():
        original = rows.get(row.origin) if row.origin is not None else None
        # Two rows of one name that are not alike are two answers, whatever a lineage says.
        if row.origin is not None and (
            original is None or row.name is None or row.name != original.name
        ):
            leader[find(row.id)] = find(row.origin)
    groups: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows.values():
        groups[find(row.id)].append(row)
    return (group for group in groups.values() if len(group) > 1)


def _alike(named: list[_Row]) -> Iterator[list[_Row]]:
    """Split the rows of one name into answers.

    Rows are compared by request id; without one by time, and if the times differ, by usage and
    words. Answers named by their content are distinguished within a session by their order,
    as an agent may say the same twice.
    """
    if named[0].words is None:
        yield from _in_order(named)
        return
    by_request: dict[str | None, list[_Row]] = {}
    for row in named:
        by_request.setdefault(row.request, []).append(row)
    answers = [alike for request, alike in by_request.items() if request is not None]
    for row in sorted(by_request.get(None, ()), key=lambda row: (row.at, row.id)):
        known = [alike for alike in answers if any(_same(row, other) for other in alike)]
        # Several requests may have been answered at the same time with the same words.
        (min(known, key=lambda alike: alike[0].rank) if known else _new(answers)).append(row)
    yield from answers


def _new(answers: list[list[_Row]]) -> list[_Row]:
    answers.append([])
    return answers[-1]


def _same(row: _Row, other: _Row) -> bool:
    if row.words == other.words:
        return row.at == other.at or row.usage.tokens == other.usage.tokens
    # A copy may be cut short, but it was asked the same.
    asked, there = row.usage, other.usage
    return row.at == other.at and (
        not any(asked.tokens) or not any(there.tokens)
        or all(getattr(asked, key) == getattr(there, key) for key in _ASKED)
    )


def _in_order(named: list[_Row]) -> Iterator[list[_Row]]:
    sessions: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in sorted(named, key=lambda row: (row.at, row.id)):
        sessions[row.session].append(row)
    for place in range(max(map(len, sessions.values()))):
        yield [rows[place] for rows in sessions.values() if place < len(rows)]


def _every_row(db: Database) -> dict[str, _Row]:
    name, answer = db.form.answer_name("m"), db.form.fact("m", "source.answer[0]")
    # Grouping in SQL would read every row; the index has the names alone.
    names = Counter(
        row[0]
        for row in db.connection.execute(
            f"SELECT {name} FROM chat_messages m WHERE m.role = 'assistant'"
        )
    )
    rows: dict[str, _Row] = {}
    for batch in _batches([one for one, count in names.items() if count > 1 and one is not None]):
        rows |= _read(db, f"{name} IN ({_marks(batch)})", batch)
    # Those of copies that were made here are ids; the index finds them without reading rows.
    copies = f"{name} >= 'msg_' AND {name} < 'msg`'" if db.form.name == "own" else (
        f"{name} IS NOT NULL AND {answer} IS NULL"
    )  # fmt: skip
    rows |= _read(db, copies, ())
    # What went on in another agent has other names there, and its lineage alone tells.
    origin = db.form.fact("m", "inherited_from")
    children = "SELECT id FROM chat_sessions WHERE parent_id IS NOT NULL"
    rows |= _read(db, f"m.session_id IN ({children}) AND {origin} IS NOT NULL", ())
    rows |= _marked(db, _unmarked(db, "TRUE", ()))
    return _with_originals(db, rows)


def _rows_around(db: Database, session_ids: Sequence[str]) -> dict[str, _Row]:
    """Return the rows of some sessions whose answers may be elsewhere too, and those."""
    rows: dict[str, _Row] = {}
    name, other = db.form.answer_name("m"), db.form.answer_name("o")
    for ids in _batches(session_ids):
        marks = _marks(ids)
        if db.form.name != "own":
            # No index has the names there: only the way from a copy to its original is short.
            rows |= _read(db, f"m.session_id IN ({marks}) AND {name} IS NOT NULL", ids)
            rows |= _marked(db, _unmarked_around(db, ids))
            continue
        shared = (
            f"SELECT DISTINCT {name} AS name FROM chat_messages m"
            f" WHERE m.session_id IN ({marks}) AND m.role = 'assistant' AND {name} IS NOT NULL"
            " AND EXISTS (SELECT 1 FROM chat_messages o WHERE o.role = 'assistant'"
            f" AND {other} = {name} AND o.id <> m.id)"
        )
        copied = (f"SELECT {db.sql.as_fact('id')} AS name FROM chat_messages"
                  f" WHERE session_id IN ({marks})")  # fmt: skip
        for names in (shared, copied):
            rows |= _read(db, "TRUE", ids, names)
        origin = db.form.fact("m", "inherited_from")
        rows |= _read(db, f"m.session_id IN ({marks}) AND {origin} IS NOT NULL", ids)
    return _with_originals(db, rows)


def _unmarked(db: Database, condition: str, values: Sequence[str]) -> dict[str, _Copied]:
    """Return the copies that a host's fork made, by id; nothing in them tells of their originals.

    Such a copy keeps its time, so it is older than its session, and it is the same as a message
    of the parent.
    """
    if db.form.name == "own":
        return {}
    marks = (f"{db.form.fact('m', path)} IS NULL" for path in ("source.answer[0]",
                                                               "inherited_from"))  # fmt: skip
    rows = db.connection.execute(
        "SELECT m.id, m.session_id, o.id, o.session_id FROM chat_sessions s"
        " JOIN chat_messages m ON m.session_id = s.id AND m.created_at < s.created_at"
        " JOIN chat_messages o ON o.session_id = s.parent_id AND o.created_at = m.created_at"
        f" WHERE s.parent_id <> s.id AND {condition} AND m.role = 'assistant'"
        f" AND o.role = 'assistant' AND {' AND '.join(marks)}"
        f" AND {db.form.fact('m', 'usage')} {db.sql.same} {db.form.fact('o', 'usage')}"
        " ORDER BY m.id, o.id",
        values,
    )
    found: dict[str, _Copied] = {}
    taken: set[tuple[str, str]] = set()
    for copy, session, original, parent in rows:
        # Two may have begun at the same time.
        if copy not in found and (session, original) not in taken:
            found[copy] = _Copied(original, parent)
            taken.add((session, original))
    return found


def _unmarked_around(db: Database, session_ids: Sequence[str]) -> dict[str, _Copied]:
    """Return the same of some sessions, and of those that they were forked from."""
    found: dict[str, _Copied] = {}
    seen, waiting = set[str](), set(session_ids)
    while waiting:
        seen |= waiting
        above = dict[str, _Copied]()
        for ids in _batches(sorted(waiting)):
            above |= _unmarked(db, f"s.id IN ({_marks(ids)})", ids)
        found |= above
        waiting = {copied.session for copied in above.values()} - seen
    return found


def _marked(db: Database, copies: Mapping[str, _Copied]) -> dict[str, _Row]:
    """Return the rows of copies, each with its original."""
    rows: dict[str, _Row] = {}
    for ids in _batches(sorted(copies)):
        rows |= _read(db, f"m.id IN ({_marks(ids)})", ids)
    for row in rows.values():
        row.origin, row.rank = copies[row.id].id, (True, *row.rank[1:])
    return rows


def _with_originals(db: Database, rows: dict[str, _Row]) -> dict[str, _Row]:
    """Add the messages that others were copied from, the originals of those, and so on."""
    missing = {row.origin for row in rows.values() if row.origin is not None} - rows.keys()
    while missing:
        found: dict[str, _Row] = {}
        for ids in _batches(sorted(missing)):
            found |= _read(db, f"m.id IN ({_marks(ids)})", ids)
        rows |= found
        origins = {row.origin for row in found.values() if row.origin is not None}
        missing = origins - rows.keys() - missing
    return rows


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + _BATCH] for start in range(0, len(names), _BATCH))


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))


def _read(
    db: Database, condition: str, values: Iterable[str], names: str = ""
) -> dict[str, _Row]:
    """Return the rows of messages.

    Args:
        db: The store.
        condition: Which messages ``m``.
        values: Of the statement.
        names: A statement for the names of answers, to read those alone.
    """
    form = db.form
    facts = ("source.answer[0]", "source.answer[1]", "source.answer[2]", "inherited_from")
    metadata = "m.metadata_json"
    columns = ", ".join([
        *(form.fact("m", path) for path in facts),
        db.sql.number(metadata, "backscroll.true_created_at"),
        form.rare_fact("m", "backscroll.cost_so_far"), db.sql.amount(metadata, "cost_usd"),
    ])  # fmt: skip
    usage = ", ".join(bucket_sql("m", key, db.sql) for key in KEYS)
    table = "chat_messages m"
    if names:
        # The index of names has the answers alone.
        has_name = f"m.role = 'assistant' AND {form.answer_name('m')} = named.name"
        table = f"({names}) named{db.sql.found('chat_messages', 'm', has_name)}"
    cursor = db.connection.execute(
        "SELECT m.id, m.session_id, m.created_at, s.created_at,"
        f" {form.fact('s', 'lineage.kind')} = 'subagent', {columns}, {usage}"
        f" FROM {table}{db.sql.found('chat_sessions', 's', 's.id = m.session_id')}"
        f" WHERE m.role = 'assistant' AND {condition}",
        tuple(values),
    )
    return {row.id: row for row in map(_row, cursor)}


def _row(values: tuple[Any, ...]) -> _Row:
    (message_id, session_id, at, began, is_subagent,
     name, request, words, origin, true_at, noted, cost, *usage) = values  # fmt: skip
    total = None if noted is None else cost_so_far(decoded(text(noted)))
    return _Row(
        message_id,
        session_id,
        text(name),
        text(request),
        text(words),
        text(origin),
        number(at if true_at is None else true_at),
        Spent.of(usage, cost if isinstance(cost, int | float) else None),
        (origin is not None, bool(is_subagent), number(began), total is None, session_id,
         number(at), message_id),
        total,
    )
