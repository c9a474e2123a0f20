"""Other sessions of a folder: which of them a session was copied from, and how far.

Source: the pi section of the format page: a fork holds entries with the ids that they have
in its parent. It mostly names that file; one that was made by hand may not, and may have
kept its parent's time as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from store.sources.base.growing import LINES, entries_of
from store.sources.base.json_lines import LineError, parse_line, read_head
from store.sources.base.protocol import Fact, Library, NoLibrary
from store.sources.base.values import string
from store.system.paths import open_regular

_HEAD = 65536
_FILES_KEPT = 4


class Head(NamedTuple):
    """How a file begins.

    Attributes:
        session: The session's time and id, as its header has them; ``entry`` the same of
            the first entry after it.
    """

    session: tuple[str, str]
    entry: tuple[str, str]


class Siblings:
    """Reads beginnings once; a folder anew when files came or went."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._folders: dict[str, tuple[int, dict[tuple[str, str], list[tuple[Head, str]]]]] = {}
        self._heads: dict[str, Head | None] = {}
        self._ids: dict[str, tuple[tuple[int, int], frozenset[str]]] = {}
        self._library: Library = NoLibrary()

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone."""
        self._library = library

    def shared_fact(self, path: str, session_id: str) -> Fact | None:
        """Return what a file tells others that begin as it does."""
        own = self._head(path)
        if own is None:
            return None
        value = json.dumps([*own.session, os.path.dirname(path)])
        return Fact("entry:" + " ".join(own.entry), session_id, value)

    def older_gone(self, path: str, session_id: str) -> str | None:
        """Return the oldest session that began with the same entry, where its file is gone.

        None where the oldest one is there, or the session itself is.
        """
        own, fact = self._head(path), self.shared_fact(path, session_id)
        folder = os.path.dirname(path)
        if own is None or fact is None:
            return None
        there = {head.session: "" for head, _ in self._alike(folder, own.entry)}
        for other in self._library.facts(fact.name):
            at, name, place = json.loads(other.value)
            if place == folder:
                there.setdefault((at, name), other.session)
        return there[min(there)] or None if there else None

    def gone_ids(self, session_id: str) -> frozenset[str]:
        """Return the ids of the entries that a session had whose file is gone."""
        return _ids_in(self._library.records(session_id)[1:])

    def named(self, path: str, parent: str) -> str | None:
        """Return the file that a session names as its parent, where it is near it.

        In the same folder, or in that of another project beside it: sessions may have been
        brought here from where they were written.
        """
        folder, (theirs, name) = os.path.dirname(path), os.path.split(parent)
        projects = os.path.dirname(folder)
        for place in (folder, os.path.join(projects, os.path.basename(theirs))):
            found = os.path.join(place, name)
            if found != path and os.path.isfile(found):
                return found
        return None

    def older(self, path: str) -> str | None:
        """Return the oldest file of the folder that begins with the same entry, if any."""
        own = self._head(path)
        if own is None:
            return None
        alike = [each for each in self._alike(os.path.dirname(path), own.entry) if each[0] < own]
        return min(alike)[1] if alike else None

    def id_of(self, path: str | None) -> str | None:
        """Return the id of a file's session by its header; copies have other names."""
        head = self._head(path) if path is not None else None
        return (head.session[1] or None) if head is not None else None

    def entry_ids(self, path: str) -> frozenset[str]:
        """Return the ids of all of a file's entries; none where it cannot be read."""
        try:
            status = os.stat(path)
        except OSError:
            return frozenset()
        sign = (status.st_size, status.st_mtime_ns)
        known = self._ids.pop(path, None)
        if known is None or known[0] != sign:
            known = (sign, _entry_ids(path))
        self._ids[path] = known
        while len(self._ids) > _FILES_KEPT:
            del self._ids[next(iter(self._ids))]
        return known[1]

    def _alike(self, folder: str, entry: tuple[str, str]) -> list[tuple[Head, str]]:
        try:
            moved = os.stat(folder).st_mtime_ns
        except OSError:
            return []
        known = self._folders.get(folder)
        if known is None or known[0] != moved:
            found: dict[tuple[str, str], list[tuple[Head, str]]] = {}
            for each in entries_of(folder):
                head = self._head(each.path) if each.name.endswith(LINES) else None
                if head is not None:
                    found.setdefault(head.entry, []).append((head, each.path))
            known = self._folders[folder] = (moved, found)
        return known[1].get(entry, [])

    def _head(self, path: str) -> Head | None:
        if self._heads.get(path) is None:
            self._heads[path] = _head_of(path)
        return self._heads[path]


def _head_of(path: str) -> Head | None:
    """Return how a file begins; None while it has no entry, or none with an id."""
    try:
        with open_regular(path) as file:
            lines = read_head(file, _HEAD, 2).split(b"\n")[:-1]
        header, entry = (parse_line(line)[0] for line in lines[:2])
    except (OSError, LineError, ValueError):
        return None
    session, first = (
        (string(data.get("timestamp")) or "", string(data.get("id")) or "")
        for data in (header, entry)
    )
    return Head(session, first) if header.get("type") == "session" and first[1] else None


def _entry_ids(path: str) -> frozenset[str]:
    try:
        with open_regular(path) as file:
            return _ids_in(file.readall().split(b"\n")[1:])
    except OSError:
        return frozenset()


def _ids_in(lines: Sequence[bytes]) -> frozenset[str]:
    found: set[str] = set()
    for line in lines:
        try:
            name = string(parse_line(line)[0].get("id")) if line.strip() else None
        except LineError:
            continue
        if name is not None:
            found.add(name)
    return frozenset(found)
