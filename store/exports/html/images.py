"""Pictures of a session as ``data:`` URLs, recognised by their bytes alone."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from store.text.stored_json import as_dict, as_list

MOST_BYTES = 20_000_000
"""Bytes of all pictures of a page."""
MOST_PIXELS = 50_000_000
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture whose type and size are known from its bytes."""

    media: str
    width: int
    height: int
    content: bytes

    @property
    def address(self) -> str:
        """The picture as a ``data:`` URL."""
        return f"data:{self.media};base64,{base64.b64encode(self.content).decode()}"


class Pictures:
    """Takes pictures until a page has enough of them."""

    def __init__(self, largest: int) -> None:
        """Allow pictures up to a size in bytes; 0 allows none."""
        self._largest = largest
        self._left = MOST_BYTES if largest else 0

    def take(self, block: Mapping[str, Any]) -> Picture | None:
        """Return the picture in a file part or an image block; None where it has none."""
        encoded = _encoded(block)
        if not encoded or len(encoded) > self._largest * 4 // 3 + 4:
            return None
        try:
            content = base64.b64decode(_SPACE.sub("", encoded), validate=True)
        except (binascii.Error, ValueError):
            return None
        found = recognised(content)
        if found is None or len(content) > min(self._largest, self._left):
            return None
        self._left -= len(content)
        return found


def _encoded(block: Mapping[str, Any]) -> str:
    """Return the base64 text of a block, in the forms that agents use."""
    url = block.get("url") or as_dict(block.get("image_url")).get("url") or block.get("image_url")
    if isinstance(url, str) and url[:5].lower() == "data:":
        head, _, encoded = url.partition(",")
        return encoded if head.lower().endswith(";base64") else ""
    data = block.get("data") or as_dict(block.get("source")).get("data")
    return data if isinstance(data, str) else ""


def blocks_in(output: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the image and file blocks in what a tool gave back."""
    blocks = output if isinstance(output, list) else as_list(as_dict(output).get("content"))
    for block in blocks:
        if isinstance(block, dict) and block.get("type") in ("image", "file", "media"):
            yield block


def recognised(content: bytes) -> Picture | None:
    """Return a PNG, JPEG, GIF or WebP with its size; None for anything else."""
    media, size = "", None
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        media, size = "image/png", _unpacked(">II", content, 16)
    elif content.startswith((b"GIF87a", b"GIF89a")):
        media, size = "image/gif", _unpacked("<HH", content, 6)
    elif content.startswith(b"\xff\xd8\xff"):
        media, size = "image/jpeg", _jpeg_size(content)
    elif content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        media, size = "image/webp", _webp_size(content)
    if size is None or not 0 < size[0] * size[1] <= MOST_PIXELS:
        return None
    return Picture(media, size[0], size[1], content)


def _unpacked(form: str, content: bytes, at: int) -> tuple[int, int] | None:
    if len(content) < at + struct.calcsize(form):
        return None
    first, second = struct.unpack_from(form, content, at)
    return first, second


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """Return the size in the frame header: the segments before it are skipped."""
    at = 2
    while (head := _unpacked(">HH", content, at)) is not None:
        marker, length = head
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            size = _unpacked(">HH", content, at + 5)
            return (size[1], size[0]) if size is not None else None
        if marker < 0xFF01 or length < 2:
            return None
        at += 2 + length
    return None


def _webp_size(content: bytes) -> tuple[int, int] | None:
    kind = content[12:16]
    if kind == b"VP8 " and (size := _unpacked("<HH", content, 26)) is not None:
        return size[0] & 0x3FFF, size[1] & 0x3FFF
    if kind == b"VP8L" and len(content) >= 25:
        bits = int.from_bytes(content[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(content) >= 30:
        return (int.from_bytes(content[24:27], "little") + 1,
                int.from_bytes(content[27:30], "little") + 1)
    return None
