"""A host's columns of other types than the contract's, read as those that it names.

The contract has texts and whole numbers. Where a host has a ``uuid``, an enum, ``timestamptz`` or
``numeric``, statements read its table through an expression that turns each into a text, a number
or milliseconds. Nothing is made on the server for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from store.engine.dialect import quoted

TEXTS = ("text", "varchar", "citext", "name")
_CHARS = ("text", "varchar", "bpchar")
_WHOLE = ("int2", "int4", "int8")
_NUMBERS = ("numeric", "float4", "float8")
_TIMES = ("timestamptz", "timestamp", "date")
_TIME_COLUMNS = ("created_at", "updated_at", "archived_at", "hidden_at")
_NUMBER_COLUMNS = (
    "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read", "cache_write",
    "total_tokens", "index")
_TEXT_COLUMNS = (
    "id", "session_id", "message_id", "parent_id", "parent_message_id", "agent", "workspace_root",
    "role", "type", "tool_call_id", "tool_state", "title")
_LARGEST = "9000000000000000000"
_DIGITS = r"'^\s*-?[0-9]{1,18}(\.[0-9]*)?\s*$'"
_ISO = (
    r"'^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[T ]([01][0-9]|2[0-3]):[0-5][0-9]"
    r"(:[0-5][0-9](\.[0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?$'")
_HAS_ZONE = r"'(Z|[+-][0-9]{2}:?[0-9]{2})$'"


class Column(NamedTuple):
    """A column of a host's table.

    Attributes:
        kind: Its type without domains, as PostgreSQL calls it; ``enum`` for any enum.
        shown: Its type as it was declared.
    """

    kind: str
    shown: str


def unheld(columns: Mapping[str, Mapping[str, Column]]) -> list[str]:
    """Return the types of columns whose values Python cannot always hold, such as a time of BC.

    Args:
        columns: By table, its columns by their names.
    """
    kinds = {column.kind.lstrip("_") for found in columns.values() for column in found.values()}
    return sorted(kinds & {*_TIMES, "time", "timetz", "interval"})


class HostTables(NamedTuple):
    """How a host's tables are read.

    Attributes:
        readings: By table, a statement that has its rows as the contract has them; of those
            tables alone that need it.
        odd: Columns that a verb could not write as the contract has them, with their types.
    """

    readings: Mapping[str, str]
    odd: tuple[str, ...]


def host_tables(
    columns: Mapping[str, Mapping[str, Column]], names: Mapping[str, str]
) -> HostTables:
    """Return how a host's tables are read.

    Args:
        columns: By table, its columns by their names, in order.
        names: What the tables are called on the server.
    """
    readings = dict[str, str]()
    odd = list[str]()
    # Expressions for a JSON column go by its name, whatever the table.
    texts = {name for found in columns.values() for name, column in found.items()
             if name.endswith("_json") and column.kind not in ("json", "jsonb")}
    for table, found in columns.items():
        turned = {
            name: f"CAST({quoted(name)} AS text)" if name in texts and column.kind not in _CHARS
            else _turned(name, column.kind) for name, column in found.items()}
        if not any(turned.values()):
            continue
        shown = [f"{turned[name]} AS {quoted(name)}" if turned[name] else quoted(name)
                 for name in found]
        readings[table] = f"SELECT {', '.join(shown)} FROM {names[table]}"
        odd += [f"{table}.{name}: {column.shown}" for name, column in found.items()
                if turned[name] and (column.kind not in (*_NUMBERS, "money")
                                     or name in _TEXT_COLUMNS or name.endswith("_json"))]
    return HostTables(readings, tuple(odd))


def _turned(name: str, kind: str) -> str | None:
    """Return the expression for a column; None where it is read as it is."""
    column = quoted(name)
    if name in _TEXT_COLUMNS:
        return None if kind in TEXTS else f"CAST({column} AS text)"
    if name in _TIME_COLUMNS:
        return _time(column, kind)
    if name in _NUMBER_COLUMNS:
        return _whole(column, kind)
    if name == "cost_usd":
        return _amount(column, kind)
    return None


def _time(column: str, kind: str) -> str | None:
    """Return a time in milliseconds; 0 for one that is infinite or no time."""
    if kind in _TIMES:
        return (f"CASE WHEN {column} IS NULL THEN NULL WHEN isfinite({column}) THEN"
                f" {_milliseconds(column)} ELSE 0 END")
    if kind in (*_CHARS, "citext"):
        text = f"CAST({column} AS text)"
        zoned = f"CASE WHEN {text} ~ {_HAS_ZONE} THEN {text} ELSE {text} || 'Z' END"
        # February has a 30th nowhere: the days are added to the first of the month.
        first = f"CAST(overlay({zoned} PLACING '01' FROM 9 FOR 2) AS timestamptz)"
        days = f"(CAST(substr({text}, 9, 2) AS integer) - 1) * interval '1 day'"
        return (f"CASE WHEN {column} IS NULL THEN NULL"
                f" WHEN {text} ~ {_DIGITS} THEN CAST(trunc(CAST({text} AS numeric)) AS bigint)"
                f" WHEN {text} ~ {_ISO} THEN {_milliseconds(f'({first} + {days})')} ELSE 0 END")
    return _whole(column, kind)


def _milliseconds(time: str) -> str:
    return f"CAST(floor(extract(epoch FROM {time}) * 1000) AS bigint)"


def _whole(column: str, kind: str) -> str | None:
    """Return a whole number; 0 for one that a BIGINT cannot hold, or is none."""
    if kind in _WHOLE:
        return None
    if kind in _NUMBERS:
        return (f"CASE WHEN {column} IS NULL THEN NULL WHEN {column} BETWEEN -{_LARGEST} AND"
                f" {_LARGEST} THEN CAST(trunc({column}) AS bigint) ELSE 0 END")
    text = f"CAST({column} AS text)"
    return (f"CASE WHEN {column} IS NULL THEN NULL WHEN {text} ~ {_DIGITS}"
            f" THEN CAST(trunc(CAST({text} AS numeric)) AS bigint) ELSE 0 END")


def _amount(column: str, kind: str) -> str | None:
    """Return an amount; 0 for one that is no number or has no end."""
    if kind in ("float8", *_WHOLE):
        return None
    if kind == "money":
        return f"CAST(CAST({column} AS numeric) AS double precision)"
    if kind not in _NUMBERS:
        return None
    # As a text, a short number stays as short as it was written.
    return (f"CASE WHEN {column} IS NULL THEN NULL WHEN {column} BETWEEN -1e15 AND 1e15"
            f" THEN CAST(CAST({column} AS text) AS double precision) ELSE 0 END")
