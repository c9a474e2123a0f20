"""The projects that Crush worked in, and where each has its data.

Source: the Crush format page, section 1. ``crush.json`` beside the databases and in the
settings folder holds keys: it is never opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.values import mapping, string
from store.system.paths import expanded, read_regular, resolved

DATABASE = "crush.db"
FOLDER = ".crush"
_LIST = "projects.json"


@dataclass(frozen=True, slots=True)
class Project:
    """An entry of the list: a project's folder, and the folder with its database."""

    folder: str
    data: Path
    last_used: str


def list_file(environment: Mapping[str, str], home: Path) -> Path:
    """Return where the list of projects is on this system."""
    named = environment.get("CRUSH_GLOBAL_DATA", "").strip()
    if named:
        return expanded(named) / _LIST
    data = environment.get("XDG_DATA_HOME", "").strip()
    local = environment.get("LOCALAPPDATA", "").strip() if os.name == "nt" else ""
    base = expanded(data) if data else Path(local) if local else home / ".local" / "share"
    return base / "crush" / _LIST


def projects_in(file: Path) -> list[Project]:
    """Return the projects of a list; none where it is missing or damaged."""
    try:
        entries = mapping(parse_value(read_regular(file))).get("projects")
    except (OSError, LineError):
        return []
    found = []
    for entry in entries if isinstance(entries, list) else ():
        folder, data = (string(mapping(entry).get(key)) for key in ("path", "data_dir"))
        if folder is not None and data is not None and "\0" not in folder + data:
            used = string(mapping(entry).get("last_accessed")) or ""
            found.append(Project(folder, Path(folder) / data, used))
    return found


def workspace_of(database: Path, projects: list[Project]) -> str | None:
    """Return the folder that a database's sessions worked in.

    Args:
        database: The database.
        projects: All that are listed; several may share a database, and of the sessions
            nothing says which one they are of.
    """
    folder = resolved(str(database.parent))
    sharing = [each for each in projects if resolved(str(each.data)) == folder]
    above = str(database.parent.parent) if database.parent.name == FOLDER else None
    named = {each.folder for each in sharing}
    if sharing and (len(named) == 1 or above not in named):
        return max(sharing, key=lambda each: each.last_used).folder
    return above
