"""Where VS Code and its forks keep what extensions store, on three platforms.

Source: the format pages of the programs that live in it (Cline section 1, Copilot Chat, Cursor).
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from store.sources.base.databases import Databases
from store.system.paths import expanded

HOSTS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Antigravity")
"""Folders of the programs, below the place of the platform."""
SERVERS = (
    ".vscode-server", ".vscode-server-insiders", ".vscodium-server", ".cursor-server",
    ".windsurf-server", ".antigravity-server",
)  # fmt: skip
"""Folders in the home folder of a machine that is worked on remotely."""
PORTABLE = "user-data"
"""The program's folder where it is carried around with its data."""
STATE = "state.vscdb"
"""The database in ``globalStorage`` where extensions keep values by key."""


def host_folders(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the ``User`` folder of each host, whether or not it is there.

    Args:
        environment: The process's environment variables.
        home: The user's home folder.
    """
    portable = environment.get("VSCODE_PORTABLE", "").strip()
    if os.path.isabs(portable):
        yield Path(portable) / PORTABLE / "User"
    roaming, config = (environment.get(name, "").strip() for name in ("APPDATA", "XDG_CONFIG_HOME"))
    if sys.platform == "darwin":
        usual = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        usual = expanded(roaming) if roaming else home / "AppData" / "Roaming"
    else:
        usual = expanded(config) if config else home / ".config"
    for host in HOSTS:
        yield usual / host / "User"
    for server in SERVERS:
        yield home / server / "data" / "User"


def stored_value(databases: Databases, path: Path, key: str) -> str | None:
    """Return the one value that an extension keeps, and read no other.

    Args:
        databases: Opens the database.
        path: The ``state.vscdb``.
        key: The extension's id; upper and lower case are the same.

    Raises:
        StoreError: The file is no database.
        sqlite3.Error: It is locked, damaged or another program's.
    """
    with databases.reading(path) as connection:
        found = _by_key(connection, key)
    if found is None:
        return None
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def _by_key(connection: sqlite3.Connection, key: str) -> object:
    # The names alone are looked through: they have an index of their own.
    sql = (
        "SELECT value FROM ItemTable WHERE key IN"
        " (SELECT key FROM ItemTable WHERE key = ? COLLATE NOCASE)"
    )
    row = connection.execute(sql, (key,)).fetchone()
    return row[0] if row is not None else None
