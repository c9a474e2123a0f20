"""What a query may go on with where the cursor is: fields, and values of a field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from store.language.fields import BY_ANY_NAME, FIELDS, Field
from store.language.folding import fold
from store.language.query import Span, quoted

MOST = 50
"""Completions that are offered at once."""
SHORTEST_WORD = 2
"""Letters of a word for which fields are offered."""
_SHORTEST_STATE = 3

_VALUE = r'(?:[<>]=?|=)?(?:"(?:[^"]|"")*"?|[^\s,"]+)'
_PIECE = re.compile(rf'-?(?:([A-Za-z]{{2,20}}):)?((?:{_VALUE})?(?:,(?:{_VALUE})?)*)')
_ONE_VALUE = re.compile(r'([<>]=?|=)?("(?:[^"]|"")*"?|[^\s,"]*)')
_WORD = re.compile("[A-Za-z]*")


class Known(NamedTuple):
    """A value that a field has in the store.

    Attributes:
        value: As it is written in a query, without quotes.
        note: Shown beside it, such as how many sessions have it.
    """

    value: str
    note: str = ""


KnownValues = Mapping[str, Sequence[Known]]
"""The values of each field, in the order in which they are offered."""


class Completion(NamedTuple):
    """One way to go on.

    Attributes:
        span: The piece of the query that is replaced.
        text: What takes its place.
        label: What is shown for it.
        help: What it means.
        ends: Whether the piece of the query is complete with it, so that a space may follow.
    """

    span: Span
    text: str
    label: str
    help: str = ""
    ends: bool = True


def complete(
    text: str, cursor: int, known: KnownValues | None = None, *, asked: bool = False
) -> list[Completion]:
    """Return how a query may go on, the likeliest first; nothing where it is complete.

    Args:
        text: The query as typed so far.
        cursor: Where the next key goes.
        known: Values of the store.
        asked: Whether the user asked for it; then all fields are offered at an empty place.
    """
    piece = _piece_at(text, cursor)
    if piece is None:
        return _fields("", (cursor, cursor)) if asked else []
    field = BY_ANY_NAME.get((piece[1] or "").lower())
    if field is not None:
        return _values(field, piece, cursor, known or {})
    start = piece.start() + piece[0].startswith("-")
    word = text[start:cursor]
    if piece[1] or not _WORD.fullmatch(word) or not (asked or len(word) >= SHORTEST_WORD):
        return []
    return _fields(word.lower(), (start, piece.end()))


def _piece_at(text: str, cursor: int) -> re.Match[str] | None:
    """Return the word or the field that the cursor is in or behind."""
    at = 0
    while at < cursor:
        found = _PIECE.match(text, at)
        end = at if found is None else found.end()
        if found is not None and at < cursor <= end:
            return found
        at = max(end, at + 1)
    return None


def _fields(word: str, span: Span) -> list[Completion]:
    found = [
        Completion(span, f"{field.name}:", f"{field.name}:", field.help, ends=False)
        for field in FIELDS.values()
        if any(name.startswith(word) for name in (field.name, *field.aliases))
    ]
    if len(word) >= _SHORTEST_STATE:
        found += [
            Completion(span, f"is:{value}", f"is:{value}", meaning)
            for value, meaning in FIELDS["is"].choices if value.startswith(word)
        ]
    return found


def _values(
    field: Field, piece: re.Match[str], cursor: int, known: KnownValues
) -> list[Completion]:
    at = piece.start(2)
    if cursor < at:
        return []
    value = _ONE_VALUE.match(piece.string, at)
    while value is not None and value.end() < min(cursor, piece.end()):
        value = _ONE_VALUE.match(piece.string, value.end() + 1)
    assert value is not None
    # A comparison is part of what is offered for a number, such as ``>1``.
    start = value.start() if field.kind == "number" else value.start(2)
    typed = piece.string[start:cursor]
    prefix = fold(typed.removeprefix('"').replace('""', '"'))
    span = start, max(cursor, value.end())
    offered = [
        Completion(span, text if field.kind == "number" else quoted(text), text, note)
        for text, note in _ranked(_known(field, known), prefix)
    ]
    if len(offered) == 1 and offered[0].label == typed.strip('"'):
        return []
    return offered[:MOST]


def _known(field: Field, known: KnownValues) -> Iterator[tuple[str, str]]:
    yield from known.get(field.name, ())
    yield from field.choices


def _ranked(values: Iterator[tuple[str, str]], prefix: str) -> list[tuple[str, str]]:
    """Return the values that go on with what is typed: from their start first."""
    begins: list[tuple[str, str]] = []
    contains: list[tuple[str, str]] = []
    for value, note in values:
        place = fold(value).find(prefix)
        if place == 0:
            begins.append((value, note))
        elif place > 0:
            contains.append((value, note))
    return begins + contains
