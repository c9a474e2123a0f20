"""Lists of documents as the index file has them.

A block has up to ``CAPACITY`` documents, numbered from 0, the newest. For each term it has
the documents with the term: a single one as an integer; many as a bitmap, the lowest bit of
the first byte for document 0; others as the distances between them, one byte each, or 255 and
two bytes where it is 255 or more. A list is shorter than the block's bitmap, so the length
tells which of the two it is. In memory a set of documents is an ``int`` with their bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from operator import sub

CAPACITY = 4096
_FEW = 100
"""From so many documents on, a set is made faster by its digits than byte by byte."""
Body = int | bytes


def encoded(places: Sequence[int], size: int) -> Body:
    """Return a list of documents in the form of the file.

    Args:
        places: Their numbers, ascending, at least one.
        size: Number of documents of the block.
    """
    if len(places) == 1:
        return places[0]
    width = bitmap_width(size)
    if len(places) < width:
        listed = _distances(places)
        if len(listed) < width:
            return listed
    return bits_of(places, width).to_bytes(width, "little")


def encoded_bits(bits: int, size: int) -> Body | None:
    """Return a set of documents in the form of the file; None if it is empty.

    Args:
        bits: The documents.
        size: Number of documents of the block.
    """
    if not bits:
        return None
    if bits.bit_count() < bitmap_width(size):
        return encoded(list(places_of(bits)), size)
    return bits.to_bytes(bitmap_width(size), "little")


def decoded(body: Body, size: int) -> int:
    """Return a list of the file as a set of documents.

    Args:
        body: As ``encoded`` returned it.
        size: Number of documents of the block.
    """
    if isinstance(body, int):
        return 1 << body
    width = bitmap_width(size)
    if len(body) == width:
        return int.from_bytes(body, "little")
    return bits_of(_places(body), width)


def bitmap_width(size: int) -> int:
    """Return how many bytes the bitmap of a block with so many documents has."""
    return (size + 7) >> 3


def bits_of(places: Sequence[int], width: int) -> int:
    """Return numbers of documents as a set of them.

    Args:
        places: The numbers.
        width: Bytes of the block's bitmap.
    """
    if len(places) < _FEW:
        bitmap = bytearray(width)
        for place in places:
            bitmap[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bitmap, "little")
    digits = bytearray(b"0") * (8 * width)
    deque(map(digits.__setitem__, places, repeat(ord("1"))), maxlen=0)
    return int(digits[::-1], 2)


def places_of(bits: int) -> Iterator[int]:
    """Yield the numbers of the documents in a set, ascending."""
    written = bin(bits)[:1:-1]
    at = written.find("1")
    while at >= 0:
        yield at
        at = written.find("1", at + 1)


def _distances(places: Sequence[int]) -> bytes:
    try:
        listed = bytes((places[0], *map(sub, places[1:], places)))
    except ValueError:
        pass
    else:
        if 255 not in listed:
            return listed
    found = bytearray()
    last = 0
    for place in places:
        distance = place - last
        last = place
        if distance < 255:
            found.append(distance)
        else:
            found.append(255)
            found += distance.to_bytes(2, "little")
    return bytes(found)


def _places(listed: bytes) -> list[int]:
    if 255 not in listed:
        return list(accumulate(listed))
    places: list[int] = []
    last = at = 0
    while at < len(listed):
        distance = listed[at]
        at += 1
        if distance == 255:
            distance = int.from_bytes(listed[at : at + 2], "little")
            at += 2
        last += distance
        places.append(last)
    return places
