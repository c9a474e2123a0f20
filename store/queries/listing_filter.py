"""The list's filter: which sessions match a query by their titles and fields, in steps.

Words are looked for in title, workspace, agent, source, model, branch and tags. A short word
also matches with a few of its letters left out, as ``rtlp`` does for ``retry loop``. What is
said in a session is left to ``store.search``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from store.engine.database import Database
from store.engine.values import Column, decoded, tag_names, text
from store.language.matching import Folded, TermMatcher, fold
from store.language.query import Query, Term
from store.queries.matching_sessions import (
    condition_of,
    list_conditions,
    session_condition,
    session_test,
)

if TYPE_CHECKING:
    from store.sharing.masks import Masks

_LONGEST_GAP = 4
_SHORTEST_FUZZY, _LONGEST_FUZZY = 3, 8
"""Letters of a word that also matches with letters left out. The time of a longer one would
grow with every letter."""

Test = Callable[["Words"], bool]


class Words:
    """The texts of a session that the filter looks at, one field a line.

    Attributes:
        lines: As they are.
        folded: Without differences of case and accents.
    """

    __slots__ = ("_mapped", "folded", "lines")

    def __init__(self, lines: str) -> None:
        """Take the lines."""
        self.lines, self.folded = lines, fold(lines)
        self._mapped: Folded | None = None

    @property
    def mapped(self) -> Folded:
        """The lines as the terms of a query are found in them."""
        if self._mapped is None:
            self._mapped = Folded(self.lines)
        return self._mapped


class ListFilterTest:
    """Tests sessions against a query.

    Attributes:
        query: What is asked for.
        asks_for_parts: Whether sessions may also match by what is said in them: where words
            are looked for, and where fields ask for parts, such as ``tool:``.
        needs_parts: Whether no session matches by its title and fields alone.
        of_parts: What a search of parts is asked for; ``allowed`` tests the rest.
    """

    def __init__(self, query: Query, *, fuzzy: bool = True, masks: Masks | None = None) -> None:
        """Prepare to test sessions.

        Args:
            query: What is asked for.
            fuzzy: Whether a short word also matches with letters left out.
            masks: Masks the texts before they are tested; None for nothing.
        """
        self._masks = masks
        self.query = query
        self.conditions = list_conditions(query)
        self.needs_parts = len(self.conditions) < len(query.conditions)
        self.asks_for_parts = self.needs_parts or any(not each.negated for each in query.terms)
        self.of_parts = query if self.needs_parts else replace(query, filters=tuple(
            each for condition in query.session_conditions for each in condition.filters))
        self._tests = [_term(each, fuzzy=fuzzy) for each in query.terms]

    def matching(self, db: Database, rowids: Sequence[int], now: int) -> set[int]:
        """Return which of some sessions match by their titles and fields.

        Args:
            db: The store.
            rowids: The sessions.
            now: The present, epoch ms; what sessions do depends on it.
        """
        if self.needs_parts:
            return set()
        return self._having(db, rowids, now, self._tests)

    def allowed(self, db: Database, rowids: Sequence[int], now: int) -> set[int]:
        """Return which of some sessions have the fields, whatever is said in them.

        Args:
            db: The store.
            rowids: The sessions.
            now: The present, epoch ms.
        """
        return self._having(db, rowids, now, ()) if self.conditions else set(rowids)

    def _having(
        self, db: Database, rowids: Sequence[int], now: int, tests: Sequence[Test]
    ) -> set[int]:
        condition, values = session_condition(db, self.conditions, self._masks)
        place = db.sql.rowid("s")
        columns = f", {_COLUMNS.format(title=db.form.title('s'))}" if tests else ""
        rows = db.connection.execute(
            f"SELECT {place}{columns} FROM {db.sql.numbers('?', 'j')}"
            f" JOIN chat_sessions s ON {place} = j.value"
            f" WHERE {condition}", (orjson.dumps(list(rowids)).decode(), *values),
        )
        found = {row[0] for row in rows if not tests or _passes(tests, self._words(*row[1:]))}
        test = session_test(db, self.conditions, now)
        return found if test is None else test(list(found))


    def _words(self, *columns: Column) -> Words:
        words = _words(*columns)
        return words if self._masks is None else Words(self._masks.mask(words.lines))


_COLUMNS = "{title}, s.workspace_root, s.agent, s.model_json, s.metadata_json"


def _passes(tests: Sequence[Test], words: Words) -> bool:
    return all(test(words) for test in tests)


def _words(
    title: Column, workspace: Column, agent: Column, model_json: Column, metadata: Column
) -> Words:
    found = decoded(text(metadata))
    user, source = found.get("user"), found.get("source")
    fields = (
        text(title), user.get("title") if isinstance(user, dict) else None, text(workspace),
        text(agent),
        source.get("kind") if isinstance(source, dict) else None,
        decoded(text(model_json)).get("model_id"), found.get("git_branch"),
        " ".join(tag_names(user)),
    )
    return Words("\n".join(str(value) for value in fields if value))


def _term(term: Term, *, fuzzy: bool) -> Test:
    exact = TermMatcher(term)
    needle = fold(term.text)
    if term.negated:
        return lambda words: not exact.found(words.mapped)
    if term.kind != "word":
        return lambda words: exact.found(words.mapped)
    if not fuzzy or not _SHORTEST_FUZZY <= len(needle) <= _LONGEST_FUZZY:
        return lambda words: needle in words.folded or exact.found(words.mapped)
    gap = f"[^\\n]{{0,{_LONGEST_GAP}}}?"
    loose = re.compile(r"(?:^|[\W_])" + gap.join(map(re.escape, needle)), re.MULTILINE).search
    return lambda words: (
        needle in words.folded or loose(words.folded) is not None or exact.found(words.mapped)
    )


def narrows(query: Query, before: Query) -> bool:
    """Return whether all that matches a query also matched the one before it.

    Short words match only exactly, so a longer word may match more; so may a longer word that
    must not be there.
    """
    terms = list(query.terms)
    for old in before.terms:
        if not any(_narrows(new, old) for new in terms):
            return False
    conditions = [condition_of(each) for each in query.conditions]
    return bool(before) and all(condition_of(each) in conditions for each in before.conditions)


def _narrows(term: Term, before: Term) -> bool:
    same = (term.kind, term.negated, term.flags) == (before.kind, before.negated, before.flags)
    if not same:
        return False
    if term.text == before.text:
        return True
    # A phrase is one piece; the white space in it may be any.
    longer = term.kind != "regex" and fold(term.text).startswith(fold(before.text))
    return longer and not term.negated and len(fold(before.text)) >= _SHORTEST_FUZZY
