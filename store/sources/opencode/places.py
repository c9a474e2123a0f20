"""Where opencode keeps its sessions, and what tells that a file or folder is its.

Source: the opencode format page, sections 2.1 (folders, file names) and 2.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from store.sources.opencode.folders import Folders
from store.sources.opencode.opening import is_opencode_database
from store.system.paths import expanded

DATABASES = "opencode*.db"
STORAGE = "storage"
PROJECTS = "project"
"""Holds a JSON store for each project, as versions up to 0.5 wrote."""
TOOL_OUTPUT = "tool-output"


@dataclass(frozen=True, slots=True)
class Stores:
    """What a root holds.

    Attributes:
        databases: Database files, by name.
        json_stores: The newest first, which older versions' were brought into.
        export: A file that ``opencode export`` printed.
    """

    databases: tuple[Path, ...] = ()
    json_stores: tuple[Folders, ...] = ()
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
        file = folder / expanded(named)
        if file.parent != folder or not file.match(DATABASES):
            roots.append(file)
    return roots


def stores_at(root: Path) -> Stores:
    """Return what is at a root of any form."""
    if root.is_file():
        if root.suffix == ".json":
            return Stores(export=root)
        return Stores(databases=(root,))
    databases = tuple(sorted(path for path in root.glob(DATABASES) if path.is_file()))
    places = [root, root / STORAGE, *sorted(root.glob(f"{PROJECTS}/*/{STORAGE}"))]
    found = (Folders.at(place) for place in places)
    return Stores(databases, tuple(folders for folders in found if folders is not None))


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
    return path if any(_has_sessions(folders) for folders in found.json_stores) else None


def _has_sessions(folders: Folders) -> bool:
    try:
        return next(folders.session_files(), None) is not None
    except OSError:
        return False
