"""What the data exports of chat services have in common: all conversations in one long file.

An export is a zip, or the folder made of it, with ``conversations.json`` or several numbered
ones at any depth. It is read in a stream: a listing keeps of each conversation only its id and
where it is. A session is made of all exports below a root that have its conversation, and
of what the library has of it: the one that was changed last decides, and what only an older
one has is kept.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import orjson

from store.errors import StoreError
from store.sources.base.archives import Archive, ArchiveError, FolderArchive, ZipArchive
from store.sources.base.drafts import SessionDraft
from store.sources.base.growing import entries_of
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    Fact,
    FileStamp,
    Library,
    Problem,
    Reading,
    Unit,
)
from store.sources.base.values import mapping

_NAME = re.compile(r"conversations(-\d+)?\.json")
_TO_BRACKET = re.compile(
    rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+[{}\[\]]', re.S
)
"""From one bracket to the next; those in strings do not count."""
_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:[{\[]|\Z)")
_LONGEST = 256 << 20
"""Bytes of the longest conversation."""
_DEEPEST = 6
_MOST_LOOKED_AT = 50
_HEAD = 1 << 16
_FILE = "file:"
"""Begins the name of the fact that a file was found."""
_LARGEST_FILE = 20 << 20
"""Bytes of the largest picture that is taken."""


class _Found(NamedTuple):
    """Where a conversation is.

    Attributes:
        updated: When it was changed last, epoch ms; 0 where it does not say.
        digest: Tells its bytes from others.
    """

    id: str
    updated: int
    archive: Archive
    name: str
    start: int
    size: int
    digest: int

    @property
    def path(self) -> str:
        return self.archive.source_of(self.name)


@dataclass(slots=True)
class Conversation:
    """A conversation with all that is known of it.

    Attributes:
        id: Its id at the service.
        versions: What each export has of it, the one that was changed last first.
        path: The file of the first one.
        problems: Takes what cannot be read.
        looked: Files and folders that were looked for files in.
        facts: Which files were found.
        files: A record of each file that was found, so that what was made of it is kept when the
            file is gone.
    """

    id: str
    versions: list[dict[str, Any]]
    path: str
    problems: list[Problem]
    _archives: list[Archive]
    _library: Library
    looked: dict[str, FileStamp] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)

    def file(self, begin: str) -> tuple[str, bytes] | None:
        """Return the file of an export whose own name begins so, with its name; None if not there.

        One that is larger than 20 MiB counts as not there.
        """
        for archive in self._archives:
            for name in archive.names():
                if name.rpartition("/")[2].startswith(begin):
                    try:
                        body = archive.read(name, 0, _LARGEST_FILE + 1)
                    except (OSError, StoreError) as error:
                        self.problems.append(Problem(archive.path, 0, f"{name}: {error}"))
                        continue
                    if len(body) <= _LARGEST_FILE:
                        path = archive.source_of(name)
                        self._look(os.path.dirname(path), path)
                        self.facts.append(Fact(f"{_FILE}{begin}", self.id, name))
                        digest = blake2b(body, digest_size=12).hexdigest()
                        self.files.append(orjson.dumps({"file": name, "digest": digest}))
                        return name, body
            self._look(*archive.folders()[:_MOST_LOOKED_AT])
        return None

    def had_file(self, begin: str) -> bool:
        """Return whether a file was there when this conversation was read before.

        What was made of it is in the library still.
        """
        known = [fact for fact in self._library.facts(f"{_FILE}{begin}")
                 if fact.session == self.id]  # fmt: skip
        self.facts += known[:1]
        return bool(known)

    def _look(self, *paths: str) -> None:
        for path in paths:
            self.looked.setdefault(path, FileStamp.now(path))


class ChatExports(LibrarySource):
    """A source of exports; its class says what a conversation is and makes sessions of them.

    Looks into the library for what newer exports no longer have.
    """

    unread: ClassVar[str] = ""
    """The folder of an export with chats in a form that is not read."""

    def __init__(self) -> None:
        """Make a source."""
        self._files: dict[str, tuple[FileStamp, dict[str, list[_Found]], list[Problem]]] = {}
        self._listed: dict[str, dict[str, list[_Found]]] = {}

    @abstractmethod
    def is_conversation(self, data: dict[str, Any]) -> bool:
        """Return whether an object is a conversation of this service."""

    @abstractmethod
    def id_of(self, data: dict[str, Any]) -> str | None:
        """Return a conversation's id."""

    @abstractmethod
    def updated(self, data: dict[str, Any]) -> int:
        """Return when a conversation was changed last, epoch ms; 0 where it does not say."""

    @abstractmethod
    def from_records(self, records: Sequence[bytes]) -> dict[str, Any] | None:
        """Return the conversation that a session's records hold; None where they hold none."""

    @abstractmethod
    def draft(self, conversation: Conversation) -> SessionDraft:
        """Return the session of a conversation."""

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return nothing: an export is where its owner put it."""
        return []

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: an export, its file of conversations, or a folder of exports."""
        if path.is_file():
            return path if self._is_export(str(path)) else None
        if not path.is_dir():
            return None
        inside = entries_of(str(path))
        found = [entry.path for entry in inside if _may_be_export(entry.name)]
        for entry in inside[:_MOST_LOOKED_AT]:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                below = entries_of(entry.path)
                found += [each.path for each in below if _NAME.fullmatch(each.name)]
        return path if any(map(self._is_export, found[:_MOST_LOOKED_AT])) else None

    def _is_export(self, path: str) -> bool:
        try:
            archive, names = _opened(path)
            return any(self._is_mine(archive, name) for name in names)
        except (OSError, StoreError, LineError):
            return False

    def _is_mine(self, archive: Archive, name: str) -> bool:
        """Tell by the first conversation of a file whose it is."""
        for _, raw in elements(archive.chunks(name)):
            return self.is_conversation(_parsed(raw))
        return False

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the conversations of all exports at a root."""
        top = os.path.abspath(root)
        found: dict[str, list[_Found]] = {}
        for path in _paths_below(top, problems):
            for name, places in self._conversations(path, problems).items():
                found.setdefault(name, []).extend(places)
        for places in found.values():
            places.sort(key=lambda each: each.updated, reverse=True)
        self._listed[top] = found
        for name, places in found.items():
            stamps = [FileStamp(each.path, 0, each.size, each.digest) for each in places]
            yield Unit(name, tuple(dict.fromkeys(stamps)), places[0].updated)

    def _conversations(self, path: str, problems: list[Problem]) -> dict[str, list[_Found]]:
        """Return where the conversations of an export are, by id."""
        stamp, known = FileStamp.now(path), self._files.get(path)
        if known is not None and known[0] == stamp:
            problems += known[2]
            return known[1]
        try:
            archive, names = _opened(path)
        except (OSError, StoreError) as error:
            problems.append(Problem(path, 0, _reason(error)))
            return {}
        found: dict[str, list[_Found]] = {}
        told: list[Problem] = []
        for name in names:
            try:
                self._take(archive, name, found, told)
            except (OSError, StoreError) as error:
                told.append(Problem(path, 0, _reason(error)))
        for name in getattr(archive, "outside", ()):
            told.append(Problem(path, 0, f"{name[:200]} names a place outside, left out"))
        if found and self.unread:
            beside = [name for name in archive.names() if f"/{self.unread}" in f"/{name}"]
            reason = f"{len(beside)} files in {self.unread} are not read"
            told += [Problem(path, 0, reason)] if beside else []
        problems += told
        self._files[path] = stamp, found, told
        return found

    def _take(
        self, archive: Archive, name: str, found: dict[str, list[_Found]], told: list[Problem]
    ) -> None:
        for start, raw in elements(archive.chunks(name)):
            try:
                data = _parsed(raw)
            except LineError as error:
                told.append(Problem(archive.source_of(name), 0, f"a conversation: {error}"))
                continue
            session = self.id_of(data) if self.is_conversation(data) else None
            if session is not None:
                digest = int.from_bytes(blake2b(raw, digest_size=6).digest(), "big")
                at = self.updated(data)
                places = found.setdefault(session, [])
                places.append(_Found(session, at, archive, name, start, len(raw), digest))
            elif not found:
                return  # An export of another service.
            else:
                told.append(Problem(archive.source_of(name), 0, f"no conversation of {self.label}"))

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one conversation.

        Raises:
            StoreError: Its export cannot be read, or was changed meanwhile.
            OSError: Its export cannot be read.
        """
        top = os.path.abspath(root)
        stamps = {(stamp.path, stamp.mtime_ns) for stamp in unit.stamps}
        places = self._listed.get(top, {}).get(unit.key, [])
        if not stamps <= {(each.path, each.digest) for each in places}:
            list(self.units(root, []))
            places = self._listed[top].get(unit.key, [])
        problems: list[Problem] = []
        versions: list[dict[str, Any]] = []
        archives: list[Archive] = []
        for each in {each.digest: each for each in reversed(places)}.values():
            raw = each.archive.read(each.name, each.start, each.size)
            if int.from_bytes(blake2b(raw, digest_size=6).digest(), "big") != each.digest:
                raise ArchiveError("was changed while it was read")
            data, repaired = parse_json(raw)
            problems += [Problem(each.path, 0, repaired)] if repaired else []
            versions.append(mapping(data))
            archives.append(each.archive)
        if not versions:
            raise ArchiveError("the conversation is no longer there")
        versions.reverse()
        archives.reverse()
        conversation = Conversation(
            unit.key, versions, places[0].path, problems, archives, self._library)
        stored = self.from_records(self._library.records(unit.key))
        if stored is not None:
            versions.append(stored)
            versions.sort(key=self.updated, reverse=True)
        draft = self.draft(conversation)
        draft.holds_stored = stored is not None
        return Reading(
            [draft], problems, unit.stamps, looked=list(conversation.looked.values()),
            facts=list(dict.fromkeys(conversation.facts)),
        )  # fmt: skip

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folder whose changes below it concern this root."""
        return [root.parent if root.is_file() else root]


def _may_be_export(name: str) -> bool:
    return name.lower().endswith(".zip") or _NAME.fullmatch(name) is not None


def _paths_below(top: str, problems: list[Problem], depth: int = _DEEPEST) -> Iterator[str]:
    """Yield the zips and the files of conversations at a root."""
    if not os.path.isdir(top):
        yield top
        return
    for entry in entries_of(top, problems):
        if entry.is_dir(follow_symlinks=False):
            if depth and not entry.name.startswith("."):
                yield from _paths_below(entry.path, problems, depth - 1)
        elif _may_be_export(entry.name):
            yield entry.path


def _opened(path: str) -> tuple[Archive, list[str]]:
    """Return an export with the names of its files of conversations."""
    if not path.lower().endswith(".zip"):
        folder, name = os.path.split(path)
        return FolderArchive(folder), [name]
    archive = ZipArchive(path)
    return archive, [name for name in archive.names() if _NAME.fullmatch(name.rpartition("/")[2])]


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _parsed(raw: bytes) -> dict[str, Any]:
    return mapping(parse_json(raw, may_be_wrapped=False)[0])


def elements(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the objects of a long list of JSON, each with its place, without holding the list.

    The list is the whole text, or a member of an object that is.

    Raises:
        ArchiveError: It is no JSON, ends in the middle, or an object is too long.
    """
    held, base, at, depth, level = bytearray(), 0, 0, 0, 0
    begin: int | None = None
    for chunk in chunks:
        done = at if begin is None else begin
        del held[:done]
        base, at = base + done, at - done
        begin = None if begin is None else 0
        held += chunk
        if not base and not level and len(held) > 3 and not _BEGINS.match(held):
            raise ArchiveError("no JSON where a list of conversations belongs")
        while (found := _TO_BRACKET.match(held, at)) is not None:
            at = found.end()
            mark = held[at - 1]
            if mark in b"[{":
                level = level or (1 if mark == ord("[") else 2)
                depth += 1
                if depth == level + 1 and mark == ord("{"):
                    begin = at - 1
            else:
                depth -= 1
                if depth == level and begin is not None:
                    yield base + begin, bytes(held[begin:at])
                    begin = None
                if depth <= 0:
                    return
        if len(held) > _LONGEST:
            raise ArchiveError(f"a conversation is longer than {_LONGEST >> 20} MiB")
    raise ArchiveError("the list of conversations ends in the middle")
