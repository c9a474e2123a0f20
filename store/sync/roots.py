"""Asks a source about a root, be it a file, a folder or a database on a server."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import orjson

from store.engine.server_url import Root, ServerTrouble, ServerUrl, as_root, server_url
from store.errors import StoreError
from store.sources.base.protocol import (
    FollowedSource,
    Follower,
    Problem,
    Reading,
    ServerSource,
    Source,
    Unit,
)
from store.sync.second_names import each_once
from store.system.paths import resolved

HANDED_OVER = "BACKSCROLL_SERVERS"
"""The variable that brings URLs with passwords to a child: others may see its arguments."""


def identity(root: Root) -> str:
    """Return what two names of one root have in common."""
    return str(root) if isinstance(root, ServerUrl) else resolved(root)


def default_roots(source: Source, environment: Mapping[str, str], home: Path) -> list[Root]:
    """Return where a source's sessions usually are, whether or not they are there."""
    roots: list[Root] = list(source.default_roots(environment, home))
    if isinstance(source, ServerSource):
        roots += source.default_servers(environment)
    return roots


def configured_root(source: Source, name: str) -> Root:
    """Return the root that the configuration names for a source."""
    root = as_root(name)
    if isinstance(root, ServerUrl) or why_unreadable(root) is not None:
        return root
    return source.recognise(root) or root


def may_be_there(root: Root) -> bool:
    """Say whether a root is worth reading; of a server only reading it can tell."""
    return isinstance(root, ServerUrl) or os.path.lexists(root) or why_unreadable(root) is not None


def why_unreadable(root: Root) -> str | None:
    """Return why a root that is there cannot be read; None of a server, which is asked later."""
    if isinstance(root, ServerUrl):
        return None
    try:
        if stat.S_ISDIR(root.stat().st_mode):
            os.scandir(root).close()
        elif not os.access(root, os.R_OK):
            return f"cannot be read: {os.strerror(errno.EACCES)}"
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(root):
            return f"is a link to {os.readlink(root)}, which is not there"
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None


def units_of(source: Source, root: Root, problems: list[Problem]) -> Iterator[Unit]:
    """List what there is to read, each file once; damage goes to ``problems``.

    Raises:
        ServerTrouble: The source has no databases on servers.
    """
    if isinstance(root, ServerUrl):
        return on_servers(source, root).units_on(root, problems)
    return each_once(source.units(root, problems))


def read(source: Source, root: Root, unit: Unit) -> Reading:
    """Read one unit whole.

    Raises:
        StoreError: It cannot be read; sources of files may raise other errors, too.
    """
    if isinstance(root, ServerUrl):
        return on_servers(source, root).read_on(root, unit)
    return source.read(root, unit)


def follower_of(source: Source, root: Root, unit: Unit) -> Follower | None:
    """Return what reads a unit again and again; None where the source has no such thing."""
    if isinstance(root, ServerUrl):
        return ServerFollower(on_servers(source, root), root)
    return source.follower(root, unit) if isinstance(source, FollowedSource) else None


def on_servers(source: Source, url: ServerUrl) -> ServerSource:
    """Return a source as one that reads servers.

    Raises:
        ServerTrouble: It does not.
    """
    if not isinstance(source, ServerSource):
        raise ServerTrouble(url, f"is a server, where no sessions of {source.label} are read from")
    return source


class ServerFollower:
    """Fulfils ``store.sources.base.protocol.Follower``: a server gives whole sessions."""

    def __init__(self, source: ServerSource, url: ServerUrl) -> None:
        """Start with nothing read."""
        self._source, self._url = source, url

    def read(self, unit: Unit) -> Reading:
        """Return what ``read`` would."""
        return self._source.read_on(self._url, unit)


def handed_over(roots: Iterable[Root]) -> dict[str, str]:
    """Return the environment variable that tells a child the passwords of its arguments."""
    full = {root.text: root.dsn for root in roots if isinstance(root, ServerUrl)}
    return {HANDED_OVER: orjson.dumps(full).decode()} if full else {}


def take_over(names: Iterable[str]) -> list[Root]:
    """Return the roots that a child's arguments name, with the passwords handed over.

    Raises:
        StoreError: What was handed over cannot be read.
    """
    text = os.environ.pop(HANDED_OVER, "{}")
    try:
        full: dict[str, str] = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise StoreError(f"{HANDED_OVER} holds no JSON") from error
    found = []
    for name in names:
        root = as_root(name)
        if isinstance(root, ServerUrl):
            root = server_url(full.get(root.text, "")) or root
        found.append(root)
    return found
