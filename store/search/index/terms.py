"""Trigrams: what the index knows of a text, and what it is asked for.

A trigram is three UTF-16 code units in a row of ``store.language.folding.index_form``. A text
that holds another holds all its trigrams. One or two characters, as many CJK words are, begin
some trigram of each text that holds them, since texts end with two spaces in the index.
"""

from __future__ import annotations

import sys
import unicodedata
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from store.language.folding import index_form

TERMS_VERSION = f"1 {unicodedata.unidata_version}"
"""Changes when texts give other trigrams: an index of another version is made again."""
_END = "  "
_BIG = sys.byteorder == "big"


def trigrams(forms: Sequence[str]) -> set[int]:
    """Return the trigrams of a document as numbers of 48 bits.

    Args:
        forms: Its texts in index form; no trigram of the query spans two of them.
    """
    text = " ".join(forms) + _END
    codes = text.encode("utf-16-le", "surrogatepass")
    count = len(codes) // 2 - 2
    # Three shifted copies of the text, interleaved: each 8 bytes are one trigram.
    wide = bytearray(8 * count)
    ascii_only = text.isascii()
    for place, shift in ((4, 0), (2, 2), (0, 4)):
        wide[place::8] = codes[shift : shift + 2 * count : 2]
        if not ascii_only:
            wide[place + 1 :: 8] = codes[shift + 1 : shift + 1 + 2 * count : 2]
    numbers = array("Q", bytes(wide))
    if _BIG:
        numbers.byteswap()
    return set(numbers)


def term_of(number: int) -> bytes:
    """Return a trigram as the index file has it, in UTF-8."""
    units = number.to_bytes(6, "big").decode("utf-16-be", "surrogatepass")
    return units.encode("utf-8", "surrogatepass")


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
    units = len(form.encode("utf-16-le", "surrogatepass")) // 2
    if not units:
        return None
    if units < 3:
        return Needle((), form.encode("utf-8", "surrogatepass"))
    codes = form.encode("utf-16-be", "surrogatepass")
    numbers = {
        int.from_bytes(codes[place : place + 6], "big") for place in range(0, len(codes) - 4, 2)
    }
    return Needle(tuple(sorted(map(term_of, numbers))))
