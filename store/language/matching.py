"""Finds the terms of a query in texts.

A word is found anywhere, also inside identifiers and paths, and without regard to case and
accents. A ``-`` or ``_`` between its letters makes no difference: ``retryloop`` and
``retry-loop`` find ``RetryLoop`` and ``retry_loop``. A phrase is found as it is, but for
case, accents and the kind of white space. A regular expression is compared with the original
text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from store.language.folding import Folded, fold, index_form
from store.language.patterns import MOST_MATCHES, BoundedPattern, compiled
from store.language.query import Span, Term

__all__ = ["Folded", "Matcher", "TermMatcher", "fold", "index_form", "index_needle", "matcher"]

_SEPARATED = re.compile(r"(?<=[^\W_])[-_]{1,2}(?=[^\W_])")


class TermMatcher:
    """Finds one term. Whether it is negated makes no difference here.

    Attributes:
        term: What to find.
    """

    def __init__(self, term: Term) -> None:
        """Prepare to find a term."""
        self.term = term
        self._bounded: BoundedPattern | None = None
        self._needle = self._squeezed = ""
        if term.kind == "regex":
            self._bounded = compiled(term.text, term.flags)
        else:
            self._needle = " ".join(fold(term.text).split())
            self._squeezed = _squeezed(self._needle)

    @property
    def gave_up(self) -> bool:
        """Whether a regular expression took too long on some text."""
        return self._bounded is not None and self._bounded.gave_up

    def found(self, text: Folded) -> bool:
        """Return whether the term is in a text."""
        if self._bounded is not None:
            return bool(self._bounded.spans(text.original, 1))
        if self._needle in text.text:
            return True
        pattern = self._pattern(text.text)
        return pattern is not None and pattern.search(text.text) is not None

    def spans(self, text: Folded, most: int = MOST_MATCHES) -> list[Span]:
        """Return where the term is, as pieces of the original text.

        Args:
            text: Where to look.
            most: How many pieces at most; the first ones.
        """
        if self._bounded is not None:
            return self._bounded.spans(text.original, most)
        if not self._needle:
            return []
        pattern = self._pattern(text.text)
        found: list[Span] = []
        if pattern is not None:
            for match in pattern.finditer(text.text):
                found.append(text.span(*match.span()))
                if len(found) >= most:
                    break
            return found
        at = text.text.find(self._needle)
        while at >= 0 and len(found) < most:
            end = at + len(self._needle)
            found.append(text.span(at, end))
            at = text.text.find(self._needle, end)
        return found

    def _pattern(self, text: str) -> re.Pattern[str] | None:
        """Return what finds the term where it is written in another way, if it may be."""
        if self.term.kind == "phrase":
            if " " not in self._needle:
                return None
            return _phrase_pattern(self._needle)
        if ("-" not in text and "_" not in text and self._needle == self._squeezed) or (
            self._squeezed not in _squeezed(text)
        ):
            return None
        return _word_pattern(self._needle)


class Matcher:
    """Finds all terms of a query in one text.

    Attributes:
        terms: The matcher of each term.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        """Prepare to find terms."""
        self.terms = tuple(map(TermMatcher, terms))

    @property
    def gave_up(self) -> bool:
        """Whether a regular expression took too long on some text."""
        return any(each.gave_up for each in self.terms)

    def spans(self, text: str, most: int = MOST_MATCHES) -> list[Span] | None:
        """Return where the terms are, in order; None where the text does not match.

        It matches where every term is in it and no negated one is.

        Args:
            text: Where to look.
            most: How many pieces of each term at most.
        """
        folded = Folded(text)
        if any(each.found(folded) == each.term.negated for each in self.terms):
            return None
        return sorted({
            span for each in self.terms if not each.term.negated
            for span in each.spans(folded, most)
        })  # fmt: skip


def matcher(terms: Sequence[Term]) -> Matcher:
    """Return what finds the terms of a query in a text."""
    return Matcher(terms)


def index_needle(term: Term) -> str | None:
    """Return what the index form of each text with the term holds; None where that is unknown."""
    return index_form(term.text) if term.kind != "regex" else None


def _squeezed(text: str) -> str:
    return text.replace("-", "").replace("_", "")


@lru_cache(maxsize=256)
def _phrase_pattern(needle: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, needle.split(" "))))


@lru_cache(maxsize=256)
def _word_pattern(needle: str) -> re.Pattern[str]:
    """Return a pattern of a folded word in which ``-`` and ``_`` may be written or left out."""
    pieces = _SEPARATED.split(needle)
    separators = _SEPARATED.findall(needle)
    written = _loose(pieces[0])
    for before, separator, piece in zip(pieces, separators, pieces[1:], strict=False):
        free = _is_free(before[-1], piece[0])
        written += ("[-_]{0,2}" if free else re.escape(separator)) + _loose(piece)
    return re.compile(written)


def _loose(piece: str) -> str:
    found = re.escape(piece[:1])
    for one, other in zip(piece, piece[1:], strict=False):
        found += ("[-_]{0,2}" if _is_free(one, other) else "") + re.escape(other)
    return found


def _is_free(one: str, other: str) -> bool:
    """Return whether a separator may be between two characters, or be left out."""
    return one.isalnum() and other.isalnum() and not (one.isdigit() and other.isdigit())
