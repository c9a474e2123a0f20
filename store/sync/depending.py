"""Dependencies of units beside their own files, and which units need another reading.

A unit's result can change although its own files do not: a file that it used or looked for
changes (``Reading.looked``), or another unit provides a fact that it wants
(``Reading.facts`` and ``wants``). Both are stored with the unit, so that the result does not
depend on the order in which files arrive.
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
"""Bytes stored per wanted name; a collision only costs an extra reading."""
PATHS_ASKED = 500
"""Paths in one SQL statement."""
_INTEGER = (1 << 63) - 1

Where = tuple[str, str, str]
"""Kind, root and key of a unit, as in ``source_units``."""


@dataclass(frozen=True, slots=True)
class News:
    """The name of a new or changed fact, and the unit that provides it."""

    provider: Where
    name: str


@dataclass(slots=True)
class Dependencies:
    """The dependencies that a reading reported; see ``Reading``."""

    looked: Sequence[FileStamp] = ()
    facts: Sequence[Fact] = ()
    wants: frozenset[str] = frozenset()


@dataclass(slots=True)
class LookedAt:
    """Cache of files' current state: each file is looked at once."""

    _now: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def is_unchanged(self, path: str, inode: int, size: int, mtime_ns: int) -> bool:
        """Return whether a file or folder is unchanged.

        Args:
            path: The file or folder.
            inode: Its inode when it was looked at.
            size: Its size in bytes then.
            mtime_ns: Its modification time then.
        """
        if path not in self._now:
            self._now[path] = _values(FileStamp.now(path))[1:]
        return self._now[path] == (inode, size, mtime_ns)


def with_moved_files(database: Database, kind: str, root: Root) -> set[str]:
    """Return the keys of a root's units that depend on files which have changed since.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root whose units are checked.
    """
    now = LookedAt()
    moved: set[str] = set()
    for key, path, inode, size, mtime_ns in database.connection.execute(
        "SELECT key, path, inode, size, mtime_ns FROM unit_files WHERE kind = ? AND root = ?",
        (kind, clean(str(root))),
    ):
        if key not in moved and not now.is_unchanged(path, inode, size, mtime_ns):
            moved.add(key)
    return moved


def read_with(database: Database, kind: str, root: Root, paths: Collection[str]) -> set[str]:
    """Return the keys of a root's units that depend on any of some files or folders.

    Args:
        database: The library.
        kind: The source's kind.
        root: The root whose units are checked.
        paths: The files and folders.
    """
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
) -> None:
    """Store a unit's dependencies and facts; call it in the transaction that writes the unit.

    What is new among the facts, new sessions too, is noted for ``pending_news``.

    Args:
        database: The library.
        where: The unit.
        now: The dependencies that its reading reported.
        new_sessions: Source ids of the sessions that are new in the store.
    """
    _save_files(database, where, now.looked)
    _save_wants(database, where, now.wants)
    names = _save_facts(database, where, now.facts)
    _note(database, where, [*names, *(SESSION_FACT + session for session in new_sessions)])


def add_facts(database: Database, where: Where, facts: Sequence[Fact]) -> None:
    """Store further facts of a unit; call it in the transaction that writes the unit.

    What is new among them is noted for ``pending_news``.

    Args:
        database: The library.
        where: The unit.
        facts: The facts to add or change.
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
    _note(database, where, names)


def _note(database: Database, where: Where, names: Iterable[str]) -> None:
    database.connection.executemany(
        "INSERT OR IGNORE INTO unit_news(kind, root, key, name) VALUES (?, ?, ?, ?)",
        [(*where, clean(name)) for name in names],
    )


def pending_news(database: Database) -> list[News]:
    """Return the new facts that no unit was read again for yet, those of a stopped sync too."""
    rows = database.connection.execute("SELECT kind, root, key, name FROM unit_news")
    return [News(row[:3], row[3]) for row in rows]


def drop_news(database: Database, news: Sequence[News]) -> None:
    """Forget new facts; call it in the transaction that notes who is to be read again.

    Args:
        database: The library.
        news: The facts.
    """
    database.connection.executemany(
        "DELETE FROM unit_news WHERE (kind, root, key, name) = (?, ?, ?, ?)",
        [(*one.provider, one.name) for one in news],
    )


def waiting_for(database: Database, news: Sequence[News]) -> dict[Where, list[News]]:
    """Return the units that want new facts of others, each with those facts."""
    by_kind: dict[str, list[News]] = {}
    for one in news:
        by_kind.setdefault(one.provider[0], []).append(one)
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
                one for each in _among(names, hashes) for one in hashes[each]
                if one.provider != where
            ]
            if wanted:
                found[where] = wanted
    return found


def told_by(database: Database, kind: str, root: Root, keys: Iterable[str]) -> list[News]:
    """Return the facts of units, as news: with the units they go.

    Args:
        database: The library.
        kind: The source's kind.
        root: The units' root.
        keys: The units' keys.
    """
    wheres = [(kind, clean(str(root)), key) for key in keys]
    return [
        News(where, name) for where in wheres for (name,) in database.connection.execute(
            "SELECT DISTINCT name FROM unit_facts WHERE kind = ? AND root = ? AND key = ?", where)
    ]  # fmt: skip


def drop(database: Database, kind: str, root: Root, keys: Iterable[str]) -> None:
    """Delete the dependencies and facts of units.

    Args:
        database: The library, in a transaction.
        kind: The source's kind.
        root: The units' root.
        keys: The units' keys.
    """
    wheres = [(kind, clean(str(root)), key) for key in keys]
    for table in ("unit_files", "unit_facts", "unit_wants", "unit_news"):
        database.connection.executemany(
            f"DELETE FROM {table} WHERE kind = ? AND root = ? AND key = ?", wheres
        )


def _values(stamp: FileStamp) -> tuple[str, int, int, int]:
    return stamp.path, stamp.inode & _INTEGER, stamp.size, stamp.mtime_ns


def _hash(name: str) -> bytes:
    data = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def _among(names: bytes, hashes: Collection[bytes]) -> set[bytes]:
    """Return the hashes that are among a unit's wanted names."""
    wanted = {names[at : at + HASH_BYTES] for at in range(0, len(names), HASH_BYTES)}
    return wanted.intersection(hashes)


def _save_files(database: Database, where: Where, looked: Sequence[FileStamp]) -> None:
    # A path that a TEXT column cannot store exactly would always count as changed.
    rows = sorted({_values(one) for one in looked if one.path == clean(one.path)})
    _replace(database, "unit_files", "path, inode, size, mtime_ns", where, rows)


def _save_wants(database: Database, where: Where, wants: frozenset[str]) -> None:
    names = b"".join(sorted({_hash(name) for name in wants}))
    _replace(database, "unit_wants", "names", where, [(names,)] if names else [])


def _save_facts(database: Database, where: Where, facts: Sequence[Fact]) -> list[str]:
    """Replace a unit's facts and return the names of the new and changed ones."""
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
    """Replace a unit's rows in a table and return the rows that it had."""
    before = set(
        database.connection.execute(
            f"SELECT {columns} FROM {table} WHERE kind = ? AND root = ? AND key = ?", where
        )
    )
    if before != set(rows):
        if before:
            database.connection.execute(
                f"DELETE FROM {table} WHERE kind = ? AND root = ? AND key = ?", where
            )
        marks = ", ".join("?" * (3 + columns.count(",") + 1))
        database.connection.executemany(
            f"INSERT OR REPLACE INTO {table}(kind, root, key, {columns}) VALUES ({marks})",
            [(*where, *row) for row in rows],
        )
    return before
