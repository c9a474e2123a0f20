"""What units depend on beside their own files, and which are to be read again for it.

Two things make a unit's reading another one though its own files stay as they are: a file
that it was read with, or looked for, moves (``Reading.looked``), or another unit tells what
it wanted to know (``Reading.facts`` and ``wants``). Both are kept with the unit, so that the
order in which files arrive does not show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from store.engine.database import Database
from store.engine.server_url import Root
from store.sources.base.protocol import SESSION_FACT, Fact, FileStamp
from store.sync.jsontext import clean

HASH_BYTES = 8
"""Of each wanted name: two names that share one cost a reading too many, no more."""
PATHS_ASKED = 500
"""Paths in one statement."""
_INTEGER = (1 << 63) - 1

Where = tuple[str, str, str]
"""Kind, root and key of a unit, as ``source_units`` has them."""


@dataclass(frozen=True, slots=True)
class News:
    """A fact that a unit told for the first time, or tells otherwise than before."""

    teller: Where
    name: str


@dataclass(slots=True)
class Dependencies:
    """What a reading said of them; see ``Reading``."""

    looked: Sequence[FileStamp] = ()
    facts: Sequence[Fact] = ()
    wants: frozenset[str] = frozenset()


@dataclass(slots=True)
class LookedAt:
    """Asks for files as they are now, each once."""

    _now: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def is_as(self, path: str, inode: int, size: int, mtime_ns: int) -> bool:
        """Say whether a file or folder is as it was."""
        if path not in self._now:
            self._now[path] = _values(FileStamp.now(path))[1:]
        return self._now[path] == (inode, size, mtime_ns)


def with_moved_files(database: Database, kind: str, root: Root) -> set[str]:
    """Return the keys of a root's units that were read with files which moved since."""
    now = LookedAt()
    moved: set[str] = set()
    for key, path, inode, size, mtime_ns in database.connection.execute(
        "SELECT key, path, inode, size, mtime_ns FROM unit_files WHERE kind = ? AND root = ?",
        (kind, clean(str(root))),
    ):
        if key not in moved and not now.is_as(path, inode, size, mtime_ns):
            moved.add(key)
    return moved


def read_with(database: Database, kind: str, root: Root, paths: Collection[str]) -> set[str]:
    """Return the keys of a root's units that were read with any of some files or folders."""
    found: set[str] = set()
    names = [clean(path) for path in paths]
    for start in range(0, len(names), PATHS_ASKED):
        some = names[start : start + PATHS_ASKED]
        rows = database.connection.execute(
            "SELECT key FROM unit_files WHERE path IN (" + ", ".join("?" * len(some)) + ") "
            "AND kind = ? AND root = ?",
            (*some, kind, clean(str(root))),
        )
        found.update(key for (key,) in rows)
    return found


def save(
    database: Database, where: Where, now: Dependencies, new_sessions: Iterable[str]
) -> list[News]:
    """Keep what a unit depends on and tells; call it in the transaction that writes it.

    Args:
        database: A file of ours.
        where: The unit.
        now: What its reading said.
        new_sessions: Ids, at the source, of the sessions that it brought in.

    Returns:
        What others may wait for.
    """
    _save_files(database, where, now.looked)
    _save_wants(database, where, now.wants)
    names = _save_facts(database, where, now.facts)
    names += [SESSION_FACT + session for session in new_sessions]
    return [News(where, name) for name in names]


