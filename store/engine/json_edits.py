"""Changes of JSON columns by SQLite's JSON functions, on whatever engine the store is.

PostgreSQL has none that leave the rest of a text as it was written. There the text is read,
changed by SQLite in memory, and written back.
"""

from __future__ import annotations

from collections.abc import Mapping

from store.engine.database import Database

METADATA = "metadata_json"


def set_json(
    db: Database, table: str, row_id: str, expression: str, values: Mapping[str, object], *,
    column: str = METADATA, also: str = "",
) -> int:
    """Set a JSON column of a row to an expression; returns how many rows were written.

    Args:
        db: A writing connection, in a transaction.
        table: The table.
        row_id: The row's id.
        expression: SQL of SQLite; ``$json`` is the text so far.
        values: Other values of the expression and of ``also``, by name.
        column: The column.
        also: Other columns to set, with a comma at the end, in words of both engines.
    """
    named = {**values, "row": row_id}
    if db.server is None:
        new = expression.replace("$json", column)
    else:
        row = db.connection.execute(
            f"SELECT {column} FROM {table} WHERE id = $row FOR UPDATE", named).fetchone()
        if row is None:
            return 0
        (named["json"],) = db.json.execute(
            f"SELECT {expression}", {**values, "json": row[0]}).fetchone()
        new = "$json"
    return db.connection.execute(
        f"UPDATE {table} SET {also}{column} = {new} WHERE id = $row", named).rowcount
