"""Where a program keeps its sessions in opencode's form, and what tells that a file is its.

Source: the opencode format page, sections 2.1 (folders, file names) and 2.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from store.sources.opencode.folders import Folders
from store.sources.opencode.opening import program_at
from store.sources.opencode.programs import OPENCODE, OpencodeProgram, program_of_version
from store.system.paths import expanded

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


def default_roots(
    program: OpencodeProgram, environment: Mapping[str, str], home: Path
) -> list[Path]:
    """Return the data folder, and the file that a variable names outside of it.

    Args:
        program: The program.
        environment: Its environment.
        home: The user's home folder.
    """
    folder = program.folder(environment, home)
    roots = [folder]
    named = environment.get(program.variable, "").strip()
    if named and named != ":memory:":
        file = folder / expanded(named)
        if file.parent != folder or not file.match(f"{program.name}*.db"):
            roots.append(file)
    return roots


def stores_at(program: OpencodeProgram, root: Path) -> Stores:
    """Return what is at a program's root of any form."""
    if root.is_file():
        if root.suffix == ".json":
            return Stores(export=root)
        return Stores(databases=(root,))
    databases = tuple(program.databases_in(root))
    if program is not OPENCODE:
        return Stores(databases)
    places = [root, root / STORAGE, *sorted(root.glob(f"{PROJECTS}/*/{STORAGE}"))]
    found = (Folders.at(place) for place in places)
    return Stores(databases, tuple(folders for folders in found if folders is not None))


def recognise(program: OpencodeProgram, path: Path) -> Path | None:
    """Return the root to read: a data folder, its ``storage``, a database, an export."""
    if path.is_file():
        from store.sources.opencode.export_file import exported_version

        if path.suffix == ".json":
            version = exported_version(path)
            mine = version is not None and program_of_version(version) is program
        else:
            mine = program_at(path) is program
        return path if mine else None
    if not path.is_dir():
        return None
    try:
        found = stores_at(program, path)
    except OSError:
        return None
    if any(program_at(database) is program for database in found.databases):
        return path
    return path if any(_has_sessions(folders) for folders in found.json_stores) else None


def _has_sessions(folders: Folders) -> bool:
    try:
        return next(folders.session_files(), None) is not None
    except OSError:
        return False
