"""Reads a query: what was typed becomes terms, filters, and problems to show.

The language is described in ``docs/search.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from typing import Literal, NamedTuple, cast

from store.language import dates
from store.language.fields import BY_ANY_NAME, FIELDS, NAMES, PART_STATES, Field, Level
from store.language.patterns import BadPattern, compiled
from store.text.likeness import nearest

Span = tuple[int, int]
"""Start and end of a piece of text."""
Operator = Literal[":", "=", "<", "<=", ">", ">="]
"""How a value is compared; ``:`` as is usual for the field, ``=`` with the whole."""
Value = str | float

LONGEST = 10_000
"""Characters of a query that are read."""
MOST_PIECES = 200
"""Terms and filters of a query that are read."""
_LONGEST_SHOWN = 60

_SPACE = re.compile(r"\s+")
_NAME = re.compile(r"([A-Za-z]{2,20}):(?![:/\\]{2}|[:\\])")
_WORD = re.compile(r"\S+")
_BARE_VALUE = re.compile(r'[^\s,"]+')
_QUOTED = re.compile(r'"((?:[^"]|"")*)("?)')
_REGEX = re.compile(r"[Rr][Ee]:/((?:[^/\\]|\\.)*)/([A-Za-z]*)(?=\s|$)", re.DOTALL)
_NEGATED = re.compile(r"-(?=[^\s\->=])")
_COMPARISON = re.compile(r"<=|>=|<|>|=")
_NUMBER = re.compile(r"\$?(\d[\d,_]*(?:\.\d*)?|\.\d+)([kKmMgGbB]?)")
_SCALE = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Term:
    """A piece of text to find.

    Attributes:
        text: The word, the phrase without its quotes, or the regular expression.
        kind: Which of these.
        negated: Whether the text must not be there.
        span: Where it is in the query.
        flags: Letters behind a regular expression, such as ``i``.
    """

    text: str
    kind: Literal["word", "phrase", "regex"]
    negated: bool
    span: Span
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """A value of a field.

    Attributes:
        field: The field's own name, also where an alias was typed.
        operator: How the value is compared.
        value: A text; for a date epoch ms, for a number the number.
        negated: Whether it must not fit.
        span: Where it is in the query; values of one list, as in ``tag:a,b``, share it.
    """

    field: str
    operator: Operator
    value: Value
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Condition:
    """Filters of one field of which one has to fit.

    Attributes:
        field: The field's name.
        filters: Any of them is enough.
        negated: Whether none of them may fit.
        level: What they are about.
    """

    field: str
    filters: tuple[Filter, ...]
    negated: bool
    level: Level


class Problem(NamedTuple):
    """Something in a query that could not be read.

    Attributes:
        span: Where it is in the query.
        message: A sentence for the user.
        unfinished: Whether it goes away by typing on, such as a field without a value.
    """

    span: Span
    message: str
    unfinished: bool = False


@dataclass(frozen=True)
class Query:
    """What a query asks for. All terms and all conditions have to fit.

    Attributes:
        text: As it was typed.
        terms: Text to find, and not to find.
        filters: Values of fields, in order.
        problems: What could not be read; it is left out of the rest.
    """

    text: str
    terms: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()
    problems: tuple[Problem, ...] = ()

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The filters as conditions, all of which have to hold.

        Values of one list are alternatives, and so is a field that was given twice, unless
        a session can have both (``Field.every``).
        """
        groups: dict[tuple[object, ...], list[Filter]] = {}
        for each in self.filters:
            apart = each.negated or FIELDS[each.field].every
            key = each.field, each.negated, each.span if apart else None
            groups.setdefault(key, []).append(each)
        return tuple(
            Condition(found[0].field, tuple(found), found[0].negated, _level(found))
            for found in groups.values()
        )

    @property
    def session_conditions(self) -> tuple[Condition, ...]:
        """The conditions on sessions."""
        return tuple(each for each in self.conditions if each.level == "session")

    @property
    def part_conditions(self) -> tuple[Condition, ...]:
        """The conditions on parts of sessions."""
        return tuple(each for each in self.conditions if each.level == "part")

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return bool(self.terms or self.filters)


def _level(filters: list[Filter]) -> Level:
    if filters[0].field == "is":
        return "part" if any(each.value in PART_STATES for each in filters) else "session"
    return FIELDS[filters[0].field].level


