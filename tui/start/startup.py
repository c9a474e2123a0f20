"""Finds the store that a command line means, and opens it for the first paint."""

from __future__ import annotations

import os
from importlib import import_module

from store.engine.access import read_header
from store.engine.database import open_database
from store.engine.schema import APPLICATION_ID, CURRENT_VERSION
from store.errors import StoreError
from store.queries.listing import has_sessions
from store.system.locations import library_file, private_folder, scratch_dir
from store.system.paths import expanded, expanded_name
from store.text.figures import home_path
from tui.state.library import Library
from tui.state.limits import NO_LIMITS, Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from store.engine.opening import Target as OpeningTarget
    from store.engine.server_url import Root, ServerUrl


def open_library(
    target: str | None, store: str | None, *, demo: bool = False, limits: Limits = NO_LIMITS
) -> Library:
    """Open what is to be shown.

    Args:
        target: A store, a source or a folder; None for the library.
        store: The store that takes the library's place, or None.
        demo: Show the demo store whatever else is named.
        limits: What is off; where the browser is read only, no library is made or migrated.

    Raises:
        StoreError: It is none of these; the message says what it is.
    """
    if limits.read_only is not None and not demo:
        _refuse_to_make(target, store)
    library = _opened(target, store, demo=demo, makes=limits.read_only is None)
    library.limits = limits
    if not library.is_kept:
        library.sync_targets = None
    return library


def _refuse_to_make(target: str | None, store: str | None) -> None:
    """Refuse what opening would write to: a library that is missing, empty or of an older version.

    Raises:
        StoreError: It is one.
    """
    own = library_file()
    if target is not None and expanded(target).is_file():
        path = expanded_name(target)
    elif target is not None and not expanded(target).is_dir():
        return
    else:
        if store and _server_of(store) is not None:
            return
        path = _store_path(store) if store else own
        if target is not None and _source_of(expanded(target)) is not None:
            return
    first = "start backscroll once without --read-only to make it"
    if not os.path.exists(path):
        if path == own:
            raise StoreError(f"there is no library yet at {path}; {first}")
        return
    try:
        header = read_header(path)
    except StoreError:
        if path == own:
            raise
        return  # A file of an agent, or nothing that can be opened: that is said later.
    if header.application_id == APPLICATION_ID and header.user_version < CURRENT_VERSION:
        raise StoreError(
            f"{path} has the older version {header.user_version}; start backscroll once without"
            " --read-only to migrate it")


def _opened(target: str | None, store: str | None, *, demo: bool, makes: bool) -> Library:
    """Open what is to be shown.

    Args:
        target: As in ``open_library``, like the next two.
        store: The store.
        demo: Show the demo.
        makes: Whether a library that is missing or empty is made, or the demo shown for it.
    """
    if demo:
        return demo_library(None)
    if target is not None:
        return _open_target(target, store, makes=makes)
    if store is not None:
        url = _server_of(store)
        if url is not None:
            return Library.open_server(store, str(url), migrates=makes)
        path = _store_path(store)
        return Library.open(path, os.path.basename(path))
    path = library_file()
    if makes and not os.path.exists(path):
        return _first_time(path)
    library = Library.open(path, "library")
    if makes and not has_sessions(library.database):
        library.database.close()
        return _first_time(path)
    library.sync_targets = ()
    return library


def _server_of(store: str) -> ServerUrl | None:
    """Return the URL that a store's name is; None for a file."""
    if "://" not in store and "=" not in store:
        return None
    url: ServerUrl | None = import_module("store.engine.server_url").server_url(store)
    return url


def _store_path(store: str) -> str:
    """Return the file that a store's name means."""
    if _server_of(store) is not None:
        raise StoreError(str(import_module("store.engine.opening").NO_SERVER_STORE))
    return expanded_name(store)


def is_empty(path: str | Path) -> bool:
    """Say whether a store has no session."""
    database = open_database(path, write=False)
    try:
        return not has_sessions(database)
    finally:
        database.close()


def found_sources() -> tuple[list[Root], list[Root]]:
    """Return where agents' sessions may be: servers and folders that exist, and all of them."""
    from pathlib import Path

    registry, places = import_module("store.sources.registry"), import_module("store.sync.roots")
    home = Path.home()
    roots: list[Root] = [
        root for source in registry.all_sources()
        for root in places.default_roots(source, os.environ, home)
    ]
    return [root for root in roots if places.may_be_there(root)], roots


def _first_time(path: str) -> Library:
    """Open a new library when there is anything to sync, else the demo."""
    existing, looked = found_sources()
    if existing:
        return _new_library(path)
    return demo_library(f"No agent sessions found in {_names(looked)}; showing the demo")


def _new_library(path: str) -> Library:
    """Make a library that the first sync fills, and say what it will keep."""
    open_database(path, create=True).close()
    library = Library.open(path, "library")
    library.sync_targets = ()
    library.notice = (
        "Reading your agents' sessions into the library; it keeps them also when the agent "
        "deletes its files (sources.keep_deleted in config.toml)"
    )
    return library


