"""Files of lines in another form than UTF-8, recognised by how they begin and read all the same."""

from __future__ import annotations

import codecs
import zlib
from typing import Protocol

from store.system.compression import unpacked_limit

_STEP = 1 << 24
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

    def decode(self, chunk: bytes) -> bytes:
        """Return what the next bytes of the file say, in UTF-8."""
        ...


def form_of(head: bytes) -> Form | None:
    """Return the form of a file by its first bytes, at least four where it has them.

    Returns:
        None for UTF-8, and for what nothing is known of.
    """
    if head.startswith(b"\x1f\x8b\x08"):
        return _Packed()
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


class _Packed:
    """A file that gzip compressed; what is in it is unpacked up to a limit."""

    name = "compressed by gzip"
    reason = "compressed by gzip, where plain text belongs; read all the same"

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._packed = self._size = 0
        self._broken = False

    def decode(self, chunk: bytes) -> bytes:
        parts: list[bytes] = []
        more = False
        self._packed += len(chunk)
        limit = unpacked_limit(self._packed)
        while (chunk or more) and not self._broken:
            if self._unpacker.eof:
                chunk = chunk.lstrip(b"\0")
                self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                part = self._unpacker.decompress(chunk, _STEP)
            except zlib.error as error:
                self._end(f"compressed file is damaged: {error}")
                break
            parts.append(part)
            more = len(part) == _STEP
            self._size += len(part)
            chunk = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            if self._size > limit:
                most = limit >> 20
                self._end(f"compressed file unpacks to more than {most} MiB; the rest is not read")
        return b"".join(parts)

    def _end(self, problem: str) -> None:
        self._broken = True
        self.problems.append(problem)
