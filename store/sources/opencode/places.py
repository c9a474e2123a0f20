"""Where opencode keeps its sessions, and what tells that a file or folder is its.

Source: the opencode format page, sections 2.1 (folders, file names) and 2.9.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from store.sources.opencode.opening import is_opencode_database

DATABASES = "opencode*.db"
STORAGE = "storage"
TOOL_OUTPUT = "tool-output"


@dataclass(frozen=True, slots=True)
class Stores:
    """What a root holds.

    Attributes:
        databases: Database files, by name.
        storage: The folder of a JSON store.
        export: A file that ``opencode export`` printed.
    """

    databases: tuple[Path, ...] = ()
    storage: Path | None = None
    export: Path | None = None


def default_roots(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the data folder, and the file that ``OPENCODE_DB`` names outside of it.

    The program takes ``XDG_DATA_HOME``, else ``~/.local/share``, on every system.
    """
    data = environment.get("XDG_DATA_HOME")
    folder = (Path(data) if data else home / ".local" / "share") / "opencode"
    roots = [folder]
    named = environment.get("OPENCODE_DB", "").strip()
    if named and named != ":memory:":
        file = folder / Path(named).expanduser()
        if file.parent != folder or not file.match(DATABASES):
            roots.append(file)
    return roots


def stores_at(root: Path) -> Stores:
    """Return what lies at a root of any form."""
    if root.is_file():
        if root.suffix == ".json":
            return Stores(export=root)
        return Stores(databases=(root,))
    databases = tuple(sorted(path for path in root.glob(DATABASES) if path.is_file()))
    if is_json_store(root):
        return Stores(databases, root)
    storage = root / STORAGE
    return Stores(databases, storage if is_json_store(storage) else None)


def is_json_store(folder: Path) -> bool:
    """Tell whether a folder has the shape of a JSON store with sessions.

    Newer versions keep side files in a ``storage`` folder that has no sessions.
    """
    return (folder / "session").is_dir() and (folder / "message").is_dir()


def recognise(path: Path) -> Path | None:
    """Return the root to read: a data folder, its ``storage``, a database, an export."""
    if path.is_file():
        from store.sources.opencode.export_file import is_export

        if path.suffix == ".json":
            return path if is_export(path) else None
        return path if is_opencode_database(path) else None
    if not path.is_dir():
        return None
    try:
        found = stores_at(path)
    except OSError:
        return None
    if any(is_opencode_database(database) for database in found.databases):
        return path
    return path if found.storage is not None and _has_sessions(found.storage) else None


def _has_sessions(storage: Path) -> bool:
    return any(
        entry.name.startswith("ses_") and entry.name.endswith(".json")
        for folder in _entries(storage / "session")
        if folder.is_dir()
        for entry in _entries(Path(folder.path))
    )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
