"""Access to a source's root, whether it is a file, a folder or a database server.

What may not be read is answered for here: it is a problem of a listing, and no error of those who
ask for units or for what to watch. Up to Python 3.13 the path's own questions, such as ``is_dir``,
raise then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import orjson

from store.engine.server_url import Root, ServerTrouble, ServerUrl, as_root, server_url
from store.errors import StoreError
from store.sources.base.protocol import (
    FolderedSource,
    FollowedSource,
    Follower,
    Problem,
    Reading,
    ServerSource,
    Source,
    Unit,
)
from store.sources.registry import recognised
from store.sync import broken_folders
from store.sync.aliases import each_once
from store.system.paths import resolved

SERVERS_VARIABLE = "BACKSCROLL_SERVERS"
"""Environment variable that passes URLs with passwords to a child process, since other users
can see its arguments."""


def identity(root: Root) -> str:
    """Return a string that is equal for two names of the same root."""
    return str(root) if isinstance(root, ServerUrl) else resolved(root)


def default_roots(source: Source, environment: Mapping[str, str], home: Path) -> list[Root]:
    """Return a source's default roots, whether or not they exist.

    Args:
        source: The source.
        environment: The process's environment variables.
        home: The user's home folder.
    """
    roots: list[Root] = list(source.default_roots(environment, home))
    if isinstance(source, ServerSource):
        roots += source.default_servers(environment)
    return roots


def configured_root(source: Source, name: str) -> Root:
    """Return the root for a path or URL from the configuration."""
    root = as_root(name)
    if isinstance(root, ServerUrl):
        return root
    try:
        found = recognised(root, [source])
    except StoreError:
        return root  # Its listing says why it cannot be read.
    return found[1] if found is not None else root


def may_be_there(root: Root) -> bool:
    """Return whether a root may exist; always True for a server."""
    return isinstance(root, ServerUrl) or os.path.lexists(root) or why_unreadable(root) is not None


def why_unreadable(root: Root) -> str | None:
    """Return why an existing root cannot be read, or None; None for a server."""
    return None if isinstance(root, ServerUrl) else broken_folders.why_unreadable(root)


def units_of(source: Source, root: Root, problems: list[Problem]) -> Iterator[Unit]:
    """Yield a root's units, each file once; none where it cannot be read.

    Args:
        source: The source.
        root: The root to list.
        problems: Receives what cannot be listed.

    Raises:
        ServerTrouble: The source does not read servers.
    """
    if isinstance(root, ServerUrl):
        return on_servers(source, root).units_on(root, problems)
    reason = why_unreadable(root)
    if reason is not None:
        problems.append(Problem(str(root), 0, reason))
        return iter(())
    return _listed(source, root, problems)


def _listed(source: Source, root: Path, problems: list[Problem]) -> Iterator[Unit]:
    """Yield the units of a root of files, each file once; then name what is broken beside them."""
    try:
        if isinstance(source, FolderedSource):
            problems += filter(None, (_broken(root / name) for name in source.folders))
        yield from _with_broken(each_once(source, source.units(root, problems)), root, problems)
    except PermissionError as error:
        reason = f"cannot be read: {error.strerror}"
        problems.append(Problem(str(error.filename or root), 0, reason))


def units_at(source: Source, root: Root, paths: Iterable[str]) -> list[Unit] | None:
    """Return the units that some changed paths are of; None where all must be listed.

    Args:
        source: The source.
        root: Its root.
        paths: The paths, at or below the root.
    """
    if not isinstance(source, FollowedSource) or isinstance(root, ServerUrl):
        return None
    try:
        found = source.units_at(root, paths)
        return None if found is None else list(each_once(source, found))
    except PermissionError:
        return None  # A listing says what may not be read.


def watched_paths(source: Source, root: Root) -> list[Path]:
    """Return the absolute paths whose changes concern a root; none for a server."""
    if isinstance(root, ServerUrl):
        return []
    try:
        return [path.absolute() for path in source.watch_paths(root)]
    except PermissionError:
        return [root.absolute()]  # What is below it is seen once that may be read.


IN_PLACE_OF_A_FOLDER = "is a file, where a folder of sessions belongs"


def _broken(folder: Path) -> Problem | None:
    """Return what is wrong with a folder of sessions that leads nowhere, or is a file."""
    reason = why_unreadable(folder) if folder.is_symlink() and not folder.is_dir() else None
    if reason is None and folder.is_file():
        reason = IN_PLACE_OF_A_FOLDER
    return None if reason is None else Problem(str(folder), 0, reason)


def _with_broken(units: Iterator[Unit], root: Path, problems: list[Problem]) -> Iterator[Unit]:
    """Yield the units; then name folders beside theirs that cannot be listed, or lead nowhere."""
    holders, beside = set[str](), set[str]()
    for unit in units:
        folders = [os.path.dirname(stamp.path) for stamp in unit.stamps]
        holders.update(folders[:1])
        beside.update(folders[1:])
        yield unit
    found = broken_folders.broken_folders(str(root), holders, beside)
    named = {problem.path for problem in problems}
    problems += [problem for problem in found if problem.path not in named]


def read(source: Source, root: Root, unit: Unit) -> Reading:
    """Return the reading of a whole unit.

    Args:
        source: The source.
        root: The unit's root.
        unit: The unit.

    Raises:
        StoreError: It cannot be read; sources of files may raise other errors too.
    """
    if isinstance(root, ServerUrl):
        return on_servers(source, root).read_on(root, unit)
    return source.read(root, unit)


def follower_of(source: Source, root: Root, unit: Unit) -> Follower | None:
    """Return an incremental reader of a unit; None if the source has none.

    Args:
        source: The source.
        root: The unit's root.
        unit: The unit.
    """
    if isinstance(root, ServerUrl):
        return ServerFollower(on_servers(source, root), root, unit)
    return source.follower(root, unit) if isinstance(source, FollowedSource) else None


def on_servers(source: Source, url: ServerUrl) -> ServerSource:
    """Return the source, which reads servers.

    Raises:
        ServerTrouble: It does not read servers.
    """
    if not isinstance(source, ServerSource):
        raise ServerTrouble(url, f"is a server; {source.label} is not read from servers")
    return source


class ServerFollower:
    """Implements ``store.sources.base.protocol.Follower`` on a server."""

    def __init__(self, source: ServerSource, url: ServerUrl, unit: Unit) -> None:
        """Make a reader of one session.

        Args:
            source: The source.
            url: The database.
            unit: The session.
        """
        self._source, self._url = source, url
        self._followed = source.follow_on(url, unit)

    def read(self, unit: Unit) -> Reading:
        """Return the whole session, of which only what was added is fetched."""
        return self._source.read_on(self._url, unit)


def passwords_for_child(roots: Iterable[Root]) -> dict[str, str]:
    """Return the environment variable that passes server passwords to a child process."""
    full = {root.text: root.dsn for root in roots if isinstance(root, ServerUrl)}
    return {SERVERS_VARIABLE: orjson.dumps(full).decode()} if full else {}


def roots_from_arguments(names: Iterable[str]) -> list[Root]:
    """Return the roots of a child's arguments, with passwords from the environment.

    Raises:
        StoreError: The environment variable is not JSON.
    """
    text = os.environ.pop(SERVERS_VARIABLE, "{}")
    try:
        full: dict[str, str] = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise StoreError(f"the variable {SERVERS_VARIABLE} is not valid JSON") from error
    found = []
    for name in names:
        root = as_root(name)
        if isinstance(root, ServerUrl):
            root = server_url(full.get(root.text, "")) or root
        found.append(root)
    return found
