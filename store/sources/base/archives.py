"""Reads files of an archive, a zip or the folder made of it, in pieces and from any place.

A zip is never unpacked to disk. Of a compressed file the state of the unpacker is kept at each
mebibyte, so that a place far behind is read without all that is before it.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.file_forms import form_of
from store.sources.base.growing import entries_of
from store.sources.base.protocol import FileStamp
from store.system.paths import open_regular

STEP = 1 << 20
_MOST_FILES = 100_000
_DEEPEST = 6
_RATIO = 200
_LEAST, _MOST = 64 << 20, 4 << 30
_LOCAL_HEADER = 30


class ArchiveError(StoreError):
    """An archive, or a file of it, that cannot be read; the message says why."""


class Archive(ABC):
    """Files by name; a name has slashes and never climbs out.

    Attributes:
        path: The zip or folder.
    """

    path: str

    @abstractmethod
    def names(self) -> list[str]:
        """Return the files that are there now, sorted."""

    @abstractmethod
    def folders(self) -> list[str]:
        """Return the paths that move where a file comes or goes."""

    @abstractmethod
    def source_of(self, name: str) -> str:
        """Return the path of the file that a name is read from, for people."""

    @abstractmethod
    def chunks(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes of a file from a place on.

        Raises:
            ArchiveError: It is encrypted, damaged or unpacks to far more than it should.
            OSError: It cannot be read.
        """

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return bytes of a file; fewer where it ends before.

        Args:
            name: The file.
            start: The first byte.
            size: How many.

        Raises:
            ArchiveError: As for ``chunks``.
            OSError: It cannot be read.
        """
        found = bytearray()
        for chunk in self.chunks(name, start):
            found += chunk[: size - len(found)]
            if len(found) >= size:
                break
        return bytes(found)


class FolderArchive(Archive):
    """The files of a folder; folders that links lead to are left out."""

    def __init__(self, path: str) -> None:
        """Take a folder; it is listed when it is asked for names."""
        self.path = path
        self._names: list[str] = []
        self._stamps: list[FileStamp] = []

    def names(self) -> list[str]:
        """Return the files that are there now, sorted; listed anew when a folder moved."""
        if not self._stamps or any(FileStamp.now(each.path) != each for each in self._stamps):
            self._stamps = []
            self._names = sorted(islice(self._below(self.path, "", _DEEPEST), _MOST_FILES))
        return self._names

    def folders(self) -> list[str]:
        """Return the folders that were listed."""
        return [each.path for each in self._stamps]

    def _below(self, folder: str, above: str, depth: int) -> Iterator[str]:
        self._stamps.append(FileStamp.now(folder))
        for entry in entries_of(folder):
            if entry.is_dir(follow_symlinks=False):
                if depth and not entry.name.startswith("."):
                    yield from self._below(entry.path, f"{above}{entry.name}/", depth - 1)
            else:
                yield above + entry.name

    def source_of(self, name: str) -> str:
        """Return the file's path."""
        return os.path.join(self.path, *name.split("/"))

    def chunks(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes of a file from a place on."""
        with open_regular(self.source_of(name)) as file:
            form = form_of(file.read(8) or b"")
            if form is not None and not form.name.startswith("UTF-8"):
                raise ArchiveError(f"{name} is {form.name}; make plain UTF-8 of it")
            file.seek(start)
            yield from iter(lambda: file.read(STEP), b"")


class _Mark(NamedTuple):
    """Where unpacking can continue: bytes unpacked, bytes taken, and the unpacker's state."""

    out: int
    taken: int
    unpacker: Any


class ZipArchive(Archive):
    """The files of a zip."""

    def __init__(self, path: str) -> None:
        """Read a zip's list of files.

        Raises:
            ArchiveError: It is no zip, or it is damaged.
            OSError: It cannot be read.
        """
        self.path = path
        self._marks: dict[str, list[_Mark]] = {}
        try:
            with open_regular(path) as file, zipfile.ZipFile(file) as listed:
                infos = listed.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
            raise ArchiveError(f"is no whole zip: {error}") from error
        if len(infos) > _MOST_FILES:
            raise ArchiveError(f"holds more than {_MOST_FILES:,} files")
        self._infos = {info.filename: info for info in infos if not info.is_dir()}
        self.outside = sorted(filter(_climbs, self._infos))
        self._names = sorted(name for name in self._infos if not _climbs(name))

    def names(self) -> list[str]:
        """Return the files, sorted."""
        return self._names

    def folders(self) -> list[str]:
        """Return the zip itself."""
        return [self.path]

    def source_of(self, name: str) -> str:
        """Return the zip's path."""
        return self.path

    def chunks(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield the unpacked bytes of a file from a place on."""
        info = self._infos[name]
        if info.flag_bits & 1:
            raise ArchiveError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{name} is compressed in a way that is not known")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise ArchiveError(f"{name} is a link")
        with open_regular(self.path) as file:
            file.seek(info.header_offset)
            head = file.read(_LOCAL_HEADER) or b""
            if len(head) < _LOCAL_HEADER or head[:4] != b"PK\x03\x04":
                raise ArchiveError(f"{name} is damaged")
            beside = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            begin = info.header_offset + _LOCAL_HEADER + beside
            if info.compress_type == zipfile.ZIP_STORED:
                file.seek(begin + start)
                left = info.compress_size - start
                while left > 0 and (piece := file.read(min(STEP, left))):
                    left -= len(piece)
                    yield piece
            else:
                yield from self._unpacked(file, begin, info, start)

    def _unpacked(
        self, file: Any, begin: int, info: zipfile.ZipInfo, start: int
    ) -> Iterator[bytes]:
        name, size = info.filename, info.compress_size
        limit = min(_MOST, max(_LEAST, size * _RATIO))
        marks = self._marks.setdefault(name, [])
        mark = next((each for each in reversed(marks) if each.out <= start), None)
        mark = mark or _Mark(0, 0, zlib.decompressobj(-zlib.MAX_WBITS))
        out, taken, unpacker = mark.out, mark.taken, mark.unpacker.copy()
        file.seek(begin + taken)
        tail, fed = b"", taken
        while not unpacker.eof:
            if not tail:
                tail = file.read(min(STEP // 4, size - fed)) or b""
                fed += len(tail)
            try:
                piece = unpacker.decompress(tail, STEP)
            except zlib.error as error:
                raise ArchiveError(f"{name} is damaged: {error}") from error
            if not piece and not tail:
                raise ArchiveError(f"{name} ends too early")
            tail = unpacker.unconsumed_tail
            out += len(piece)
            if out > limit:
                raise ArchiveError(f"{name} unpacks to more than {limit >> 20:,} MiB")
            if out - (marks[-1].out if marks else 0) >= STEP:
                marks.append(_Mark(out, fed - len(tail), unpacker.copy()))
            if out > start:
                yield piece[max(0, start - (out - len(piece))):]


def _climbs(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in path.parts[0]