def parse(
    text: str, *, now: int, zone: tzinfo | None = None, home: str | None = None
) -> Query:
    """Read a query; anything that was typed can be read.

    Args:
        text: As it was typed.
        now: The present, epoch ms; dates such as ``3d`` count from it.
        zone: The time zone of dates; None is the computer's own.
        home: The folder that ``~`` stands for; the user's by default.
    """
    reader = _Reader(_SURROGATE.sub("\ufffd", text[:LONGEST]), now, zone, home)
    reader.read()
    if len(text) > LONGEST:
        reader.problem((LONGEST, len(text)),
                       f"The query is too long; its first {LONGEST:,} characters are used")
    problems = sorted(reader.problems, key=lambda problem: problem.span)
    return Query(text, tuple(reader.terms), tuple(reader.filters), tuple(problems))


def quoted(value: str) -> str:
    """Return a value as it is written in a query, in quotes where it needs them."""
    plain = re.fullmatch(r"(?:[\w.~]|/(?![/\\]))[^\s\",:]*", value)
    return value if plain else '"' + value.replace('"', '""') + '"'


def without(query: Query, spans: list[Span]) -> str:
    """Return the text of a query with some of its pieces taken out.

    Args:
        query: The query.
        spans: Of terms or filters of it.
    """
    text = query.text
    for start, end in sorted(set(spans), reverse=True):
        text = text[:start].rstrip() + " " + text[end:].lstrip()
    return text.strip()


