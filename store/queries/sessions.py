"""Sessions: pages of the list, and one by its name.

Pages go by ``(updated_at, id)``, newest first; ids alone say nothing of the order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import orjson

from store.conversation.outline_marks import OUTLINE
from store.engine.database import Database
from store.engine.reading import session_columns, session_row
from store.engine.values import decoded, number
from store.errors import MOST_CHOICES, Ambiguous, Choice, NotFound, no_session
from store.language.query import Condition
from store.queries.helpers import without_helpers
from store.queries.matching_sessions import session_condition
from store.queries.workspaces import names_of
from store.rows import SessionRow

if TYPE_CHECKING:
    from store.sharing.masks import Masks

Archived = Literal["exclude", "include", "only"]
Cursor = tuple[int, str]
"""``(updated_at, id)`` of the last row of the page before."""

_PLACE = re.compile(r"'(?:[^']|'')*'|\?")
"""A text of SQL, or the place of a value."""
LAST_CODE_POINT = "\U0010ffff"
SMALLEST = -(2**63)
"""The smallest whole number of SQLite."""
MOST_SHARES = 24
"""Of more agents than this, a host's list is sorted instead of merged."""


def cursor_in(text: str) -> Cursor:
    """Return a cursor that is written as ``TIME:ID``.

    Raises:
        ValueError: It is not written so, or SQLite has no such time.
    """
    at, _, name = text.partition(":")
    if not name or not SMALLEST <= int(at) < -SMALLEST:
        raise ValueError(text)
    return int(at), name


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions a list holds; None does not filter.

    Attributes:
        workspace: The folder, by any of its names; an empty string means sessions without a folder.
        source: The kind in ``metadata_json.source``.
        query: Text anywhere in the title (the user's own wins), without regard to case.
        fields: Conditions of a query that all have to hold; what sessions do now is not tested.
        skip_empty: Leave out sessions that have neither messages nor children, except those that
            are listed and not read yet.
        helpers: Whether runs that agents started for themselves are among them.
        masks: Masks the values that ``fields`` compare; None for nothing.
    """

    agent: str | None = None
    workspace: str | None = None
    source: str | None = None
    archived: Archived = "exclude"
    query: str | None = None
    fields: tuple[Condition, ...] = ()
    skip_empty: bool = False
    helpers: bool = True
    masks: Masks | None = None


def page(
    db: Database, filter: SessionFilter, *, before: Cursor | None = None, limit: int = 128
) -> list[SessionRow]:
    """Return a page of sessions, newest ``updated_at`` first.

    Args:
        db: The store.
        filter: Which sessions.
        before: The cursor of the last row so far; None starts at the newest.
        limit: How many rows; a negative number means all.
    """
    sql, parameters = page_sql(db, filter, before=before, limit=limit)
    return [session_row(row) for row in db.connection.execute(sql, parameters).fetchall()]


def page_sql(
    db: Database, filter: SessionFilter, *, before: Cursor | None = None, limit: int = 128
) -> tuple[str, dict[str, Any]]:
    """Return the text and parameters of ``page``.

    Where one index does not hold a list in its order, several do, each a share of it:
    their ordered walks are merged, which reads no more rows than the page has.

    Args:
        db: The store.
        filter: Which sessions.
        before: ``(updated_at, id)`` of the last row of the page before.
        limit: How many at most.
    """
    conditions, parameters = _conditions(db, filter)
    if before is not None:
        conditions.append("(s.updated_at, s.id) < ($8, $9)")
        parameters |= {"8": before[0], "9": before[1]}
    parameters["10"] = db.sql.limit(limit)
    if db.form.name == "own":
        shares = _shelves(filter)
    else:
        shares, agents = _agents(db, filter)
        parameters |= agents
    selects = [
        f"SELECT {session_columns(db)}, s.updated_at AS at, s.id AS name FROM chat_sessions s"
        + _where([*share, *conditions])
        for share in shares
    ]
    sql = " UNION ALL ".join(selects) + " ORDER BY at DESC, name DESC LIMIT $10"
    return sql, parameters


def _shelves(filter: SessionFilter) -> list[list[str]]:
    """Return the conditions of a library's list, separate for archived sessions."""
    filtered = (filter.agent, filter.workspace, filter.source) != (None, None, None)
    if filter.archived == "include" and filtered:
        return [["s.archived_at IS NULL"], ["s.archived_at IS NOT NULL"]]
    return [_shelf(filter.archived)]


def _agents(db: Database, filter: SessionFilter) -> tuple[list[list[str]], dict[str, Any]]:
    """Return the shares of a host's list: the contract has an order by agent alone.

    Its index on ``archived_at`` would lead to every row being sorted, so it is only used
    for the archive; ``+`` keeps SQLite from it.
    """
    if filter.archived == "only":
        return [[f"s.archived_at >= {SMALLEST}"]], {}
    shelf = [f"{db.sql.walked('s.archived_at')} IS NULL"] if filter.archived == "exclude" else []
    agents = _known_agents(db) if filter.agent is None and filter.workspace is None else []
    if not 0 < len(agents) <= MOST_SHARES:
        return [shelf], {}
    shares = [[f"s.agent {db.sql.same} ${20 + number}", *shelf] for number in range(len(agents))]
    return shares, {str(20 + number): agent for number, agent in enumerate(agents)}


def _known_agents(db: Database) -> list[str | None]:
    """Return each agent, by leaps along an index; none where the file has no such index."""
    indexed = db.sql.is_indexed("chat_sessions", "agent", "updated_at")
    if db.connection.execute(indexed).fetchone() is None:
        return []
    sql = f"""
        WITH RECURSIVE known(agent) AS (
            SELECT min(agent) FROM chat_sessions
            UNION ALL
            SELECT (SELECT min(s.agent) FROM chat_sessions s WHERE s.agent > known.agent)
            FROM known WHERE known.agent IS NOT NULL
        )
        SELECT agent FROM known WHERE agent IS NOT NULL LIMIT {MOST_SHARES + 1}"""
    agents: list[str | None] = [row[0] for row in db.connection.execute(sql).fetchall()]
    nameless = "SELECT 1 FROM chat_sessions WHERE agent IS NULL LIMIT 1"
    return agents + ([None] if db.connection.execute(nameless).fetchone() else [])


def total(db: Database, filter: SessionFilter) -> int:
    """Return how many sessions the filter lets through."""
    conditions, parameters = _conditions(db, filter)
    sql = "SELECT count(*) FROM chat_sessions s" + _where([*_shelf(filter.archived), *conditions])
    return number(db.connection.execute(sql, parameters).fetchone()[0])


def get(db: Database, session_id: str) -> SessionRow | None:
    """Return a session by its id, or None."""
    sql = f"SELECT {session_columns(db)} FROM chat_sessions s WHERE s.id = $1"
    row = db.connection.execute(sql, {"1": session_id}).fetchone()
    return None if row is None else session_row(row)


def resolve(db: Database, name: str) -> SessionRow:
    """Return the session that a user names.

    Args:
        db: The store.
        name: Its id, its id at the source, or the beginning of one that no other shares.

    Raises:
        NotFound: No session has that name.
        Ambiguous: Several have it.
    """
    if not name:
        raise NotFound("no session given; name its id, its source id, or the start of one")
    source_id = db.form.source_id("s")
    until = name + LAST_CODE_POINT
    for condition in (
        "s.id = $1",
        f"{source_id} = $1",
        f"s.id >= $1 AND s.id < $2 UNION SELECT s.id FROM chat_sessions s"
        f" WHERE {source_id} >= $1 AND {source_id} < $2",
    ):
        sql = (
            f"SELECT id FROM chat_sessions WHERE id IN (SELECT s.id FROM chat_sessions s"
            f" WHERE {condition}) ORDER BY updated_at DESC, id DESC LIMIT {MOST_CHOICES + 1}"
        )
        found = [row[0] for row in db.connection.execute(sql, {"1": name, "2": until}).fetchall()]
        if len(found) > 1:
            choices = [_choice(db, row) for one in found[:MOST_CHOICES] if (row := get(db, one))]
            raise Ambiguous(name, "sessions", choices, more=len(found) > MOST_CHOICES)
        if found and (row := get(db, found[0])):
            return row
    raise no_session(name)


def _choice(db: Database, row: SessionRow) -> Choice:
    source = decoded(row.metadata_json).get("source")
    path = source.get("path") if isinstance(source, dict) else None
    details = (row.agent, path, row.title)
    return Choice(row.id, row.updated_at, tuple(str(each) for each in details if each))


def _shelf(archived: Archived | str) -> list[str]:
    if archived == "include":
        return []
    return [f"s.archived_at IS {'NOT ' if archived == 'only' else ''}NULL"]


def _where(conditions: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(conditions) if conditions else ""


def _conditions(db: Database, filter: SessionFilter) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    if filter.agent is not None:
        conditions.append("s.agent = $1")
        parameters["1"] = filter.agent
    if filter.workspace == "":
        conditions.append("coalesce(s.workspace_root, '') = ''")
    elif filter.workspace is not None:
        names = names_of(db, filter.workspace)
        if len(names) == 1:
            conditions.append("s.workspace_root = $2")
            parameters["2"] = filter.workspace
        else:
            listed = db.sql.texts("$2", "names")
            conditions.append(f"s.workspace_root IN (SELECT value FROM {listed})")
            parameters["2"] = orjson.dumps(names).decode()
    if filter.source is not None:
        conditions.append(f"{db.form.source_kind('s')} = $3")
        parameters["3"] = filter.source
    if filter.query:
        title, pattern = db.form.title("s"), "$4"
        if not filter.query.isascii():
            title, pattern = db.sql.folded(title), db.sql.folded(pattern)
        conditions.append(db.sql.like(title, pattern))
        escaped = re.sub(r"([%_\\])", r"\\\1", filter.query)
        parameters["4"] = f"%{escaped}%"
    if filter.fields:
        asked, values = session_condition(db, filter.fields, filter.masks)
        places = count()
        conditions.append(_PLACE.sub(
            lambda found: f"$q{next(places)}" if found[0] == "?" else found[0], asked))
        parameters |= {f"q{place}": value for place, value in enumerate(values)}
    if not filter.helpers and (condition := without_helpers(db)) is not None:
        conditions.append(condition)
    if filter.skip_empty:
        conditions.append(
            "(EXISTS (SELECT 1 FROM chat_messages m WHERE m.session_id = s.id)"
            " OR EXISTS (SELECT 1 FROM chat_sessions c WHERE c.parent_id = s.id)"
            f" OR {db.sql.is_true('s.metadata_json', f'source.{OUTLINE}')})"
        )
    return conditions, parameters
