"""Which session a fork was copied from: Continue copies a history and notes no link.

Source: the Continue format page, section 6. A fork begins with the prompts, answers and usages
of its original; what its own total lacks shows that it has copies.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from store.sources.base.documents import parse_document
from store.sources.base.growing import Depends, entries_of
from store.sources.base.json_values import LineError
from store.sources.base.protocol import FileStamp
from store.sources.base.values import mapping, string
from store.system.paths import open_regular

_SIDE_FILE_LIMIT = 64 * 1024 * 1024
_MOST_FILES = 5_000


class _Kept(NamedTuple):
    """What a file holds: its session, and a digest of each item of its history."""

    stamp: FileStamp
    session: str
    items: tuple[bytes, ...]


class Original(NamedTuple):
    """The session that another one was copied from.

    Attributes:
        session: Its id.
        items: How many items of the history are copies.
    """

    session: str
    items: int


class Siblings:
    """The sessions of folders, each file read anew when it moved."""

    def __init__(self, is_session: Callable[[str], bool]) -> None:
        """Start with nothing read.

        Args:
            is_session: Returns whether a file is a session's, by its name.
        """
        self._is_session = is_session
        self._kept: dict[str, _Kept | None] = {}

    def original(self, path: str, history: list[Any], depends: Depends) -> Original | None:
        """Return the session that a history was copied from: the one with most of its items.

        Args:
            path: The fork's file.
            history: Its items.
            depends: Takes the folder and the file that were looked into.
        """
        own, folder = digests(history), os.path.dirname(path)
        depends.looked.append(FileStamp.now(folder))
        best: tuple[int, str, str] | None = None
        names = sorted(entry.path for entry in entries_of(folder) if self._is_session(entry.name))
        for other in names[:_MOST_FILES]:
            if other == path:
                continue
            kept = self._read(other)
            if kept is None:
                # It may be damaged, or not be there whole yet.
                depends.looked.append(FileStamp.now(other))
                continue
            alike = _alike(own, kept.items)
            if alike and (best is None or alike > best[0]):
                best = alike, kept.session, other
        if best is None:
            return None
        depends.looked.append(FileStamp.now(best[2]))
        return Original(best[1], best[0])

    def _read(self, path: str) -> _Kept | None:
        stamp, kept = FileStamp.now(path), self._kept.get(path)
        if kept is not None and kept.stamp == stamp:
            return kept
        self._kept[path] = kept = _kept(path, stamp)
        return kept


def _kept(path: str, stamp: FileStamp) -> _Kept | None:
    try:
        with open_regular(path) as file:
            data = mapping(parse_document(file.read(_SIDE_FILE_LIMIT) or b"")[0])
    except (OSError, LineError):
        return None
    history, session = data.get("history"), string(data.get("sessionId"))
    if session is None or not isinstance(history, list):
        return None
    return _Kept(stamp, session, digests(history))


def digests(history: list[Any]) -> tuple[bytes, ...]:
    """Return what tells each item's message from others."""
    return tuple(
        blake2b(
            orjson.dumps(mapping(each).get("message"),
                         option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS),
            digest_size=12,
        ).digest() for each in history
    )  # fmt: skip


def _alike(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> int:
    """Return how many items two histories have in common at their beginning."""
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return min(len(one), len(other))