class _Reader:
    """Reads a query from its start to its end.

    Attributes:
        terms: What was found so far; so are ``filters`` and ``problems``.
    """

    def __init__(self, text: str, now: int, zone: tzinfo | None, home: str | None) -> None:
        self._text, self._now, self._zone = text, now, zone
        self._home = home
        self.terms: list[Term] = []
        self.filters: list[Filter] = []
        self.problems: list[Problem] = []

    def problem(self, span: Span, message: str, *, unfinished: bool = False) -> None:
        self.problems.append(Problem(span, message, unfinished))

    def read(self) -> None:
        """Read the whole text."""
        text, at = self._text, 0
        while at < len(text):
            if space := _SPACE.match(text, at):
                at = space.end()
            elif len(self.terms) + len(self.filters) >= MOST_PIECES:
                self.problem((at, len(text)),
                             f"Only the first {MOST_PIECES} words and fields are used")
                return
            else:
                at = self._piece(at)

    def _piece(self, start: int) -> int:
        """Read one term or field; return where it ends."""
        text = self._text
        negated = _NEGATED.match(text, start) is not None
        at = start + negated
        if text.startswith('"', at):
            return self._phrase(start, at, negated)
        if text[at:at + 3].lower() == "re:" and not text[at + 3:at + 4].isspace():
            end = self._regex(start, at, negated)
            if end is not None:
                return end
        if (name := _NAME.match(text, at)) is not None:
            field = BY_ANY_NAME.get(name[1].lower())
            if field is not None:
                return self._field(start, name.end(), field, negated)
            self._unknown(start, name)
        return self._word(start, at, negated)

    def _word(self, start: int, at: int, negated: bool) -> int:
        found = _WORD.match(self._text, at)
        assert found is not None
        end = found.end()
        word = found[0]
        if word != "-":
            self.terms.append(Term(word, "word", negated, (start, end)))
        return end

    def _phrase(self, start: int, at: int, negated: bool) -> int:
        words, end = self._quoted(at)
        if words.strip():
            self.terms.append(Term(words, "phrase", negated, (start, end)))
        return end

    def _quoted(self, at: int) -> tuple[str, int]:
        """Read quotes; return what is in them and where they end."""
        found = _QUOTED.match(self._text, at)
        assert found is not None
        if not found[2]:
            self.problem((at, found.end()), "The quote is not closed; it ends with the query",
                         unfinished=True)
        return found[1].replace('""', '"'), found.end()

    def _regex(self, start: int, at: int, negated: bool) -> int | None:
        """Read a regular expression: ``re:/a b/i``, ``re:"a b"`` or ``re:word``."""
        text, flags = self._text, ""
        if found := _REGEX.match(text, at):
            source, flags, end, first = found[1].replace("\\/", "/"), found[2], found.end(), at + 4
        elif text.startswith('"', at + 3):
            source, end = self._quoted(at + 3)
            first = at + 4
        else:
            word = _WORD.match(text, at + 3)
            if word is None:
                return None
            source, end, first = word[0], word.end(), at + 3
            if source.startswith("/"):
                self.problem((start, end), "The regular expression is not closed by a `/`",
                             unfinished=True)
                return end
        try:
            compiled(source, flags)
        except BadPattern as error:
            place = min(first + error.at, end)
            self.problem((place, end), f"The regular expression is wrong: {error}")
        else:
            self.terms.append(Term(source, "regex", negated, (start, end), flags))
        return end

    def _unknown(self, start: int, name: re.Match[str]) -> None:
        """Report a field that does not exist, where it does not look like plain text."""
        rest = _BARE_VALUE.match(self._text, name.end())
        after = self._text[name.end():name.end() + 1]
        if not after or after.isspace():
            return
        if rest is not None and (rest[0][0].isdigit() and rest[0].rstrip(":").isdigit()):
            return
        like = nearest(name[1].lower(), BY_ANY_NAME)
        meant = f" Did you mean `{like}:`?" if like else ""
        self.problem(
            (start, name.end()),
            f"There is no field `{name[1]}:`.{meant} Fields are {NAMES}; quotes make it plain text",
        )

    def _field(self, start: int, at: int, field: Field, negated: bool) -> int:
        values, end = self._values(at, field)
        if not values:
            self.problem((start, end), f"`{field.name}:` needs a value, as in `{field.example}`",
                         unfinished=True)
        found = [each for value in values for each in self._read_value(field, value, (start, end))]
        for name, operator, value in found:
            turned = negated
            if negated and field.kind == "date":
                # Not after a time is before it; a negated test would mean another thing for
                # a session, which lasts.
                name, turned = ("before" if name == "after" else "after"), False
            self.filters.append(Filter(name, operator, value, turned, (start, end)))
        return end

    def _values(self, at: int, field: Field) -> tuple[list[tuple[Operator | None, str, bool]], int]:
        """Read the values behind a field's colon.

        Returns:
            For each value its comparison, its text and whether it was quoted; and the end.
        """
        text = self._text
        values: list[tuple[Operator | None, str, bool]] = []
        while True:
            compared = _COMPARISON.match(text, at)
            operator = cast("Operator | None", compared[0] if compared else None)
            at = compared.end() if compared else at
            if text.startswith('"', at):
                value, at = self._quoted(at)
                values += [(operator, value, True)] if value.strip() else []
            elif field.kind == "date" and (phrase := dates.PHRASE.match(text, at)):
                values.append((operator, phrase[0], False))
                at = phrase.end()
            else:
                pattern = _WORD if field.kind == "number" else _BARE_VALUE
                found = pattern.match(text, at)
                values += [(operator, found[0], False)] if found else []
                at = found.end() if found else at
            if not text.startswith(",", at):
                return values, at
            at += 1

    def _read_value(
        self, field: Field, value: tuple[Operator | None, str, bool], span: Span
    ) -> Iterator[tuple[str, Operator, Value]]:
        """Yield the filters of one value: name, operator, value. Report it where it is wrong."""
        operator, text, _ = value
        readers: dict[str, Callable[[Field, Operator | None, str, Span],
                                    list[tuple[str, Operator, Value]]]] = {
            "date": self._date, "number": self._number, "choice": self._choice,
        }  # fmt: skip
        if field.kind in readers:
            yield from readers[field.kind](field, operator, text, span)
        elif operator in (None, "="):
            yield field.name, operator or ":", self._expanded(field, text)
        else:
            yield field.name, ":", f"{operator}{text}"

    def _expanded(self, field: Field, text: str) -> str:
        if field.name in ("workspace", "file") and re.match(r"~(?=$|[/\\])", text):
            home = os.path.expanduser("~") if self._home is None else self._home
            return _SURROGATE.sub("\ufffd", home) + text[1:]
        return text

    def _date(
        self, field: Field, operator: Operator | None, text: str, span: Span
    ) -> list[tuple[str, Operator, Value]]:
        try:
            return [(field.name, ":", dates.moment(text, now=self._now, zone=self._zone))]
        except dates.BadDate:
            self.problem(span, f"{_shown(text)} is no date; dates are {dates.EXAMPLES}")
            return []

    def _number(
        self, field: Field, operator: Operator | None, text: str, span: Span
    ) -> list[tuple[str, Operator, Value]]:
        number = _number(text)
        if number is not None:
            return [(field.name, operator or ">=", number)]
        self.problem(
            span, f"{_shown(text)} is no number; write `{field.example}`, `{field.name}:<10k`"
            f" or `{field.name}:2.5`",
        )
        return []

    def _choice(
        self, field: Field, operator: Operator | None, text: str, span: Span
    ) -> list[tuple[str, Operator, Value]]:
        known = [value for value, _ in field.choices]
        word = text.strip().lower()
        found = [word] if word in known else [each for each in known if each.startswith(word)]
        if not found:
            like = nearest(word.lower(), known)
            meant = f"did you mean `{field.name}:{like}`? " if like else ""
            self.problem(span, f"There is no `{field.name}:{_shown(text)}`; {meant}values are "
                               + ", ".join(known))
        return [(field.name, ":", each) for each in found]


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    return float(re.sub("[,_]", "", found[1])) * _SCALE[found[2].lower()]


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
