"""The order of a session list: one entry for each session.

A list holds one integer a session (its rowid) and reads the rows it shows. Sessions that
have a parent are below it. A thread (a session with all below it) is at the place of the first
of its members, and a group at the place of its first thread.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence

from store.engine.database import Database
from store.engine.values import number, text
from store.queries.helpers import without_helpers
from store.queries.list_options import GROUPS, SHELVES, SORTS
from store.queries.listing import ListQuery
from store.queries.workspaces import names_of
from store.system.records import field, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_QUARTER_HOUR = 900_000
_AT_ONCE = 4_096
LAST_SECOND = 253_402_214_400
"""Of the years of four digits, a day to spare; a host may count in smaller units."""


@record
class ListKeys:
    """All sessions of a list, one entry each, in the order of the sort.

    Attributes:
        rowids: Of ``chat_sessions``.
        groups: For each entry, an index into ``group_names``.
        group_names: A folder, a day as ``YYYY-MM-DD``, a source's kind, or empty.
        parents: Parent's rowid by child's rowid, where both are in the list.
        whole: False where this is only the first page.
        query: What was asked for.
    """

    rowids: array[int] = field(default_factory=lambda: array("q"))
    groups: array[int] = field(default_factory=lambda: array("i"))
    group_names: list[str] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    whole: bool = True
    query: ListQuery = field(default_factory=ListQuery)


def _listed(db: Database, query: ListQuery) -> str:
    """Return the SQL condition for the sessions ``s`` of a list, whatever their folder."""
    helpers = None if query.helpers else without_helpers(db)
    shelf = SHELVES[query.shelf].condition
    return shelf if helpers is None else f"{shelf} AND {helpers}"


def _where(db: Database, query: ListQuery) -> tuple[str, list[Any]]:
    clause = _listed(db, query)
    if query.workspace is None:
        return clause, []
    choices: list[str] = []
    values: list[Any] = []
    for name in names_of(db, query.workspace):
        below = name.rstrip("/") + "/"
        choices.append(f"s.workspace_root = ? OR substr(s.workspace_root, 1, {len(below)}) = ?")
        values += [name, below]
    return f"{clause} AND ({' OR '.join(choices)})", values


def _group_value(db: Database, query: ListQuery) -> str:
    return GROUPS[query.group].value(db.form, SORTS[query.sort])


def _order(db: Database, query: ListQuery) -> str:
    return SORTS[query.sort].order.format(title=db.form.title("s"))


def all_keys(db: Database, query: ListQuery) -> ListKeys:
    """Read the keys of every session of a list; 1M sessions take about a second.

    A sort with ``active_first`` is only finished by ``activities.keys``.
    """
    where, values = _where(db, query)
    keys = _collect(_in_columns(db, query, where, values), query)
    keys.parents = _all_parents(db, keys.rowids)
    return keys


def _in_columns(
    db: Database, query: ListQuery, where: str, values: Sequence[Any]
) -> Iterator[tuple[array[int], Iterable[Any]]]:
    """Yield the numbers of sessions in their order and what groups them, some at a time.

    Args:
        db: The store.
        query: Has the order and the groups.
        where: Which sessions ``s``.
        values: Of that condition.
    """
    sql = (f"SELECT {db.sql.rowid('s')} AS number, {_group_value(db, query)} AS value"
           f" FROM chat_sessions s WHERE {where} ORDER BY {_order(db, query)}")
    if db.server is not None:
        # One row of all: a tenth of what the driver takes for as many rows. It would look up
        # what an array of numbers is, in each new connection.
        packs = db.form.name == "own" and GROUPS[query.group].heading == "day"
        numbers, found = db.connection.execute(
            f"SELECT {_packed('number')}, {_packed('value') if packs else 'array_agg(value)'}"
            f" FROM ({sql}) listed", values).fetchone()
        yield _unpacked(numbers), _unpacked(found) if packs else found or ()
        return
    cursor = db.connection.execute(sql, values)
    while rows := cursor.fetchmany(_AT_ONCE):
        of_rows, found = zip(*rows, strict=True)
        yield array("q", of_rows), found


def _packed(column: str) -> str:
    """Return SQL of a server for all values of a BIGINT column in one."""
    return f"string_agg(int8send({column}), '')"


def _unpacked(found: bytes | None) -> array[int]:
    numbers = array("q", found or b"")
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _collect(columns: Iterable[tuple[array[int], Iterable[Any]]], query: ListQuery) -> ListKeys:
    """Return keys of the columns of sessions: their numbers, and what groups them."""
    keys, places = ListKeys(query=query), _Places()
    places.by_day = GROUPS[query.group].heading == "day"
    for numbers, values in columns:
        keys.rowids += numbers
        if isinstance(values, array):
            values = [value // _QUARTER_HOUR for value in values]
        elif places.by_day:
            values = [number(value) // _QUARTER_HOUR for value in values]
        keys.groups.extend(map(places.__getitem__, values))
    keys.group_names = list(places.names)
    return keys


class _Places(dict["Any", int]):
    """The places of groups, by what groups sessions.

    Attributes:
        names: The places by the names of groups, in their order.
        by_day: Whether sessions are grouped by quarters of an hour, and named by days.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.by_day = False

    def __missing__(self, value: Any) -> int:
        name = day_of(value * _QUARTER_HOUR) if self.by_day else text(value) or ""
        place = self[value] = self.names.setdefault(name, len(self.names))
        return place


