"""Files of lines in another form than UTF-8, recognised by how they begin and read all the same."""

from __future__ import annotations

import codecs
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

from store.system.compression import unpacked_limit

_STEP = 1 << 24
_PIECE = 1024
"""Bytes of zstd that are unpacked at once: a block of 3 bytes can stand for 128 KiB."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with a byte order mark"),
)
_BEGINNINGS = b"{[ \t\r\n"
"""What a file of JSON may begin with."""


class Form(Protocol):
    """Turns a file's bytes into UTF-8, as they come.

    Attributes:
        name: What the file is.
        reason: What is to be reported of the file.
        problems: What could not be turned; whoever reports it takes it out.
    """

    name: str
    reason: str
    problems: list[str]

    @property
    def is_cut(self) -> bool:
        """Whether the file cannot end here."""
        ...

    def decode(self, chunk: bytes) -> bytes:
        """Return what the next bytes of the file say, in UTF-8."""
        ...


def form_of(head: bytes) -> Form | None:
    """Return the form of a file by its first bytes, at least four where it has them.

    Returns:
        None for UTF-8, and for what nothing is known of.
    """
    if head.startswith(b"\x1f\x8b\x08"):
        return _Gzip()
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _Zstandard()
    for mark, encoding, name in _MARKS:
        if head.startswith(mark):
            return _Encoded(encoding, name)
    if len(head) >= 4:
        first, second, third, fourth = head[:4]
        if second == fourth == 0 != third and first in _BEGINNINGS:
            return _Encoded("utf-16-le", "UTF-16 without a byte order mark")
        if first == third == 0 != fourth and second in _BEGINNINGS:
            return _Encoded("utf-16-be", "UTF-16 without a byte order mark")
    return None


class _Encoded:
    """Text in another encoding."""

    is_cut = False

    def __init__(self, encoding: str, name: str) -> None:
        self.name = name
        self.reason = f"{name}, where plain UTF-8 belongs; read all the same"
        self.problems: list[str] = []
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._begun = False

    def decode(self, chunk: bytes) -> bytes:
        text = self._decoder.decode(chunk)
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        return text.encode("utf-8", "surrogatepass")


class _Packed(ABC):
    """A compressed file; what is in it is unpacked up to a limit."""

    name: str

    def __init__(self) -> None:
        self.reason = f"{self.name}, where plain text belongs; read all the same"
        self.problems: list[str] = []
        self._packed = self._size = 0
        self._broken = False

    @property
    @abstractmethod
    def is_cut(self) -> bool:
        """Whether the end of what was compressed has not come."""

    @abstractmethod
    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what the next bytes hold, in pieces."""

    def decode(self, chunk: bytes) -> bytes:
        parts: list[bytes] = []
        self._packed += len(chunk)
        if self._broken:
            return b""
        limit = unpacked_limit(self._packed)
        try:
            for part in self._unpack(chunk):
                parts.append(part)
                self._size += len(part)
                if self._size > limit:
                    most = limit >> 20
                    self._end(
                        f"compressed file unpacks to more than {most} MiB; the rest is not read")
                    break
        except _Damaged as error:
            self._end(f"compressed file is damaged: {error}")
        return b"".join(parts)

    def _end(self, problem: str) -> None:
        self._broken = True
        self.problems.append(problem)


class _Damaged(Exception):
    """Bytes that cannot be unpacked."""


class _Gzip(_Packed):
    """A file that gzip compressed."""

    name = "compressed by gzip"

    def __init__(self) -> None:
        super().__init__()
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def is_cut(self) -> bool:
        return not self._broken and not self._unpacker.eof

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        more = False
        while chunk or more:
            if self._unpacker.eof:
                chunk = chunk.lstrip(b"\0")
                if not chunk:
                    return
                self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                part = self._unpacker.decompress(chunk, _STEP)
            except zlib.error as error:
                raise _Damaged(str(error)) from error
            more = len(part) == _STEP
            chunk = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            yield part


class _Zstandard(_Packed):
    """A file that zstd compressed."""

    name = "compressed by zstd"

    def __init__(self) -> None:
        # Imported here: few files are compressed.
        import zstandard

        super().__init__()
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._unpacker = self._new()

    @property
    def is_cut(self) -> bool:
        return not self._broken and not self._unpacker.eof

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), _PIECE):
            piece = chunk[start : start + _PIECE]
            while piece:
                if self._unpacker.eof:
                    self._unpacker = self._new()
                try:
                    part = self._unpacker.decompress(piece)
                except (self._error, MemoryError) as error:
                    raise _Damaged(str(error)) from error
                piece = self._unpacker.unused_data
                yield part
