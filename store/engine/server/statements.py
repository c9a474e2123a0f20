"""Statements of the store as PostgreSQL's driver takes them.

A statement is written with ``?``, ``$1`` or ``$name`` and with plain names of tables. Here it
gets ``$1..$n`` in the order of its values, and each table its schema, so that it means the same
whatever the search path is, also behind a pooler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from store.engine.connection import Parameters

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'        # a text
    | "(?:[^"]|"")*"          # a quoted name
    | --[^\n]* | /\*.*?\*/    # a comment
    | ::
    | \?
    | [$:@](?P<name>\w+)
    | (?:main\.)?(?P<word>[A-Za-z_][\w.]*)""",
    re.VERBOSE | re.DOTALL,
)
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|DELETE)\b")
_PLACES = re.compile(r"\b(?:ctid|xmin)\b")
_WITH = re.compile(r"\s*WITH\s+(?:RECURSIVE\s+)?")
NO_READINGS: Mapping[str, str] = {}
_BEFORE_TABLES = frozenset(("FROM", "JOIN", "INTO", "UPDATE", "TABLE"))


class Turned(NamedTuple):
    """A statement as the driver takes it.

    Attributes:
        names: The names of its values in their order; None where they come by position.
    """

    text: str
    names: tuple[str, ...] | None

    def values(self, given: Parameters) -> list[Any]:
        """Return the values in their order."""
        # Most are dicts, and to ask whether something is a Mapping takes longer than the rest.
        if type(given) is dict or isinstance(given, Mapping):
            return [given[name] for name in self.names or ()]
        return list(given)


def turned(
    sql: str, schemas: Mapping[str, str], readings: Mapping[str, str] = NO_READINGS
) -> Turned:
    """Return a statement as the driver takes it.

    Args:
        sql: As it is written in the store.
        schemas: Names of tables, and what their names are on this server.
        readings: Of tables whose columns have other types than ours, the statement that has
            their rows as we have them. What writes has the tables as they are.
    """
    if readings and not _WRITES.search(sql):
        schemas = {name: place for name, place in schemas.items() if name not in readings}
        sql = _with_readings(sql, readings)
    names: list[str] = []
    count = 0
    after = ""

    def put(found: re.Match[str]) -> str:
        nonlocal count, after
        token = found[0]
        if token == "?":
            count += 1
            return f"${count}"
        if (name := found["name"]) is not None:
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        if (word := found["word"]) is not None:
            before, after = after, word.upper()
            if word.startswith("temp."):
                return f"pg_{word}"
            if before in _BEFORE_TABLES:
                return schemas.get(word, word)
        return token

    # SQLite takes an empty list.
    text = _TOKEN.sub(put, sql).replace(" IN ()", " IN (NULL)")
    return Turned(text, tuple(names) if names else None)


def _with_readings(sql: str, readings: Mapping[str, str]) -> str:
    """Return a statement that reads tables by others, which the planner puts in their place."""
    begin = "SELECT ctid, xmin, " if _PLACES.search(sql) else "SELECT "
    used = [
        f"{name} AS NOT MATERIALIZED ({reading.replace('SELECT ', begin, 1)})"
        for name, reading in readings.items() if re.search(rf"\b{name}\b", sql)
    ]
    if not used:
        return sql
    begun = _WITH.match(sql)
    if begun is not None:
        return f"{begun[0]}{', '.join(used)}, {sql[begun.end() :]}"
    return f"WITH {', '.join(used)} {sql}"