def day_of(at: int) -> str:
    """Return the local day of epoch ms as ``YYYY-MM-DD``."""
    seconds = min(max(at / 1000, 0), LAST_SECOND)
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _all_parents(db: Database, rowids: array[int]) -> dict[int, int]:
    rows = db.connection.execute(
        f"SELECT {db.sql.rowid('c')}, {db.sql.rowid('p')} FROM chat_sessions c"
        " JOIN chat_sessions p ON p.id = c.parent_id WHERE c.parent_id IS NOT NULL"
    ).fetchall()
    if not rows:
        return {}
    listed = set(rowids)
    return _without_loops({c: p for c, p in rows if c in listed and p in listed})


def _without_loops(parents: dict[int, int]) -> dict[int, int]:
    """Drop the links of damaged lineage that lead back to where they started."""
    safe: set[int] = set()
    for start in list(parents):
        path: list[int] = []
        seen: set[int] = set()
        at = start
        while at in parents and at not in safe:
            if at in seen:
                del parents[at]
                break
            seen.add(at)
            path.append(at)
            at = parents[at]
        safe.update(path)
    return parents


def first_keys(db: Database, query: ListQuery, limit: int) -> ListKeys | None:
    """Read the keys of the first page alone, in the order of ``all_keys``.

    By workspace, a thread whose newest session lies in another folder than its first one
    may be missing or lower until the whole list is there.

    Args:
        db: The store.
        query: What the list shows.
        limit: How many sessions are wanted at least, where there are as many.

    Returns:
        None where no index serves this order; the whole list must be read then.
    """
    sort, group = SORTS[query.sort], GROUPS[query.group]
    if not (sort.newest_first and group.indexed) or query.workspace is not None:
        return None
    column = db.sql.rowid("s") if db.server is None else "s.id"
    if group.field == "workspace":
        first = _first_of_workspaces(db, query, limit, column)
    else:
        where, values = _where(db, query)
        first = [found for (found,) in db.connection.execute(
            f"SELECT {column} FROM chat_sessions s WHERE {where} "
            f"ORDER BY {_order(db, query)} LIMIT ?", [*values, limit])]
    if db.server is None:
        rowids = _with_relatives(db, query, first)
        these = f"{column} IN ({','.join('?' * len(rowids))})"
        keys = _collect(_in_columns(db, query, these, rowids), query)
        keys.parents = _parents_of(db, rowids)
    else:
        ids, parents = _relatives_on_server(db, query, first)
        these = f"s.id = {_named(db)}"
        keys = _collect(_in_columns(db, query, these, [ids]), query)
        keys.parents = parents
    keys.whole = False
    return keys


