"""What sync reads: the places where agents leave sessions, or what a user names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from store.engine.server_url import Root, ServerUrl
from store.errors import StoreError
from store.sources.base.protocol import Source
from store.sources.registry import recognised
from store.sync.roots import configured_root, default_roots, identity, may_be_there
from store.system.locations import private_folder, scratch_dir
from store.system.paths import expanded, open_regular, real_path

if TYPE_CHECKING:
    from store.config import SourceSettings

SQLITE_HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Target:
    """A root of a source, to be read."""

    source: Source
    root: Root


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """A SQLite file that no source claims: perhaps a store."""

    path: Path


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A folder that is no source: a workspace to filter by."""

    path: Path


def classify(named: Root, sources: Iterable[Source]) -> Target | StoreTarget | FolderTarget:
    """Say what a path or URL is that a user named, by its content.

    Raises:
        StoreError: It is missing, cannot be read, or is nothing that is known.
    """
    sources = tuple(sources)
    if isinstance(named, ServerUrl):
        return classify_server(named, sources)
    path = expanded(named)
    found = recognised(path, sources)
    if found is not None:
        return Target(found[0], found[1].absolute())
    if not path.exists():
        raise StoreError(f"{path} does not exist")
    if path.is_dir():
        return FolderTarget(real_path(path))
    if not path.is_file():
        raise StoreError(f"{path} is no file and no folder")
    try:
        with open_regular(path) as file:
            head = file.read(len(SQLITE_HEADER))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if head == SQLITE_HEADER:
        return StoreTarget(path)
    known = ", ".join(source.label for source in sources)
    what = "empty" if not head else "no session file that is known"
    raise StoreError(f"{path} is {what} (known: a three-table SQLite store, {known})")


def classify_server(url: ServerUrl, sources: Iterable[Source]) -> Target:
    """Say whose database on a server is, by its tables.

    Raises:
        StoreError: It cannot be read, or is nothing that is known.
    """
    # Not before a server is named: it brings the event loop.
    from store.sources.base.servers.recognising import recognised

    return Target(recognised(url, sources), url)


def default_targets(
    settings: SourceSettings,
    sources: Iterable[Source],
    environment: Mapping[str, str],
    home: Path,
) -> list[Target]:
    """Return the roots that exist of the enabled sources, each once, with the config's paths."""
    targets: dict[tuple[str, str], Target] = {}
    for source in sources:
        if not settings.reads(source.kind):
            continue
        roots = default_roots(source, environment, home)
        named = settings.paths.get(source.kind, ())
        for root in [*roots, *(configured_root(source, name) for name in named)]:
            if may_be_there(root):
                targets.setdefault((source.kind, identity(root)), Target(source, root))
    return list(targets.values())


def target_store_path(target: Target) -> Path:
    """Return the store of its own that a source opened by name is synced into."""
    folder = private_folder(scratch_dir() / "targets")
    name = f"{target.source.kind}\0{identity(target.root)}".encode("utf-8", "surrogatepass")
    return folder / f"{hashlib.blake2b(name, digest_size=12).hexdigest()}.sqlite"