_NAMED_AT_MOST = 5
"""Of the places where sessions are looked for."""


def _names(roots: list[Root]) -> str:
    """Return the first of some places, how many more there are, and what lists them."""
    named = ", ".join(home_path(str(root)) for root in roots[:_NAMED_AT_MOST])
    more = len(roots) - _NAMED_AT_MOST
    return f"{named} and {more} other places (see backscroll sources --all)" if more > 0 else named


def demo_library(headline: str | None) -> Library:
    """Open an empty store that another process makes the demo of, with a line above it."""
    path = scratch_dir() / f"demo-{os.getpid()}.db"
    for old in path.parent.glob("demo-*.db*"):
        if not _alive(old):
            old.unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    open_database(path, create=True).close()
    library = Library.open(path, "demo")
    library.headline, library.is_copy = headline, True
    making = import_module("tui.start.making").Making
    library.making = making("Making the demo store", "store.demo", [str(path)])
    return library


def _alive(path: Path) -> bool:
    """Say whether the process that made a demo store still runs."""
    from store.system.processes import is_alive

    number = path.name.removeprefix("demo-").partition(".")[0]
    if not number.isdigit():
        return False
    return is_alive({"pid": int(number)}) is not False


def refusal(target: str | None, store: str | None, *, makes: bool = True) -> str | None:
    """Return why what a command line names cannot be opened; None where it can. Opens nothing.

    Args:
        target: As in ``open_library``, like the next one.
        store: The store.
        makes: Whether a library may be made or migrated.
    """
    if not makes:
        try:
            _refuse_to_make(target, store)
        except StoreError as error:
            return str(error)
    named = target or store
    if named is None:
        return None
    found = import_module("store.engine.opening").recognise(named)
    as_source = found.kind in ("folder", "other") and _source_of(found.path) is not None
    if found.is_store or (target and (found.kind in ("folder", "server") or as_source)):
        return None
    return _unopened(named, found) if target else found.message or f"{named} cannot be opened"


def _open_target(target: str, store: str | None, *, makes: bool) -> Library:
    """Open what a target is by its content: a store, a source, or a workspace's folder."""
    opening = import_module("store.engine.opening")
    found = opening.recognise(target)
    if found.is_store:
        library = (
            Library.open(found.path, found.path.name) if found.path
            else Library.open_server(target, "", migrates=makes))
        library.name = library.name or library.database.name
        library.notice = library.notice or found.message
        return library
    if found.kind == "server":
        return _opened_server(target)
    if found.kind in ("folder", "other") and (source := _source_of(found.path)):
        return _opened_source(source)
    if found.kind == "folder":
        return _workspace(found.path, _store_path(store) if store else library_file())
    raise StoreError(_unopened(target, found))


def _unopened(target: str, found: OpeningTarget) -> str:
    """Return why a target cannot be opened; a word that is no file may be a mistyped command."""
    word = import_module("tui.words.commands").no_command(target) if (
        found.kind == "missing") else None
    return word or found.message or f"{target} cannot be opened"


def _workspace(folder: Path, path: str) -> Library:
    """Open a library with the sessions of one folder; the first time it is made."""
    if os.path.exists(path):
        library = Library.open(path, "library")
        library.sync_targets = ()
    else:
        existing, looked = found_sources()
        if not existing:
            raise StoreError(
                f"{folder} holds no agent's sessions, and none were found in {_names(looked)}; "
                "`backscroll --demo` shows what they would look like"
            )
        library = _new_library(path)
    library.workspace = os.path.abspath(folder)
    return library


def _source_of(path: Path) -> Path | None:
    from pathlib import Path

    registry = import_module("store.sources.registry")
    found = registry.recognised(path, registry.all_sources())
    return None if found is None else Path(found[1])


def _opened_server(target: str) -> Library:
    """Open the copy of what a server holds; the server has to answer where there is none yet."""
    url: ServerUrl | None = import_module("store.engine.server_url").server_url(target)
    assert url is not None
    classify_server = import_module("store.sync.targets").classify_server
    try:
        classify_server(url, import_module("store.sources.registry").all_sources())
    except StoreError as trouble:
        path = _copy_path(url)
        if not path.exists() or is_empty(path):
            raise
        library = Library.open(path, home_path(str(url)))
        library.notice = f"{trouble}; what was read from it before is shown"
        library.sync_targets, library.is_copy = (url,), True
        return library
    library = _opened_source(url)
    library.notice = f"{url}: {url.left_out}" if url.left_out else None
    return library


def _copy_path(root: Root) -> Path:
    """Return the store in the cache folder that a source is synced into."""
    identity = import_module("store.sync.roots").identity(root)
    blake2b = import_module("hashlib").blake2b
    name = blake2b(os.fsencode(identity), digest_size=8).hexdigest()
    return private_folder(scratch_dir() / "opened") / f"{name}.db"


def _opened_source(root: Root) -> Library:
    """Open the store that a source is synced into."""
    path = _copy_path(root)
    open_database(path, create=True).close()
    library = Library.open(path, home_path(str(root)))
    library.sync_targets, library.is_copy = (root,), True
    return library
