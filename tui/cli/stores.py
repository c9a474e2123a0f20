"""Opens the store that a command works on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from store.engine.database import Database
from store.engine.opening import as_path, open_target
from store.system.locations import library_path
from tui.cli.output import note


@contextmanager
def store_for_reading(options: argparse.Namespace) -> Iterator[Database | None]:
    """Open the named store, or the library, for reading; None if there is no library yet.

    Raises:
        StoreError: It is not a store, or the named store is missing.
    """
    if options.store is None and not library_path().exists():
        yield None
        return
    with _opened(options) as database:
        yield database


@contextmanager
def _opened(options: argparse.Namespace, *, write: bool = False) -> Iterator[Database]:
    """Open the named store, or the library, and tell the user where a newer version made it."""
    database = open_target(options.store or library_path(), write=write)
    try:
        if database.form.is_newer:
            note(f"backscroll: {database.file_read_only}")
        yield database
    finally:
        database.close()


@contextmanager
def store_for_writing(options: argparse.Namespace) -> Iterator[Database]:
    """Open the named store, or the library, for writing; create it if it is missing.

    Raises:
        StoreError: It is not a store.
        Refused: It cannot be written; the message is the reason.
    """
    from store.errors import Refused

    target = options.store or library_path()
    path = as_path(target)
    missing = path is not None and not path.exists()
    database = open_target(target, create=missing, write=True)
    try:
        if database.read_only:
            raise Refused(database.read_only)
        yield database
    finally:
        database.close()


@contextmanager
def store_for_notes(options: argparse.Namespace) -> Iterator[Database]:
    """Open the named store, or the library, for a command that writes to it at most a note.

    It is open for writing if it can be written, and for reading if not; nothing is created.
    With ``--json`` the command writes nothing.

    Raises:
        StoreError: It is not a store, or the named store is missing.
        NotFound: There is no library yet.
    """
    if options.store is None and not library_path().exists():
        needs_store(None)
    with _opened(options, write=not options.json) as database:
        yield database


@contextmanager
def library_for_upkeep(options: argparse.Namespace) -> Iterator[Database]:
    """Open the named library, or the user's, for writing; nothing is created.

    A dry run opens it for reading, and so needs no right to write.

    Raises:
        StoreError: It is not a store, or the named store is missing.
        NotFound: There is no library yet.
        Refused: It belongs to another program, or cannot be written.
    """
    from store.errors import Refused

    if options.store is None and not library_path().exists():
        needs_store(None)
    is_dry = getattr(options, "dry_run", False)
    database = open_target(options.store or library_path(), write=not is_dry)
    try:
        if database.form.name != "own":
            raise Refused(f"{database.name} belongs to another program, which keeps it itself")
        if database.form.is_newer:
            raise Refused(str(database.file_read_only))
        if database.read_only and not is_dry:
            raise Refused(database.read_only)
        yield database
    finally:
        database.close()


def refuse_server(database: Database, way_out: str) -> None:
    """Refuse a store on a server for a command about files.

    Args:
        database: The store.
        way_out: What serves there.

    Raises:
        Refused: It is on a server.
    """
    from store.errors import Refused

    if database.server is not None:
        raise Refused(f"{database.name} is on a server: {way_out}")


def note_left_out(store: str | None) -> None:
    """Tell the user of parameters of a store's URL that have no effect.

    Args:
        store: As it was named.
    """
    from store.engine.server_url import server_url

    url = None if store is None else server_url(store)
    if url is not None and url.left_out:
        note(f"{url}: {url.left_out}")


def refuse_url(store: str | None, way_out: str) -> None:
    """Refuse the URL of a store on a server, for a command that opens a file by itself.

    Args:
        store: As it was named.
        way_out: What serves there.

    Raises:
        Refused: It is on a server.
    """
    from store.engine.server_url import server_url
    from store.errors import Refused

    url = None if store is None else server_url(store)
    if url is not None:
        raise Refused(f"{url} is on a server: {way_out}")


def needs_store(database: Database | None) -> Database:
    """Return the store; raise if there is none.

    Raises:
        NotFound: There is no library yet.
    """
    from store.errors import NotFound

    if database is None:
        raise NotFound(f"The library is empty ({library_path()}). Run `backscroll sync` first.")
    return database
