"""Trigrams: what the index knows of a text, and what it is asked for.

A trigram is three characters in a row of ``store.language.folding.index_form``. A text that
holds another holds all its trigrams. One or two characters, as many CJK words are, begin some
trigram of each text that holds them, since texts end with two spaces in the index.
"""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from store.language.folding import index_form

TERMS_VERSION = f"2 {unicodedata.unidata_version}"
"""Changes when texts give other trigrams: an index of another version is made again."""
_END = "  "
_BIG = sys.byteorder == "big"
_OTHER = 1 << 63
"""Marks the number of a trigram that is not all ASCII: then 21 bits a character, else 8."""
_GAP = "store.search.index.gap"
_GAPS = re.compile(rb"\xff+")


def _gap(error: UnicodeError) -> tuple[bytes, int]:
    """Encode characters outside ASCII as one byte each that no ASCII text has."""
    assert isinstance(error, UnicodeEncodeError)
    return b"\xff" * (error.end - error.start), error.end


codecs.register_error(_GAP, _gap)


def trigrams(forms: Sequence[str]) -> set[int]:
    """Return the trigrams of a document as numbers.

    Args:
        forms: Its texts in index form.
    """
    text = " ".join(forms) + _END
    codes = text.encode("ascii", _GAP)
    count = len(codes) - 2
    # Three shifted copies of the text, interleaved: each 4 bytes are one trigram.
    wide = bytearray(4 * count)
    first, second, third = (1, 2, 3) if _BIG else (2, 1, 0)
    wide[first::4], wide[second::4], wide[third::4] = codes[:count], codes[1:-1], codes[2:]
    numbers = memoryview(wide).cast("I")
    found = set(numbers)
    if b"\xff" in codes:
        _put_in_others(found, text, codes, array("I", numbers))
    return found


def _put_in_others(found: set[int], text: str, codes: bytes, numbers: array[int]) -> None:
    """Replace the trigrams with gaps by those of the text."""
    count = len(numbers)
    for gap in _GAPS.finditer(codes):
        for place in range(max(0, gap.start() - 2), min(gap.end(), count)):
            found.discard(numbers[place])
            one, two, three = map(ord, text[place : place + 3])
            found.add(_OTHER | one << 42 | two << 21 | three)


def term_of(number: int) -> bytes:
    """Return a trigram as the index file has it, in UTF-8."""
    if number < _OTHER:
        return number.to_bytes(3, "big")
    text = chr(number >> 42 & 0x1FFFFF) + chr(number >> 21 & 0x1FFFFF) + chr(number & 0x1FFFFF)
    return text.encode("utf-8", "surrogatepass")


class Needle(NamedTuple):
    """What the documents that may hold a text have.

    Attributes:
        terms: Terms that they all have.
        prefix: What one of their terms begins with; only for texts that are too short for
            ``terms``. Empty with ``terms``.
    """

    terms: tuple[bytes, ...]
    prefix: bytes = b""


def needle_of(text: str) -> Needle | None:
    """Return what to ask the index for; None if every document may hold the text.

    Args:
        text: A word or a phrase, as typed or in index form.
    """
    form = index_form(text)
    if not form:
        return None
    if len(form) < 3:
        return Needle((), form.encode("utf-8", "surrogatepass"))
    found = {form[place : place + 3] for place in range(len(form) - 2)}
    return Needle(tuple(sorted(each.encode("utf-8", "surrogatepass") for each in found)))
