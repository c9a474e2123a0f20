"""The list's filter: which sessions match a few words, fuzzily."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from store.engine.database import Database
from store.engine.values import Column, decoded, tag_names, text

STATE = "is:"
"""Begins a word of a query that asks what a session does, as in ``is:running``."""
_LONGEST_GAP = 4
_SHORTEST_FUZZY = 3


def matcher(query: str) -> Callable[[str], bool] | None:
    """Return a test of a case-folded text, or None when the query asks for nothing.

    Every word of the query must occur: as it is, or with a few letters left out, from
    the start of a word and within one field (fields are lines of the text).
    """
    tests = [_term(term) for term in query.casefold().split()]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda text: all(test(text) for test in tests)


def narrows(query: str, before: str) -> bool:
    """Return whether everything that matches a query also matched the one before it.

    Short words match only exactly, so a longer word may match more.
    """
    words = before.casefold().split()
    return (
        bool(words) and all(len(word) >= _SHORTEST_FUZZY for word in words)
        and query.casefold().startswith(before.casefold())
    )


def _term(term: str) -> Callable[[str], bool]:
    if term.startswith(STATE):
        field = "\n" + term
        return lambda text: field in text
    if len(term) < _SHORTEST_FUZZY:
        return lambda text: term in text
    gap = f"[^\\n]{{0,{_LONGEST_GAP}}}?"
    fuzzy = re.compile(r"(?:^|[\W_])" + gap.join(map(re.escape, term)), re.MULTILINE).search
    return lambda text: term in text or fuzzy(text) is not None


def asks_for_states(query: str) -> bool:
    """Return whether a query asks what sessions do, with a word such as ``is:running``."""
    return any(word.startswith(STATE) for word in query.casefold().split())


def matching(
    db: Database, rowids: Sequence[int], test: Callable[[str], bool],
    states: Mapping[int, str] | None = None,
) -> set[int]:
    """Return which of some sessions match, by title, workspace, agent, source, model, branch.

    Args:
        db: The store.
        rowids: The sessions.
        test: From ``matcher``.
        states: What sessions do, where the query asks for it; idle ones are missing.
    """
    marks = ",".join("?" * len(rowids))
    rows = db.connection.execute(
        f"SELECT s.rowid, {db.form.title('s')}, s.workspace_root, s.agent, s.model_json, "
        f"s.metadata_json FROM chat_sessions s WHERE s.rowid IN ({marks})",
        list(rowids),
    )
    if states is None:
        return {row[0] for row in rows if test(_haystack(*row[1:]))}
    return {
        row[0] for row in rows
        if test(f"{_haystack(*row[1:])}\n{STATE}{states.get(row[0], 'idle')}")
    }


def _haystack(
    title: Column, workspace: Column, agent: Column, model_json: Column, metadata: Column
) -> str:
    found = decoded(text(metadata))
    user, source = found.get("user"), found.get("source")
    fields = (
        text(title), user.get("title") if isinstance(user, dict) else None, text(workspace),
        text(agent),
        source.get("kind") if isinstance(source, dict) else None,
        decoded(text(model_json)).get("model_id"), found.get("git_branch"),
        " ".join(tag_names(user)),
    )
    return "\n".join(str(value) for value in fields if value).casefold()
