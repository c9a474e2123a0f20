"""Finds secrets in a text in one pass, also where escapes or colour codes stand within them.

The words of all rules are looked for at once (Aho-Corasick); a rule's pattern is tried only where
one of its words was found. A text with escapes is searched a second time as what it says once
they are decoded, and each find is taken back to its place in the text as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from store.sharing.rules import Rule, Secret

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick


class Words:
    """The words of some rules, ready to be looked for.

    Attributes:
        rules: In their order, the first one counts of two whose secrets overlap.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Prepare the search; rules that have a word in common are tried in their order."""
        self.rules = rules
        self._exact = self._searcher(rules, folded=False)
        self._folded = self._searcher(rules, folded=True)

    def _searcher(
        self, rules: Sequence[Rule], *, folded: bool
    ) -> tuple[BytesAhoCorasick, list[list[int]]]:
        from ahocorasick_rs import BytesAhoCorasick, Implementation

        owners: dict[bytes, list[int]] = {}
        for number, rule in enumerate(rules):
            if rule.folded == folded:
                for word in dict.fromkeys(rule.words):
                    owners.setdefault(word.encode("ascii"), []).append(number)
        searcher = BytesAhoCorasick(list(owners), implementation=Implementation.DFA)
        return searcher, list(owners.values())

    def places(self, text: str) -> dict[int, list[int]]:
        """Return by the number of a rule where its words begin, in order."""
        letters = text.encode("ascii", "replace")  # A byte for each character.
        found: dict[int, list[int]] = {}
        for (searcher, owners), among in (
            (self._exact, letters), (self._folded, letters.lower())
        ):
            for word, start, _end in searcher.find_matches_as_indexes(among, overlapping=True):
                for rule in owners[word]:
                    found.setdefault(rule, []).append(start)
        for places in found.values():
            places.sort()
        return found


@lru_cache(maxsize=8)
def words_of(rules: tuple[Rule, ...]) -> Words:
    """Return the words of some rules; to look them up takes longer than to search a short text."""
    return Words(rules)


def secrets_in(text: str, words: Words) -> list[Secret]:
    """Return the secrets in a text, in their order; none overlaps another.

    Args:
        text: The text.
        words: Those of the rules.
    """
    found = _found(text, words)
    for view in _views(text):
        more = [view.in_source(one) for one in _found(view.text, words)]
        if more:
            found = _joined([*found, *more])
    # A backslash at the end of a secret belongs to the quote behind it.
    return [
        one._replace(end=one.start + len(text[one.start : one.end].rstrip("\\")))
        if text[one.end - 1] == "\\" else one for one in found
    ]


def _found(text: str, words: Words) -> list[Secret]:
    places = words.places(text)
    found: list[Secret] = []
    for number in sorted(places):
        secrets = words.rules[number].secrets(text, places[number])
        more = [one for one in secrets if _is_free(found, one)]
        if more:
            found = sorted([*found, *more], key=_start_of)
    return found


def _start_of(secret: Secret) -> int:
    return secret.start


def _is_free(found: list[Secret], secret: Secret) -> bool:
    """Return whether a secret overlaps none of those that were found, which are in order."""
    before = bisect_left(found, secret.end, key=_start_of) - 1
    return before < 0 or found[before].end <= secret.start


def _joined(found: Iterable[Secret]) -> list[Secret]:
    """Return secrets in order, those that overlap as one with the kind of the longest."""
    joined: list[Secret] = []
    for secret in sorted(found, key=lambda one: (one.start, -one.end)):
        if joined and secret.start < joined[-1].end:
            last = joined[-1]
            longer = secret.end - secret.start > last.end - last.start
            joined[-1] = Secret(
                secret.kind if longer else last.kind, last.start, max(last.end, secret.end))
        else:
            joined.append(secret)
    return joined


class View:
    """A text with its escapes decoded, and where each piece of it comes from.

    Attributes:
        text: What it says.
    """

    def __init__(self, source: str, escapes: Iterable[tuple[int, int, str]]) -> None:
        """Replace some pieces of a text.

        Args:
            source: The text, or what another view says.
            escapes: Start, end and what stands for it, in order.
        """
        pieces: list[str] = []
        self._starts, self._sources = [0], [0]
        done = length = 0
        for start, end, meant in escapes:
            pieces += [source[done:start], meant]
            length += start - done
            # Within the piece, everything is at its start; behind it, the source goes on.
            self._starts.append(length)
            self._sources.append(start)
            length += len(meant)
            self._starts.append(length)
            self._sources.append(end)
            done = end
        pieces.append(source[done:])
        self.text = "".join(pieces)
        self._below: View | None = None

    def above(self, below: View | None) -> View:
        """Return this view, whose source is what another view says."""
        self._below = below
        return self

    def in_source(self, secret: Secret) -> Secret:
        """Return a secret of this view with its place in the text itself."""
        placed = Secret(secret.kind, self._start(secret.start), self._end(secret.end))
        return self._below.in_source(placed) if self._below is not None else placed

    def _start(self, at: int) -> int:
        piece = bisect_right(self._starts, at) - 1
        if piece % 2:
            return self._sources[piece]
        return self._sources[piece] + at - self._starts[piece]

    def _end(self, at: int) -> int:
        """Return where what ends before an offset ends: behind an escape, never within one."""
        piece = bisect_right(self._starts, at - 1) - 1
        if piece % 2:
            return self._sources[piece + 1]
        return self._sources[piece] + at - self._starts[piece]


_CODES = r"(?:\[[0-9;:?]{0,30}[ -/]{0,2}[@-~]|\][^\x07\x1b\n\\]{0,300}(?:\x07|\x1b\\)|[()][AB0])"
# Each begins with a character that is looked for quickly.
_COLOURS = re.compile(rf"\x1b{_CODES}")
_BACKSLASHES = re.compile(
    rf"\\\\*(?:(?:u001[bB]|x1[bB]|033|e(?=\[)){_CODES}"
    r"|u(?P<code>[0-9a-fA-F]{4})|(?P<letter>[nrt])|(?P<sign>[\"'/]))")
_UNSEEN = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")
_MEANT = {"n": "\n", "r": "\r", "t": "\t"}
_PERCENT = re.compile(r"%(?:25){0,2}([2-7][0-9A-Fa-f])")


def _views(text: str) -> Iterator[View]:
    """Yield what a text says without escapes, where it has any; then without those of URLs."""
    view: View | None = None
    if escapes := _escapes(text):
        view = View(text, escapes)
        yield view
    said = text if view is None else view.text
    if "%" in said:
        signs = [(one.start(), one.end(), chr(int(one[1], 16))) for one in _PERCENT.finditer(said)]
        if signs:
            yield View(said, signs).above(view)


def _escapes(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and meaning of each escape, in order; none overlaps another."""
    found: list[tuple[int, int, str]] = []
    if "\\" in text:
        found += [(one.start(), one.end(), _meant(one)) for one in _BACKSLASHES.finditer(text)]
    if "\x1b" in text:
        colours = [(one.start(), one.end(), "") for one in _COLOURS.finditer(text)]
        found = _apart([*found, *colours]) if found else colours
    if not text.isascii() and (unseen := [
        (one.start(), one.end(), "") for one in _UNSEEN.finditer(text)
    ]):
        found = _apart([*found, *unseen])
    return found


def _apart(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for one in sorted(found):
        if not kept or kept[-1][1] <= one[0]:
            kept.append(one)
    return kept


def _meant(match: re.Match[str]) -> str:
    if match["code"]:
        code = int(match["code"], 16)
        return chr(code) if not 0xD800 <= code < 0xE000 else "?"
    return _MEANT[match["letter"]] if match["letter"] else match["sign"] or ""
