"""Which sessions a query's fields ask for, as SQL and as tests of what sessions do.

Conditions on parts of sessions (``tool:``, ``file:``, ``is:denied``…) are left to
``store.search``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import orjson

from store.activity.states import RUNNING_STATES, STATES, WAITING_STATES
from store.engine.database import Database
from store.engine.values import Column, text
from store.language.query import Condition, Filter, Operator, Query
from store.language.values import value_test
from store.queries import activities
from store.queries.workspaces import names_of

if TYPE_CHECKING:
    from store.sharing.masks import Masks

_SHORTEST_MESSAGE_ID = 8
"""Characters of an id with which messages are looked for too."""
_LAST = "\U0010ffff"
_DOING: dict[str, frozenset[str]] = {
    **{state: frozenset((state,)) for state in STATES},
    "running": RUNNING_STATES, "waiting": WAITING_STATES,
}  # fmt: skip
"""For values of ``is:``, the activities that they mean."""
STATUS_PATHS = ("backscroll.status", "backscroll.branch.status", "backscroll.state")
"""Where sources keep an agent's own word for what a session does."""
_SESSIONS = "chat_sessions s"
_OF_BOTH = frozenset(("error", "hidden"))
"""Values of ``is:`` that mean something for a part and for a session."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A condition on a session ``s``.

    Attributes:
        text: An expression that is 0 or 1, with ``?`` for the values.
        values: In the order of the text.
    """

    text: str
    values: tuple[Any, ...] = ()


ALWAYS = Sql("TRUE")


def session_condition(
    db: Database, query: Query | Sequence[Condition], masks: Masks | None = None
) -> tuple[str, list[Any]]:
    """Return the SQL condition on a session ``s`` that a query's fields ask for, and its values.

    What sessions do now is not in it (``session_test``), nor are conditions on parts.

    Args:
        db: The store; a function that the condition uses is made on its connection.
        query: The query, or conditions on sessions.
        masks: Masks the values before they are compared, so that nobody finds out what is
            masked by asking for it letter by letter; None compares them as they are.
    """
    asked = _Asked(db, masks)
    found = [
        _condition(asked, each) for each in _on_sessions(query) if not asks_for_activity(each)
    ]
    joined = _joined(found, "AND")
    return joined.text, list(joined.values)


def session_test(
    db: Database, query: Query | Sequence[Condition], now: int
) -> Callable[[Sequence[int]], set[int]] | None:
    """Return what tests sessions by what they do; None where the query does not ask for it.

    The test takes rowids of sessions and returns those that do what is asked for.

    Args:
        db: The store.
        query: The query, or conditions on sessions.
        now: The present, epoch ms.
    """
    asked = [each for each in _on_sessions(query) if asks_for_activity(each)]
    return (lambda rowids: _doing(db, asked, rowids, now)) if asked else None


def list_conditions(query: Query) -> tuple[Condition, ...]:
    """Return the conditions that a list of sessions tests on the sessions themselves.

    ``is:error`` and ``is:hidden`` ask for parts where the query asks for parts anyway. Else
    they ask a list for sessions that ended in an error, and for those with hidden messages.
    """
    others = [
        each for each in query.part_conditions
        if each.field != "is" or any(one.value not in _OF_BOTH for one in each.filters)
    ]
    return query.session_conditions if others else query.conditions


def condition_of(condition: Condition) -> tuple[str, bool, frozenset[tuple[str, object]]]:
    """Return what a condition asks for, wherever it is in the query."""
    values = frozenset((each.operator, each.value) for each in condition.filters)
    return condition.field, condition.negated, values


def _on_sessions(query: Query | Sequence[Condition]) -> Sequence[Condition]:
    return query.session_conditions if isinstance(query, Query) else query


def asks_for_activity(condition: Condition) -> bool:
    """Return whether a condition depends on what a session does now."""
    return condition.field == "is" and any(each.value in _DOING for each in condition.filters)


def _doing(
    db: Database, asked: Sequence[Condition], rowids: Sequence[int], now: int
) -> set[int]:
    left = set(rowids)
    states = activities.states_of(db, rowids, now)
    for condition in asked:
        wanted = frozenset[str]().union(
            *(_DOING.get(str(each.value), frozenset()) for each in condition.filters))
        fits = {rowid for rowid in left if states.get(rowid, "idle") in wanted}
        others = [each for each in condition.filters if each.value not in _DOING]
        if others:
            asked_of = _Asked(db, None)
            condition_of_others = _joined([_filter(asked_of, each) for each in others], "OR")
            fits |= _selected(db, condition_of_others, left)
        left = left - fits if condition.negated else fits
    return left


