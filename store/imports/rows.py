"""Fits exported rows to the columns of the store that takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store.engine.database import Database
from store.exports.reading import Row
from store.rows import UNKNOWN_MODEL
from store.text.exact_json import encode

_SUFFIX = "_json"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the store.

    Attributes:
        is_json: Its text is JSON; an exported row has the value, under the name without
            ``_json``.
        required: It may not be NULL.
    """

    name: str
    is_json: bool
    required: bool


def columns_by_key(db: Database, table: str) -> dict[str, Column]:
    """Return a table's columns by the key that an exported row has for each."""
    required = {row[0] for row in db.connection.execute(db.sql.required_columns(table))}
    found = [
        Column(name, name.endswith(_SUFFIX), name in required)
        for name in db.form.columns[table]
    ]
    return {column.name.removesuffix(_SUFFIX): column for column in found}


def insert_rows(db: Database, table: str, rows: list[Row]) -> None:
    """Insert exported rows, inside the caller's transaction.

    Args:
        db: The store, inside a transaction.
        table: The table.
        rows: Rows as an export has them.
    """
    columns = columns_by_key(db, table)
    for row in rows:
        values = fitted(row, columns)
        names = ", ".join(f'"{name}"' for name in values)
        places = ", ".join("?" * len(values))
        db.connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({places})", list(values.values())
        )


def fitted(row: Row, columns: dict[str, Column]) -> Row:
    """Return the values of a row by column; what has no column goes into its metadata.

    A title and ``hidden_at`` of Grida's form are metadata in the contract's; further
    columns of another form are kept under ``metadata.backscroll.columns``.
    """
    if "metadata" in row:
        row = {**row, "metadata": _metadata(row, columns)}
    values: Row = {}
    for key, column in columns.items():
        value = row.get(key)
        if value is None and column.required and key == "model":
            value = UNKNOWN_MODEL
        if column.is_json and (value is not None or (column.required and key in row)):
            values[column.name] = encode(value)
        elif value is not None:
            values[column.name] = value
    return values


def same_row(row: Row | None, there: Row, columns: dict[str, Column]) -> bool:
    """Return whether a row of the store says what an imported row says.

    A column that the imported row does not name has its default in the store.

    Args:
        row: The imported row.
        there: The row of the store.
        columns: The table's columns, by the key that an exported row has.
    """
    if row is None:
        return False
    wanted, stored = fitted(row, columns), fitted(there, columns)
    return all(
        stored.get(column.name) == wanted.get(column.name)
        for key, column in columns.items()
        if key in row or column.name in wanted
    )


def _metadata(row: Row, columns: dict[str, Column]) -> Any:
    metadata = row["metadata"]
    homeless = {k: v for k, v in row.items() if k not in columns and v is not None}
    if not homeless or not isinstance(metadata, dict):
        return metadata
    metadata = dict(metadata)
    for key in ("title", "hidden_at"):
        if key in homeless:
            metadata.setdefault(key, homeless.pop(key))
    if homeless:
        own = metadata.get("backscroll")
        own = dict(own) if isinstance(own, dict) else {}
        before = own.get("columns")
        own["columns"] = {**(before if isinstance(before, dict) else {}), **homeless}
        metadata["backscroll"] = own
    return metadata