def _first_of_workspaces(
    db: Database, query: ListQuery, limit: int, column: str
) -> list[Any]:
    where = _listed(db, query)
    found: list[Any] = []
    seen: list[str] = []
    while len(found) < limit:
        unseen = f"AND coalesce(s.workspace_root, '') NOT IN ({','.join('?' * len(seen))})"
        newest = db.connection.execute(
            f"SELECT s.workspace_root FROM chat_sessions s WHERE {where} {unseen if seen else ''} "
            f"ORDER BY {_order(db, query)} LIMIT 1", seen,
        ).fetchone()
        if newest is None:
            break
        found += (value for (value,) in db.connection.execute(
            f"SELECT {column} FROM chat_sessions s WHERE {where}"
            f" AND s.workspace_root {db.sql.same} ? ORDER BY s.updated_at DESC LIMIT ?",
            (newest[0], limit)))
        seen.append(newest[0] or "")
    return found


def _with_relatives(db: Database, query: ListQuery, rowids: list[int]) -> list[int]:
    """Add the ancestors of some sessions and everything below them."""
    marks = ",".join("?" * len(rowids))
    rows = db.connection.execute(
        f"WITH RECURSIVE up(id, parent) AS ("
        f" SELECT id, parent_id FROM chat_sessions WHERE {db.sql.rowid()} IN ({marks})"
        f" UNION SELECT p.id, p.parent_id FROM chat_sessions p JOIN up ON p.id = up.parent"
        f"), down(id) AS (SELECT id FROM up UNION"
        f" SELECT c.id FROM chat_sessions c JOIN down ON c.parent_id = down.id)"
        f" SELECT {db.sql.rowid('s')} FROM chat_sessions s JOIN down ON down.id = s.id"
        f" WHERE {_listed(db, query)}",
        rowids,
    )
    return [rowid for (rowid,) in rows]


def _named(db: Database) -> str:
    # An array, as PostgreSQL would read all sessions beside a subquery.
    return f"ANY(ARRAY(SELECT j.value FROM {db.sql.texts('?', 'j')}))"


def _relatives_on_server(
    db: Database, query: ListQuery, first: Sequence[str]
) -> tuple[str, dict[int, int]]:
    """Return some sessions of a list with all above and below them, and the parents' numbers.

    The ids are a JSON array. There is a statement for each generation: PostgreSQL cannot know
    how few sessions a recursive one finds, and reads all of them for it.
    """
    from store.text.stored_json import array_of  # Only here: the first rows of a file do without.

    columns = (f"SELECT s.id, {db.sql.rowid('s')}, s.parent_id, {_listed(db, query)}"
               " FROM chat_sessions s WHERE")
    numbers: dict[str, int] = {}
    above: dict[str, str] = {}
    listed: list[str] = []
    wanted, below = list(first), list[str]()
    while wanted or below:
        rows = db.connection.execute(
            f"{columns} s.id = {_named(db)} UNION ALL {columns} s.parent_id = {_named(db)}",
            [array_of(wanted), array_of(below)]).fetchall()
        fresh = {row[0]: row for row in rows if row[0] not in numbers}
        for session_id, rowid, parent, is_listed in fresh.values():
            numbers[session_id] = rowid
            if parent is not None:
                above[session_id] = parent
            if is_listed:
                listed.append(session_id)
        below = list(fresh)
        wanted = [above[each] for each in fresh if above.get(each, each) not in numbers]
    shown = set(listed)
    return array_of(listed), _without_loops({
        numbers[child]: numbers[parent] for child, parent in above.items()
        if child in shown and parent in shown})


def _parents_of(db: Database, rowids: list[int]) -> dict[int, int]:
    marks = ",".join("?" * len(rowids))
    child, parent = db.sql.rowid("c"), db.sql.rowid("p")
    rows = db.connection.execute(
        f"SELECT {child}, {parent} FROM chat_sessions c JOIN chat_sessions p"
        f" ON p.id = c.parent_id WHERE {child} IN ({marks}) AND {parent} IN ({marks})",
        [*rowids, *rowids],
    )
    return _without_loops(dict(rows.fetchall()))
