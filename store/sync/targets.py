"""Targets of a sync: the default places of agents, or paths and URLs that a user names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
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
from store.text.likeness import nearest

if TYPE_CHECKING:
    from store.config import SourceSettings

SQLITE_HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Target:
    """A source and one of its roots, to sync."""

    source: Source
    root: Root


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """A SQLite file that no source recognizes: perhaps a store."""

    path: Path


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A folder that no source recognizes: a workspace to filter by."""

    path: Path


def classify(named: Root, sources: Sequence[Source]) -> Target | StoreTarget | FolderTarget:
    """Return what a path or URL is, judged by its content.

    Raises:
        StoreError: It is missing, cannot be read, or is of no known kind.
    """
    if isinstance(named, ServerUrl):
        return classify_server(named, sources)
    path = expanded(named)
    found = recognised(path, sources)
    if found is not None:
        return Target(found[0], found[1].absolute())
    if not path.exists():
        raise StoreError(f"{path} does not exist{_meant(str(named), sources)}")
    if path.is_dir():
        return FolderTarget(real_path(path))
    if not path.is_file():
        raise StoreError(f"{path} is not a file or folder")
    try:
        with open_regular(path) as file:
            head = file.read(len(SQLITE_HEADER))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if head == SQLITE_HEADER:
        return StoreTarget(path)
    known = ", ".join(source.label for source in sources)
    what = "empty" if not head else "not a known session file"
    raise StoreError(f"{path} is {what} (known: a three-table SQLite store, {known})")


def _meant(name: str, sources: Iterable[Source]) -> str:
    """Return a question for a name that is like a source's, else nothing."""
    near = nearest(name, [source.kind for source in sources])
    return f". Did you mean the source {near}?" if near else ""


def classify_server(url: ServerUrl, sources: Iterable[Source]) -> Target:
    """Return the target for a database on a server, recognized by its tables.

    Raises:
        StoreError: It cannot be read, or no known agent has such tables.
    """
    # Imported here: only servers need asyncio.
    from store.sources.base.servers.recognising import recognised

    return Target(recognised(url, sources), url)


def default_targets(
    settings: SourceSettings,
    sources: Iterable[Source],
    environment: Mapping[str, str],
    home: Path,
) -> list[Target]:
    """Return the existing roots of the enabled sources, default and configured, each once.

    Args:
        settings: Which sources are enabled, and their configured paths.
        sources: The known sources.
        environment: The process's environment variables.
        home: The user's home folder.
    """
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
    """Return the path of the temporary store for a source that was opened by its path."""
    folder = private_folder(scratch_dir() / "targets")
    name = f"{target.source.kind}\0{identity(target.root)}".encode("utf-8", "surrogatepass")
    return folder / f"{hashlib.blake2b(name, digest_size=12).hexdigest()}.sqlite"
