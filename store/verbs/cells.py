"""Edits of single cells that can be taken back exactly, and redone.

A JSON column is edited by path with SQLite's own JSON functions, so that everything else
in it stays as it was written. An edit keeps the whole text of the cell only where taking
the path out again would not give the old text back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from store.engine.database import Database
from store.engine.values import number
from store.errors import Refused

Table = Literal["chat_sessions", "chat_messages"]


@dataclass(frozen=True, slots=True)
class CellEdit:
    """One cell before and after a verb.

    Attributes:
        path: JSON path inside the column; None where the column itself is the value.
        before: The value at the path (or of the column) before, as JSON; None was absent.
        after: The same after the verb.
        text_before: The whole cell before, only where the path alone cannot restore it.
        text_after: The whole cell after, likewise.
    """

    table: Table
    row_id: str
    column: str
    path: str | None
    before: str | None
    after: str | None
    text_before: str | None = None
    text_after: str | None = None

    def inverse(self) -> CellEdit:
        """Return the edit that takes this one back."""
        return CellEdit(
            self.table, self.row_id, self.column, self.path,
            self.after, self.before, self.text_after, self.text_before,
        )  # fmt: skip


def dump_edits(edits: list[CellEdit]) -> str:
    """Return edits as JSON text for the verb log."""
    rows = [{k: v for k, v in asdict(edit).items() if v is not None} for edit in edits]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def load_edits(text: str) -> list[CellEdit]:
    """Return the edits that ``dump_edits`` wrote."""
    empty = {"path": None, "before": None, "after": None}
    return [CellEdit(**{**empty, **row}) for row in json.loads(text)]


_BLOB = "$blob"
"""The key under which the log keeps a host's bytes, in hexadecimal."""


def _read(db: Database, table: Table, row_id: str, column: str) -> Any:
    row = db.connection.execute(
        f"SELECT {column} FROM {table} WHERE id = $1", {"1": row_id}
    ).fetchone()
    if row is None:
        raise Refused(f"{row_id} is no longer in {table}")
    return row[0]


def _write(db: Database, table: Table, row_id: str, column: str, value: Any) -> None:
    db.connection.execute(
        f"UPDATE {table} SET {column} = $1 WHERE id = $2", {"1": value, "2": row_id}
    )


def set_column(db: Database, table: Table, row_id: str, column: str, value: Any) -> CellEdit:
    """Set a plain column and return the edit.

    Args:
        db: The store.
        table: The table.
        row_id: The row's id.
        column: The column.
        value: The new value.
    """
    before = _read(db, table, row_id, column)
    _write(db, table, row_id, column, value)
    return CellEdit(table, row_id, column, None, _as_json(before), _as_json(value))


def touch_host(db: Database, session_id: str, now: int) -> list[CellEdit]:
    """Move ``updated_at`` in a host's file, whose own readers may poll by it.

    In a library it is not changed: pollers use ``changes``, and sync keeps the source's
    time.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        now: Epoch ms.
    """
    if db.form.name == "own":
        return []
    moved = max(number(_read(db, "chat_sessions", session_id, "updated_at")), now)
    return [set_column(db, "chat_sessions", session_id, "updated_at", moved)]


def _as_json(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = {_BLOB: value.hex()}
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _from_json(text: str | None) -> Any:
    value = None if text is None else json.loads(text)
    return bytes.fromhex(value[_BLOB]) if isinstance(value, dict) and _BLOB in value else value


def _set_path(db: Database, text: str, path: str, value: str | None) -> str:
    """Return JSON text with a path set to a JSON value, or removed."""
    if value is None:
        (result,) = db.json.execute(
            "SELECT json_remove($1, $2)", {"1": text, "2": path}
        ).fetchone()
    else:
        (result,) = db.json.execute(
            "SELECT json_set($1, $2, json($3))", {"1": text, "2": path, "3": value}
        ).fetchone()
    return str(result)


def _at_path(db: Database, text: str, path: str) -> str | None:
    """Return the JSON value at a path, None where there is none."""
    row = db.json.execute("SELECT $1 -> $2", {"1": text, "2": path}).fetchone()
    value: str | None = row[0]
    return value


def _outermost_missing(db: Database, text: str, path: str, value: Any) -> tuple[str, Any]:
    """Return the outermost path that is missing, with the value wrapped to fit there.

    Removing it again leaves no empty object behind.
    """
    keys = path.split(".")[1:]
    for depth in range(1, len(keys)):
        outer = "$." + ".".join(keys[:depth])
        if _at_path(db, text, outer) is None:
            for key in reversed(keys[depth:]):
                value = {key: value}
            return outer, value
    return path, value


def set_metadata(db: Database, table: Table, row_id: str, path: str, value: Any) -> CellEdit:
    """Set one path of ``metadata_json``, or remove it with None, and return the edit.

    Args:
        db: The store.
        table: The table.
        row_id: The row's id.
        path: Where in the metadata, as a JSON path.
        value: The new value; None removes the key.

    Raises:
        Refused: The row's metadata is no JSON object; nothing may be lost by a guess.
    """
    text = _read(db, table, row_id, "metadata_json")
    valid = db.json.execute("SELECT json_valid($1)", {"1": text}).fetchone()[0]
    if not valid:
        raise Refused(f"the metadata of {row_id} is not valid JSON, so it is left alone")
    if value is not None:
        path, value = _outermost_missing(db, text, path, value)
    before, after = _at_path(db, text, path), _as_json(value)
    if before is None and after is None:
        return CellEdit(table, row_id, "metadata_json", path, None, None)
    changed = _set_path(db, text, path, after)
    _write(db, table, row_id, "metadata_json", changed)
    exact = _set_path(db, changed, path, before) == text
    texts = (None, None) if exact else (text, changed)
    return CellEdit(table, row_id, "metadata_json", path, before, after, *texts)


def apply_edit(db: Database, edit: CellEdit) -> bool:
    """Bring a cell to an edit's ``after``; returns False where its row is gone.

    Where someone else rewrote the cell since, only the edit's own path changes.
    """
    row = db.connection.execute(
        f"SELECT {edit.column} FROM {edit.table} WHERE id = $1", {"1": edit.row_id}
    ).fetchone()
    if row is None:
        return False
    current = row[0]
    if edit.column == "updated_at" and current != _from_json(edit.before):
        return True  # the host moved it on; it never goes back
    if edit.path is None:
        value = _from_json(edit.after)
    elif edit.text_after is not None and current == edit.text_before:
        value = edit.text_after
    else:
        value = _set_path(db, current, edit.path, edit.after)
    _write(db, edit.table, edit.row_id, edit.column, value)
    return True
