"""Stores that the benches keep in the cache folder, made anew when their maker changed.

One of an older schema is migrated: the largest take minutes to make, and more to index.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import ModuleType

from store.engine import schema
from store.system.locations import cache_dir, private_folder


def generator_key(*makers: ModuleType) -> str:
    """Return a key that differs when the makers' sources differ."""
    digest = blake2b(digest_size=6)
    for module in makers:
        assert module.__file__ is not None
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()


def kept_store(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """Return the store of a name, made where it is missing or stale.

    Args:
        name: Says what is in it.
        key: Of its maker; stores of the same name and another key are removed.
        make: Writes the store to a path that does not exist yet.
    """
    folder = private_folder(cache_dir() / "bench")
    path = folder / f"{name}.{key}.db"
    if path.exists():
        _migrate(path)
        return path
    for stale in folder.glob(f"{name}.*"):
        stale.unlink(missing_ok=True)
    partial = folder / f"{name}.{os.getpid()}.partial"
    make(partial)
    partial.rename(path)
    return path


def with_sidecars(store: Path) -> Path:
    """Return a kept store that has its search index and statistics, made where they are missing.

    Otherwise the browser would have them made while it is timed.

    Args:
        store: The store.
    """
    subprocess.run([sys.executable, "-m", "store.upkeep", "--once", str(store)], check=True)
    return store


_APPLICATION_ID = slice(68, 72)
"""Of the header of a SQLite file (sqlite.org/fileformat.html, 1.3)."""


def _migrate(path: Path) -> None:
    """Bring a library of an older version up to date, without the backup that a user gets."""
    with path.open("rb") as file:
        header = file.read(100)
    if int.from_bytes(header[_APPLICATION_ID]) == schema.APPLICATION_ID:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            schema.migrate(connection)