def _selected(db: Database, condition: Sql, rowids: set[int]) -> set[int]:
    number = db.sql.rowid("s")
    return {row[0] for row in db.connection.execute(
        f"SELECT {number} FROM {db.sql.numbers('?', 'j')} JOIN chat_sessions s"
        f" ON {number} = j.value WHERE {condition.text}",
        (orjson.dumps(list(rowids)).decode(), *condition.values),
    ).fetchall()}


def _joined(conditions: Sequence[Sql], by: str) -> Sql:
    if not conditions:
        return ALWAYS
    return Sql(
        "(" + f" {by} ".join(each.text for each in conditions) + ")",
        tuple(value for each in conditions for value in each.values),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A store whose sessions are asked about, and what masks their values before."""

    db: Database
    masks: Masks | None


def _condition(of: _Asked, condition: Condition) -> Sql:
    found = _joined([_filter(of, each) for each in condition.filters], "OR")
    return Sql(f"NOT {found.text}", found.values) if condition.negated else found


def _filter(of: _Asked, wanted: Filter) -> Sql:
    """Return the condition of one value; it is never NULL."""
    sql, form = of.db.sql, of.db.form
    if wanted.field == "is":
        return Sql(_STATES[str(wanted.value)](of.db))
    if wanted.field in _NUMBERS:
        column, operator = _NUMBERS[wanted.field]
        sign = operator or ("=" if wanted.operator == ":" else wanted.operator)
        return Sql(f"({sql.plain_number(column)} {sign} ?)", (wanted.value,))
    special: dict[str, Callable[[_Asked, Filter], Sql]] = {
        "workspace": _workspace, "tag": _tag, "label": _label, "id": _id,
        "status": _status,
    }  # fmt: skip
    if wanted.field in special:
        return special[wanted.field](of, wanted)
    return _fits(of, wanted, {
        "agent": "s.agent", "source": form.source_kind("s"), "title": form.title("s"),
        "project": form.fact("s", "backscroll.project"),
        "account": form.fact("s", "backscroll.account"),
        "branch": form.fact("s", "git_branch"), "model": sql.fact("s.model_json", "model_id"),
        "owner": form.fact("s", "owner"),
    }[wanted.field])


_NUMBERS: dict[str, tuple[str, str | None]] = {
    "cost": ("s.cost_usd", None), "tokens": ("s.total_tokens", None),
    # A session lasts: it is at all times from its start to its last change.
    "after": ("s.updated_at", ">="), "before": ("s.created_at", "<"),
}  # fmt: skip
"""The column of a field, and the comparison that the field itself stands for."""


def _fits(
    of: _Asked, wanted: Filter, column: str, value: str | None = None, table: str = _SESSIONS
) -> Sql:
    """Return whether a value of a session fits.

    SQLite asks a function of Python for each. A server has no such function: there each value
    is read once and tested here, and the condition names those that fit.

    Args:
        of: The store.
        wanted: What is asked for.
        column: The value.
        value: What is asked for, where it is not that of ``wanted``.
        table: Where all values are, with a session ``s``.
    """
    asked = str(wanted.value) if value is None else value
    if of.db.server is None:
        return Sql(f"{_function(of)}(?, ?, ?, {column})", (wanted.field, wanted.operator, asked))
    rows = of.db.connection.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall()
    fits = _query_fits if of.masks is None else partial(_masked_fits, of.masks)
    fitting = [row[0] for row in rows if fits(wanted.field, wanted.operator, asked, row[0])]
    return Sql(
        f"coalesce({column} IN (SELECT value FROM {of.db.sql.texts('?', 'fitting')}), FALSE)",
        (orjson.dumps(fitting).decode(),),
    )


def _workspace(of: _Asked, wanted: Filter) -> Sql:
    """Return the condition on a folder; a whole path also means the folder's other names."""
    value = str(wanted.value)
    names = [value]
    if value.startswith("/") and not set("*?") & set(value):
        below = "/" if value.endswith("/") and value != "/" else ""
        names = [name + below for name in names_of(of.db, value.rstrip("/") or "/")]
    return _joined([_fits(of, wanted, "s.workspace_root", name) for name in names], "OR")


def _tag(of: _Asked, wanted: Filter) -> Sql:
    return _any_of(of, wanted, "user.tags")


def _label(of: _Asked, wanted: Filter) -> Sql:
    return _any_of(of, wanted, "user.labels")


def _status(of: _Asked, wanted: Filter) -> Sql:
    """Return whether the word of the session, of its branch or of one of its tasks fits."""
    named = [_fits(of, wanted, of.db.form.fact("s", path)) for path in STATUS_PATHS]
    word = f"CASE WHEN substr(t.value, 1, 1) = '{{' THEN {of.db.sql.fact('t.value', 'status')} END"
    return _joined([*named, _any_of(of, wanted, "backscroll.tasks", word)], "OR")


def _any_of(of: _Asked, wanted: Filter, path: str, value: str = "t.value") -> Sql:
    """Return whether one of several values of a session fits; few sessions have any.

    Args:
        of: The store.
        wanted: What is asked for.
        path: Where the values are in the session's metadata.
        value: What of each value ``t.value`` is compared.
    """
    sql, column = of.db.sql, "s.metadata_json"
    key = f"'\"{path.rpartition('.')[2]}\"'"
    has_any = f"{sql.contains(column, key)} AND {sql.is_json(column)}"
    values = sql.items(column, path, "t")
    fits = _fits(
        of, wanted, value,
        table=f"(SELECT * FROM chat_sessions s WHERE {has_any}) s CROSS JOIN LATERAL {values}")
    return Sql(
        f"CASE WHEN {has_any} THEN"
        f" EXISTS (SELECT 1 FROM {values} WHERE {fits.text}) ELSE FALSE END", fits.values,
    )


def _id(of: _Asked, wanted: Filter) -> Sql:
    value = str(wanted.value)
    ids = [_fits(of, wanted, "s.id"), _fits(of, wanted, of.db.form.source_id("s"))]
    if len(value) >= _SHORTEST_MESSAGE_ID:
        until = value if wanted.operator == "=" else value + _LAST
        ids.append(Sql(
            "s.id IN (SELECT m.session_id FROM chat_messages m WHERE m.id >= ? AND m.id <= ?)",
            (value, until),
        ))
    return _joined(ids, "OR")


def _archived(db: Database) -> str:
    return "(s.archived_at IS NOT NULL)"


def _starred(db: Database) -> str:
    return db.form.starred("s")


def _fork(db: Database) -> str:
    # A fork's copies keep their times, so they are older than the fork itself.
    first = "(SELECT min(m.created_at) FROM chat_messages m WHERE m.session_id = s.id)"
    kind = db.form.fact("s", "lineage.kind")
    return (
        "(s.parent_id IS NOT NULL AND coalesce("
        f"{kind}, CASE WHEN {first} < s.created_at THEN 'fork' END, '') = 'fork')"
    )


def _subagent(db: Database) -> str:
    kind = db.form.fact("s", "lineage.kind")
    return f"(s.parent_id IS NOT NULL AND coalesce({kind}, '') = 'subagent')"


def _hidden(db: Database) -> str:
    return ("EXISTS (SELECT 1 FROM chat_messages m WHERE m.session_id = s.id"
            f" AND {db.form.hidden_at('m')} IS NOT NULL)")


_STATES: dict[str, Callable[[Database], str]] = {
    "archived": _archived, "starred": _starred, "fork": _fork, "subagent": _subagent,
    "hidden": _hidden,
}  # fmt: skip


def _function(of: _Asked) -> str:
    """Return the name of the function that compares values; it is made where it is missing.

    There is one a masking.
    """
    name, function = "query_fits", _query_fits
    if of.masks is not None:
        name = f"masked_fits_{hash(repr(of.masks.masking)) & 0xFFFF_FFFF_FFFF_FFFF:x}"
        function = partial(_masked_fits, of.masks)
    try:
        of.db.connection.execute(f"SELECT {name}('id', ':', '', '')").fetchall()
    except sqlite3.OperationalError:
        of.db.file.create_function(name, 4, function, deterministic=True)
    return name


def _query_fits(field: str, operator: Operator, wanted: str, value: Column) -> bool:
    found = text(value)
    if found is None:
        return False
    if field == "title":
        return value_test(field, operator, wanted)(found)
    return _known_fit(field, operator, wanted, found)


def _masked_fits(
    masks: Masks, field: str, operator: Operator, wanted: str, value: Column
) -> bool:
    found = text(value)
    return found is not None and _query_fits(field, operator, wanted, masks.mask(found))


@lru_cache(maxsize=10_000)
def _known_fit(field: str, operator: Operator, wanted: str, value: str) -> bool:
    """Return the same as ``value_test``, kept: many sessions have the same values."""
    return value_test(field, operator, wanted)(value)
