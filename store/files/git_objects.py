"""Reads objects of a git repository without git: nothing is run, written or fetched.

Agents keep files as they were in repositories of their own. Loose objects, packs (index version
2) and alternates are read, with SHA-1 names; each object is checked against its name.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from store.system.paths import open_regular, read_regular

MOST_BYTES = 64 << 20
"""Larger objects are not read."""
_MOST_PACKS = 200
_MOST_INDEX = 256 << 20
_SMALL, _MOST_KNOWN = 1 << 16, 1_000
"""Bytes of an object, and objects, that are kept: the trees of two answers are mostly the same."""
_MOST_DELTAS = 64
"""Git itself makes chains of at most 50."""
_NAME = re.compile(r"[0-9a-f]{40}")
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7


class NoObject(Exception):
    """A repository does not have an object, or it is damaged; the message says which."""


class Repository:
    """The objects of a repository."""

    def __init__(self, folder: Path, *, alternates: bool = True) -> None:
        """Take the repository's own folder, the one with ``objects``."""
        self._objects = folder / "objects"
        self._follows = alternates
        self._bases = 0
        self._known: dict[str, tuple[str, bytes]] = {}

    def file_at(self, name: str, path: str) -> bytes | None:
        """Return a file's content in a commit or tree; None where it is not in it.

        Args:
            name: Of the commit or tree.
            path: From the root of the work tree on, with ``/``.

        Raises:
            NoObject: An object on the way is missing or damaged.
        """
        kind, body = self.read(name)
        if kind == "commit":
            if not body.startswith(b"tree "):
                raise NoObject(f"the commit {name} names no tree")
            kind, body = self.read(body[5:45].decode("ascii", "replace"))
        parts = path.encode("utf-8", "surrogateescape").split(b"/")
        for at, part in enumerate(parts):
            if kind != "tree":
                return None
            entry = next((each for each in _entries(body) if each[1] == part), None)
            if entry is None:
                return None
            mode, _, child = entry
            if at == len(parts) - 1 and mode not in (b"100644", b"100755"):
                return None
            kind, body = self.read(child)
        return body if kind == "blob" else None

    def read(self, name: str) -> tuple[str, bytes]:
        """Return kind and content of an object.

        Raises:
            NoObject: It is missing, damaged or too large.
        """
        if name in self._known:
            return self._known[name]
        if not _NAME.fullmatch(name):
            raise NoObject("no name of an object")
        found = self._found(name)
        if found is None:
            raise NoObject(f"the object {name} is not in the repository")
        kind, body = found
        made = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(body)) + body, usedforsecurity=False)
        if made.hexdigest() != name:
            raise NoObject(f"the object {name} is damaged")
        if len(body) <= _SMALL and len(self._known) < _MOST_KNOWN:
            self._known[name] = found
        return found

    def _found(self, name: str) -> tuple[str, bytes] | None:
        loose = self._loose(name)
        if loose is not None:
            return loose
        for pack in self._packs:
            place = pack.place_of(bytes.fromhex(name))
            if place is not None:
                return pack.read(place, self)
        for other in self._alternates:
            found = other._found(name)
            if found is not None:
                return found
        return None

    def base(self, name: str) -> tuple[str, bytes]:
        """Return the base of a delta; a chain of them that leads back to itself is refused.

        Raises:
            NoObject: As for ``read``.
        """
        if self._bases > _MOST_DELTAS:
            raise NoObject("a chain of deltas is too long")
        self._bases += 1
        try:
            return self.read(name)
        finally:
            self._bases -= 1

    def _loose(self, name: str) -> tuple[str, bytes] | None:
        try:
            packed = read_regular(self._objects / name[:2] / name[2:], MOST_BYTES)
        except OSError:
            return None
        head, _, body = _inflated(packed, MOST_BYTES + 64).partition(b"\0")
        return head.partition(b" ")[0].decode("ascii", "replace"), body

    @cached_property
    def _packs(self) -> list[_Pack]:
        folder = self._objects / "pack"
        try:
            with os.scandir(folder) as entries:
                names = sorted(each.name for each in entries if each.name.endswith(".idx"))
        except OSError:
            return []
        return [_Pack(folder / name) for name in names[:_MOST_PACKS]]

    @cached_property
    def _alternates(self) -> list[Repository]:
        try:
            body = read_regular(self._objects / "info" / "alternates", 1 << 16)
        except OSError:
            return []
        lines = body.decode("utf-8", "surrogateescape").splitlines() if self._follows else []
        folders = (self._objects / line for line in lines if line and not line.startswith("#"))
        return [Repository(folder.parent, alternates=False) for folder in folders
                if "\0" not in str(folder)]


