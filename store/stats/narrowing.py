"""What a query of the list's language selects of the counts.

``model:``, ``tool:``, ``role:``, ``after:`` and ``before:`` select rows; everything else, words
that are said in a session among it, selects sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from store.engine.database import Database
from store.engine.values import text
from store.language.query import Condition, Query
from store.language.values import value_test
from store.queries.listing_filter import ListFilterTest
from store.search.conditions import conditions_of
from store.search.running import SessionsFound, sessions_with_hits, with_index
from store.system.clock import system_clock

_OF_ROWS = frozenset(("model", "tool", "role", "after", "before"))


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is counted.

    Attributes:
        sessions: Ids of the selected sessions; None for all.
        model: Tests the id of a model; None where any is wanted.
        tool: Tests the name of a tool, as ``model`` does.
        answers: Whether answers and calls are counted; ``role:user`` leaves turns alone.
        turns: Whether turns are.
        start: Epoch ms; None without a limit.
        end: Epoch ms, excluded.
        why: Why not all sessions with the words were found; "" where all were.
    """

    sessions: set[str] | None = None
    model: Callable[[str], bool] | None = None
    tool: Callable[[str], bool] | None = None
    answers: bool = True
    turns: bool = True
    start: int | None = None
    end: int | None = None
    why: str = ""

    def among(self, session_ids: Collection[str] | None) -> Narrowed:
        """Return the same for some sessions alone; None for all."""
        if session_ids is None:
            return self
        chosen = set(session_ids)
        return replace(self, sessions=chosen if self.sessions is None else chosen & self.sessions)


def narrowed(db: Database, query: Query) -> Narrowed:
    """Return what a query selects.

    Args:
        db: The store.
        query: From ``store.language.query.parse``.
    """
    if not query:
        return Narrowed()
    rest = replace(query, filters=tuple(
        each for each in query.filters if each.field not in _OF_ROWS))
    sessions, why = _sessions(db, rest) if rest else (None, "")
    asks = conditions_of(replace(query, terms=()))
    models = [each for each in query.conditions if each.field == "model"]
    after = [int(float(each.value)) for each in query.filters if each.field == "after"]
    before = [int(float(each.value)) for each in query.filters if each.field == "before"]
    return Narrowed(
        sessions,
        (lambda name: all(_fits(each, name) for each in models)) if models else None,
        (lambda name: asks.tool_fits(f"tool-{name}", {"type": f"tool-{name}"}))
        if asks.tools else None,
        asks.role_fits("assistant"), asks.role_fits("user"),
        max(after, default=None), min(before, default=None), why,
    )  # fmt: skip


def _fits(condition: Condition, name: str) -> bool:
    found = any(
        value_test("model", each.operator, str(each.value))(name) for each in condition.filters
    )
    return found is not condition.negated


def _sessions(db: Database, query: Query) -> tuple[set[str], str]:
    """Return the sessions that a list shows for a query, archived ones too."""
    asked = ListFilterTest(query, fuzzy=False)
    ids = {
        int(rowid): text(session_id) or "" for rowid, session_id in
        db.connection.execute(f"SELECT {db.sql.rowid()}, id FROM chat_sessions").fetchall()
    }  # fmt: skip
    found = {ids[rowid] for rowid in asked.matching(db, list(ids), system_clock())}
    if not asked.asks_for_parts:
        return found, ""
    hits = SessionsFound(set())
    for step in with_index(
        db.path, lambda index: sessions_with_hits(db, asked.of_parts, index)
    ):
        hits = step or hits
    return found | hits.ids, hits.why
