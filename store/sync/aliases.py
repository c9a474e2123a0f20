"""Detects roots, folders and files that are reached by two paths.

Symbolic links (a moved project or home folder) and hard links (backups) give a folder or
file several paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from store.engine.database import Database
from store.engine.server_url import as_root
from store.sources.base.one_file import is_one_file, is_spare_copy, name_order
from store.sources.base.protocol import Source, Unit
from store.sync.jsontext import clean


def each_once(source: Source, units: Iterable[Unit]) -> Iterator[Unit]:
    """Yield units without duplicates, whose first file is another unit's, or a copy of it.

    Units with the same path are parts of one file, such as sessions in a database.

    Args:
        source: Whose units they are.
        units: The units.
    """
    kept: dict[int, Unit] = {}
    by_inode: dict[int, int] = {}
    for place, unit in enumerate(units):
        first = unit.stamps[0] if unit.stamps else None
        if first is not None and not source.knows_copies and is_spare_copy(first.path):
            continue
        kept[place] = unit
        if first is None or not first.inode:
            continue
        before = by_inode.setdefault(first.inode, place)
        known = kept[before].stamps[0].path
        if known == first.path or not is_one_file(known, first.path):
            continue
        if name_order(first.path) < name_order(known):
            del kept[before]
            by_inode[first.inode] = place
        else:
            del kept[place]
    yield from kept.values()


_ROOTS = """
WITH RECURSIVE roots(kind, root) AS (
    SELECT ?1, (SELECT min(root) FROM source_units WHERE kind = ?1)
    UNION ALL
    SELECT kind, (SELECT min(u.root) FROM source_units u WHERE u.kind = roots.kind
                  AND u.root > roots.root) FROM roots WHERE root IS NOT NULL
)
SELECT root FROM roots WHERE root IS NOT NULL
"""
"""The known roots of a kind in order: one step in the index each, however many units they have."""


def known_path(database: Database, kind: str, root: Path) -> Path:
    """Return the path by which the store already knows a root, else the given one.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root.
    """
    units = database.connection.execute(
        "SELECT 1 FROM source_units WHERE (kind, root) = (?, ?) LIMIT 1", (kind, clean(str(root)))
    )
    if units.fetchone() is not None:
        return root
    for (name,) in database.connection.execute(_ROOTS, (kind,)).fetchall():
        known = as_root(name)
        if isinstance(known, Path) and is_one_file(str(known), str(root)):
            return known
    return root
