"""Recognizes and opens what a user names as a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from store.engine.database import Database, open_database
from store.engine.server_url import server_url
from store.errors import StoreError
from store.system.paths import expanded

NO_SERVER_STORE = (
    "files are read into a store in a file; `backscroll sync --store URL SOURCE` brings an agent's"
    " sessions to a store on a server"
)
TargetKind = Literal["own", "contract", "grida", "other", "missing", "folder", "server"]


@dataclass(frozen=True, slots=True)
class Target:
    """A recognized target.

    Attributes:
        kind: The form of a store; ``other`` is a file that is not a store, ``server`` the
            URL of a database server.
        path: The file or folder; None for a URL of a server.
        version: ``PRAGMA user_version`` of a store.
        message: Why it cannot be opened as a store, or why a store is opened read only;
            otherwise None.
    """

    kind: TargetKind
    path: Path | None
    version: int | None = None
    message: str | None = None

    @property
    def is_store(self) -> bool:
        """Whether it can be opened as a store."""
        return self.kind in ("own", "contract", "grida")


def as_path(target: str | Path) -> Path | None:
    """Return a target as a path with ``~`` expanded; None for a database server's URL."""
    if isinstance(target, str) and server_url(target) is not None:
        return None
    return expanded(target)


def recognise(target: str | Path) -> Target:
    """Return what a target is, judged by its content; changes and raises nothing."""
    path = as_path(target)
    if path is None:
        return _server(str(target))
    try:
        if not path.exists():
            kind: TargetKind = "missing"
        else:
            kind = "folder" if path.is_dir() else "other"
        database = open_database(path, write=False)
    except StoreError as error:
        return Target(kind, path, message=str(error))
    except OSError as error:
        return Target("other", path, message=f"{path} cannot be opened: {error}")
    form, reason = database.form, database.file_read_only
    database.close()
    return Target(form.name, path, form.version, reason)


def _server(target: str) -> Target:
    """Return what a database on a server is."""
    try:
        database = open_target(target)
    except StoreError as error:
        return Target("server", None, message=str(error))
    form, reason = database.form, database.file_read_only
    database.close()
    return Target(form.name, None, form.version, reason)


def open_target(
    target: str | Path, *, create: bool = False, write: bool = False, migrate_older: bool = False
) -> Database:
    """Return a target opened as a store, by default read only.

    Args:
        target: A path; ``~`` is expanded. Or the URL of a database on a server.
        create: Create a library if it is missing or empty; on a server, a store's tables.
        write: Open it for writing; if that is impossible, ``read_only`` says why.
        migrate_older: On a server, migrate a store of an older version where its login may; one
            in a file always is.

    Raises:
        StoreError: It cannot be opened as a store; the message says why and what to do.
    """
    url = server_url(target) if isinstance(target, str) else None
    if url is not None:
        # Only for such a store, as it brings an event loop.
        from store.engine.server.opening import open_server

        return open_server(url, create=create, write=write, migrate_older=migrate_older)
    return open_database(expanded(target), create=create, write=write)
