"""Reading problems, kept in the store until they are resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from store.engine.database import Database
from store.engine.server_url import Root, as_root
from store.sources.base.protocol import Problem
from store.sync.depending import Where
from store.sync.jsontext import clean
from store.sync.roots import may_be_there
from store.sync.units import read_again
from store.system.clock import Clock

LISTING = ""
"""``source_problems.unit`` of problems from listing a root."""


@dataclass(frozen=True, slots=True)
class StoredProblem:
    """One row of ``source_problems``; ``seen_at`` (epoch ms) is when it was first seen."""

    kind: str
    root: str
    unit: str
    path: str
    line: int
    reason: str
    seen_at: int


def problems(database: Database, *, kind: str | None = None) -> list[StoredProblem]:
    """Return the stored problems by kind, path and line; one of several units once."""
    if database.form.name != "own":
        return []
    rows = database.connection.execute(
        "SELECT kind, root, min(unit), path, line, reason, min(seen_at) FROM source_problems "
        "WHERE kind = coalesce($1, kind) GROUP BY kind, root, path, line, reason "
        "ORDER BY kind, path, line, reason",
        {"1": kind},
    )
    return [StoredProblem(*row) for row in rows]


def differ(database: Database, kind: str, root: Root, unit: str, found: Iterable[Problem]) -> bool:
    """Return whether a unit's stored problems differ from the given ones.

    Args:
        database: The library.
        kind: The source's kind.
        root: The unit's root.
        unit: The unit's key, or ``LISTING``.
        found: The problems to compare with.
    """
    return _stored(database, kind, root, unit) != _rows(found)


def replace(
    database: Database, kind: str, root: Root, unit: str, found: Iterable[Problem], clock: Clock
) -> int:
    """Replace a unit's stored problems; one that is still there keeps its time.

    Args:
        database: The library, in a transaction.
        kind: The source's kind.
        root: The unit's root.
        unit: The unit's key, or ``LISTING``.
        found: The problems now.
        clock: Gives ``seen_at`` of new problems.

    Returns:
        How many there were before.
    """
    where = (kind, clean(str(root)), clean(unit))
    before, after = _stored(database, kind, root, unit), _rows(found)
    _delete(database, ((*where, *row) for row in before - after))
    now, added = clock(), after - before
    database.connection.executemany(
        "INSERT INTO source_problems(kind, root, unit, path, line, reason, seen_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((*where, *row, now) for row in added),
    )
    if added:
        _take_along(database, where, added)
    return len(before)


_OTHER_ROOTS = """
WITH RECURSIVE roots(root) AS (
    SELECT (SELECT min(root) FROM source_problems WHERE kind = ?1)
    UNION ALL
    SELECT (SELECT min(p.root) FROM source_problems p WHERE p.kind = ?1 AND p.root > roots.root)
    FROM roots WHERE root IS NOT NULL
)
SELECT root FROM roots WHERE root IS NOT NULL AND root <> ?2
"""
"""One step in the index for each root, however many problems it has."""


def _take_along(
    database: Database, where: Where, added: set[tuple[str, int, str]]
) -> None:
    """Delete the same problems of roots that are gone: they were renamed to this one."""
    kind, root, unit = where
    for (other,) in database.connection.execute(_OTHER_ROOTS, (kind, root)).fetchall():
        if may_be_there(as_root(other)):
            continue
        before = [
            (kind, other, unit, other + path.removeprefix(root), line, reason)
            for path, line, reason in added if path.startswith(root)
        ]  # fmt: skip
        if _delete(database, before) > 0:
            # It is read again where it comes back there.
            read_again(database, [(kind, other, unit)])


def _delete(database: Database, rows: Iterable[tuple[str, str, str, str, int, str]]) -> int:
    """Delete problems of these kinds, roots, units, paths, lines and reasons; return how many."""
    return database.connection.executemany(
        "DELETE FROM source_problems WHERE (kind, root, unit, path, line, reason)"
        " = (?, ?, ?, ?, ?, ?)",
        rows,
    ).rowcount


def drop_moved(database: Database, wheres: Iterable[Where]) -> None:
    """Delete the problems of units whose roots are gone, as their sessions went elsewhere.

    Args:
        database: The library, in a transaction.
        wheres: Kind, root and key of each.
    """
    database.connection.executemany(
        "DELETE FROM source_problems WHERE (kind, root, unit) = (?, ?, ?)",
        [where for where in wheres if not may_be_there(as_root(where[1]))],
    )


def first_seen(
    database: Database, kind: str, root: Root, found: Iterable[Problem]
) -> int | None:
    """Return when problems of listing a root were first seen, epoch ms; None where never.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root.
        found: The problems.
    """
    rows = database.connection.execute(
        "SELECT path, line, reason, seen_at FROM source_problems"
        " WHERE kind = ? AND root = ? AND unit = ?",
        (kind, clean(str(root)), LISTING),
    )
    wanted = _rows(found)
    return min((row[3] for row in rows if tuple(row[:3]) in wanted), default=None)


def of_listing(database: Database, kind: str, root: Root) -> list[str]:
    """Return why a root could not be listed, or only in part.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root.
    """
    return sorted(reason for _, _, reason in _stored(database, kind, root, LISTING))


def units_with_problems(database: Database, kind: str, root: Root) -> set[str]:
    """Return the keys of a root's units that have problems.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root.
    """
    rows = database.connection.execute(
        "SELECT DISTINCT unit FROM source_problems WHERE kind = ? AND root = ? AND unit <> ''",
        (kind, clean(str(root))),
    )
    return {key for (key,) in rows}


def _stored(database: Database, kind: str, root: Root, unit: str) -> set[tuple[str, int, str]]:
    return set(
        database.connection.execute(
            "SELECT path, line, reason FROM source_problems "
            "WHERE kind = ? AND root = ? AND unit = ?",
            (kind, clean(str(root)), clean(unit)),
        )
    )


def _rows(found: Iterable[Problem]) -> set[tuple[str, int, str]]:
    return {(clean(problem.path), problem.line, clean(problem.reason)) for problem in found}