def add_facts(database: Database, where: Where, facts: Sequence[Fact]) -> list[News]:
    """Keep what a unit tells more than before; call it in the transaction that writes it.

    Returns:
        What others may wait for.
    """
    names: dict[str, None] = {}
    for one in facts:
        row = (*where, clean(one.name), clean(one.session), clean(one.value))
        told = database.connection.execute(
            "SELECT value FROM unit_facts WHERE kind = ? AND root = ? AND key = ? "
            "AND name = ? AND session = ?",
            row[:-1],
        ).fetchone()
        if told is None or told[0] != row[-1]:
            names[row[3]] = None
            database.connection.execute(
                "INSERT OR REPLACE INTO unit_facts(kind, root, key, name, session, value) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
    return [News(where, name) for name in names]


def waiting_for(database: Database, news: Sequence[News]) -> dict[Where, list[News]]:
    """Return the units that want what others told, each with what it was."""
    by_kind: dict[str, list[News]] = {}
    for one in news:
        by_kind.setdefault(one.teller[0], []).append(one)
    found: dict[Where, list[News]] = {}
    for kind, told in by_kind.items():
        hashes: dict[bytes, list[News]] = {}
        for one in told:
            hashes.setdefault(_hash(one.name), []).append(one)
        for root, key, names in database.connection.execute(
            "SELECT root, key, names FROM unit_wants WHERE kind = ?", (kind,)
        ):
            where = (kind, root, key)
            wanted = [
                one for each in _among(names, hashes) for one in hashes[each] if one.teller != where
            ]
            if wanted:
                found[where] = wanted
    return found


def drop(database: Database, kind: str, root: Root, keys: Iterable[str]) -> None:
    """Forget what units depended on and told."""
    wheres = [(kind, clean(str(root)), key) for key in keys]
    for table in ("unit_files", "unit_facts", "unit_wants"):
        database.connection.executemany(
            f"DELETE FROM {table} WHERE kind = ? AND root = ? AND key = ?", wheres
        )


def _values(stamp: FileStamp) -> tuple[str, int, int, int]:
    return stamp.path, stamp.inode & _INTEGER, stamp.size, stamp.mtime_ns


def _hash(name: str) -> bytes:
    data = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def _among(names: bytes, hashes: Collection[bytes]) -> set[bytes]:
    """Return the hashes that stand in a unit's wants."""
    wanted = {names[at : at + HASH_BYTES] for at in range(0, len(names), HASH_BYTES)}
    return wanted.intersection(hashes)


def _save_files(database: Database, where: Where, looked: Sequence[FileStamp]) -> None:
    # A name that no column holds could never be found to be as it was.
    rows = sorted({_values(one) for one in looked if one.path == clean(one.path)})
    _replace(database, "unit_files", "path, inode, size, mtime_ns", where, rows)


def _save_wants(database: Database, where: Where, wants: frozenset[str]) -> None:
    names = b"".join(sorted({_hash(name) for name in wants}))
    _replace(database, "unit_wants", "names", where, [(names,)] if names else [])


def _save_facts(database: Database, where: Where, facts: Sequence[Fact]) -> list[str]:
    """Return the names of those that are new or say something else."""
    rows = {(clean(one.name), clean(one.session)): clean(one.value) for one in facts}
    before = _replace(
        database, "unit_facts", "name, session, value", where,
        sorted((*names, value) for names, value in rows.items()),
    )  # fmt: skip
    return list(dict.fromkeys(row[0] for row in _missing_in(before, rows)))


def _missing_in(
    before: Collection[tuple[object, ...]], rows: dict[tuple[str, str], str]
) -> list[tuple[str, str]]:
    return [names for names, value in rows.items() if (*names, value) not in before]


def _replace(
    database: Database,
    table: str,
    columns: str,
    where: Where,
    rows: Sequence[tuple[object, ...]],
) -> set[tuple[object, ...]]:
    """Make the rows of a unit these; return those that there were."""
    before = set(
        database.connection.execute(
            f"SELECT {columns} FROM {table} WHERE kind = ? AND root = ? AND key = ?", where
        )
    )
    if before != set(rows):
        database.connection.execute(
            f"DELETE FROM {table} WHERE kind = ? AND root = ? AND key = ?", where
        )
        marks = ", ".join("?" * (3 + columns.count(",") + 1))
        database.connection.executemany(
            f"INSERT OR REPLACE INTO {table}(kind, root, key, {columns}) VALUES ({marks})",
            [(*where, *row) for row in rows],
        )
    return before
