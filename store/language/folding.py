"""Text without regard to case, accents and width, with the way back to the original."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

_OTHER_LETTERS = str.maketrans({
    "ı": "i", "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "æ": "ae", "œ": "oe",
})  # fmt: skip
"""Letters with a stroke or joined ones, which Unicode does not take apart."""
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
)
_UNSEEN = "\u00ad\u034f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
DROPPED = _MARKS + _UNSEEN
"""Ranges of characters that are left out, as in a class of a regular expression."""
_DROPPED = re.compile(f"[{DROPPED}]")
_RUN = re.compile("[^\x00-\x7f]+")
_CLUSTER = re.compile(
    "[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|.[\u3099\u309a\uff9e\uff9f]?", re.DOTALL
)
"""Characters that belong together: a Hangul syllable in pieces, a kana and its sound mark."""
_JOINING = re.compile("[\u1100-\u11ff\u3099\u309a\uff9e\uff9f]")
_SAMPLE, _MUCH = 2_000, 60
"""With so many more bytes than characters at its start, much of a text is outside ASCII."""
_LONGEST_KEPT = 16
"""Characters of a run whose folded form is kept for the next time."""


class Folded:
    """A text, the same folded, and which piece of the one is which of the other.

    Attributes:
        original: As it was given.
        text: As ``fold`` returns it.
    """

    __slots__ = ("_runs", "original", "text")

    def __init__(self, original: str) -> None:
        """Fold a text."""
        self.original = original
        self.text = fold(original)
        self._runs: tuple[list[int], list[tuple[int, int, str]]] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the piece of the original that a piece of the folded text comes from.

        Args:
            start: Where it starts in the folded text.
            end: Where it ends.
        """
        if self.text.isascii() and self.original.isascii():
            return start, end
        first = self._place(start)[0]
        if end <= start:
            return first, first
        last = self._place(end - 1)[1]
        while last < len(self.original) and _DROPPED.match(self.original, last):
            last += 1  # A mark on the last letter.
        return first, last

    def _place(self, at: int) -> tuple[int, int]:
        """Return the piece of the original that became one character of the folded text."""
        if self._runs is None:
            self._runs = _runs(self.original)
        starts, runs = self._runs
        number = bisect_right(starts, at) - 1
        if number < 0:
            return at, at + 1
        folded_start, start, run = runs[number]
        inside = at - folded_start
        for cluster in _CLUSTER.finditer(run):
            length = len(_folded(cluster[0]))
            if inside < length:
                return start + cluster.start(), start + cluster.end()
            inside -= length
        place = start + len(run) + inside
        return place, place + 1


def fold(text: str) -> str:
    """Return a text without differences of case, accents, width and invisible characters.

    ``ß`` is ``ss``, ``ﬁ`` is ``fi``, all kinds of i are ``i``. Marks that make another letter
    of one, as in Japanese, Hindi or Thai, stay. What is folded folds to itself.
    """
    if text.isascii():
        return text.lower()
    # A table is quicker where much of the text is outside ASCII, runs where little is.
    sample = text[:_SAMPLE]
    much = len(sample.encode("utf-8", "surrogatepass")) > len(sample) + _MUCH
    if much and _JOINING.search(text) is None:
        return text.translate(_TABLE)
    return _RUN.sub(_fold_run, text).lower()


def index_form(text: str) -> str:
    """Return a text as an index holds it: folded, without ``-`` and ``_``, single spaces.

    Wherever a word or a phrase is found in a text, its own index form is in the text's.
    """
    return " ".join(fold(text).replace("-", "").replace("_", "").split())


def _fold_run(run: re.Match[str]) -> str:
    return _folded_short(run[0]) if len(run[0]) <= _LONGEST_KEPT else _folded_run(run[0])


def _folded_run(run: str) -> str:
    return "".join([_folded(cluster) for cluster in _CLUSTER.findall(run)])


_folded_short = lru_cache(maxsize=10_000)(_folded_run)


@lru_cache(maxsize=20_000)
def _folded(cluster: str) -> str:
    text = unicodedata.normalize("NFKD", cluster.lower()).casefold()
    text = _DROPPED.sub("", unicodedata.normalize("NFKD", text)).translate(_OTHER_LETTERS)
    return unicodedata.normalize("NFC", text).lower()


class _Table(dict[int, str]):
    """What each character becomes; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded(chr(code))
        return folded


_TABLE = _Table()


def _runs(original: str) -> tuple[list[int], list[tuple[int, int, str]]]:
    """Return the runs outside ASCII: where each starts when folded, and it as it was."""
    starts: list[int] = []
    runs: list[tuple[int, int, str]] = []
    shift = 0
    for run in _RUN.finditer(original):
        folded_start = run.start() + shift
        starts.append(folded_start)
        runs.append((folded_start, run.start(), run[0]))
        shift += len(_folded_run(run[0])) - len(run[0])
    return starts, runs