def _entries(tree: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Yield mode, name and object of a tree's entries."""
    at = 0
    while at < len(tree):
        space, end = tree.find(b" ", at), tree.find(b"\0", at)
        if space < 0 or end < space or end + 21 > len(tree):
            raise NoObject("a tree is damaged")
        yield tree[at:space], tree[space + 1 : end], tree[end + 1 : end + 21].hex()
        at = end + 21


def _inflated(packed: bytes, most: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(packed, most)
    except zlib.error as error:
        raise NoObject(f"an object is damaged: {error}") from error
    if not stream.eof:
        raise NoObject("an object is too large or cut off")
    return body


class _Pack:
    """One pack with its index; both are opened when something is looked for."""

    def __init__(self, index: Path) -> None:
        self._index_path = index

    @cached_property
    def _index(self) -> bytes:
        try:
            body = read_regular(self._index_path, _MOST_INDEX)
        except OSError:
            return b""
        whole = body[:8] == b"\xfftOc\0\0\0\2" and len(body) >= 8 + 1024
        return body if whole and len(body) >= 1032 + self._count_in(body) * 28 else b""

    @staticmethod
    def _count_in(body: bytes) -> int:
        (count,) = struct.unpack_from(">I", body, 8 + 255 * 4)
        return int(count)

    def place_of(self, name: bytes) -> int | None:
        """Return where an object begins in the pack; None where it is not in it."""
        body = self._index
        if not body:
            return None
        low = struct.unpack_from(">I", body, 8 + (name[0] - 1) * 4)[0] if name[0] else 0
        (high,) = struct.unpack_from(">I", body, 8 + name[0] * 4)
        count = self._count_in(body)
        high = min(high, count)
        while low < high:
            middle = (low + high) // 2
            here = body[1032 + middle * 20 : 1052 + middle * 20]
            if here == name:
                return self._offset(body, middle, count)
            low, high = (middle + 1, high) if here < name else (low, middle)
        return None

    @staticmethod
    def _offset(body: bytes, at: int, count: int) -> int:
        (place,) = struct.unpack_from(">I", body, 1032 + count * 24 + at * 4)
        if not place & 0x80000000:
            return int(place)
        large = 1032 + count * 28 + (place & 0x7FFFFFFF) * 8
        if large + 8 > len(body):
            raise NoObject("the index of a pack is damaged")
        return int(struct.unpack_from(">Q", body, large)[0])

    def read(self, place: int, repository: Repository) -> tuple[str, bytes]:
        """Return kind and content of the object at a place.

        Args:
            place: Where it begins.
            repository: Where bases of deltas are that are named.
        """
        deltas: list[bytes] = []
        while len(deltas) <= _MOST_DELTAS:
            kind, size, data_at, head = self._head(place)
            if kind == _OFFSET_DELTA:
                back, used = _backwards(head)
                deltas.append(self._body(data_at + used, size))
                place -= back
            elif kind == _NAMED_DELTA:
                deltas.append(self._body(data_at + 20, size))
                base = repository.base(head[:20].hex())
                return base[0], _changed(base[1], deltas)
            elif kind in _KINDS:
                return _KINDS[kind], _changed(self._body(data_at, size), deltas)
            else:
                break
        raise NoObject("an object of a pack is damaged")

    def _head(self, place: int) -> tuple[int, int, int, bytes]:
        """Return kind, size, where what follows begins, and the next bytes."""
        body = self._at(place, 64)
        size = shift = at = 0
        kind = (body[0] >> 4) & 7 if body else 0
        for at, byte in enumerate(body):  # noqa: B007
            size |= (byte & (0x7F if at else 0x0F)) << shift
            shift += 7 if at else 4
            if not byte & 0x80:
                break
        if size > MOST_BYTES:
            raise NoObject("an object is too large")
        return kind, size, place + at + 1, body[at + 1 :]

    def _at(self, place: int, count: int) -> bytes:
        if place <= 0:
            raise NoObject("the index of a pack is damaged")
        try:
            with open_regular(self._index_path.with_suffix(".pack")) as file:
                return os.pread(file.fileno(), count, place)
        except (OSError, OverflowError) as error:
            raise NoObject("a pack is missing") from error

    def _body(self, place: int, size: int) -> bytes:
        stream = zlib.decompressobj()
        made = bytearray()
        while not stream.eof and len(made) <= size:
            block = self._at(place, 1 << 16)
            if not block:
                break
            place += len(block)
            try:
                made += stream.decompress(block, size + 1 - len(made))
            except zlib.error as error:
                raise NoObject(f"an object is damaged: {error}") from error
            if stream.unconsumed_tail and len(made) > size:
                break
            place -= len(stream.unconsumed_tail)
        if len(made) != size:
            raise NoObject("an object is damaged: its size is another one")
        return bytes(made)


def _backwards(head: bytes) -> tuple[int, int]:
    """Return how far back a delta's base begins, and the bytes that say so."""
    value = -1
    for at, byte in enumerate(head):
        value = ((value + 1) << 7) | (byte & 0x7F)
        if not byte & 0x80:
            return value, at + 1
    raise NoObject("an object of a pack is damaged")


def _changed(body: bytes, deltas: list[bytes]) -> bytes:
    for delta in reversed(deltas):
        body = _applied(body, delta)
    return body


def _applied(base: bytes, delta: bytes) -> bytes:
    """Return what a delta makes of its base."""
    made = bytearray()
    try:
        base_size, at = _varint(delta, 0)
        size, at = _varint(delta, at)
        if base_size != len(base) or size > MOST_BYTES:
            raise NoObject("a delta does not fit its base")
        while at < len(delta):
            word = delta[at]
            at += 1
            if word & 0x80:
                start = count = 0
                for bit in range(7):
                    if word & (1 << bit):
                        if bit < 4:
                            start |= delta[at] << (8 * bit)
                        else:
                            count |= delta[at] << (8 * (bit - 4))
                        at += 1
                made += base[start : start + (count or 0x10000)]
            else:
                made += delta[at : at + word]
                at += word
            if not word or len(made) > size:
                raise NoObject("a delta is damaged")
    except IndexError as error:
        raise NoObject("a delta is cut off") from error
    if len(made) != size:
        raise NoObject("a delta is damaged")
    return bytes(made)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80 or shift > 63:
            return value, at
