"""Stores that the benches keep in the cache folder, made anew when their maker changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import ModuleType

from store.engine import schema
from store.system.locations import cache_dir, private_folder


def generator_key(*makers: ModuleType) -> str:
    """Return a key that differs when the makers' sources or the schema differ."""
    digest = blake2b(digest_size=6)
    for module in (schema, *makers):
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
        return path
    for stale in folder.glob(f"{name}.*"):
        stale.unlink(missing_ok=True)
    partial = folder / f"{name}.{os.getpid()}.partial"
    make(partial)
    partial.rename(path)
    return path
