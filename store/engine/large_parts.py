"""Reads large parts piece by piece, so that no other thread waits long for the interpreter."""

from __future__ import annotations

from store.engine.database import Database
from store.engine.large_json import NotInPieces, loads_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LARGE = 262_144
"""Characters from which on a part is read in pieces."""
_PIECE = 65_536


def data_columns(db: Database) -> tuple[str, str]:
    """Return SQL of the JSON of a part in ``chat_parts``, and of its row number if it is large.

    The first is NULL where the second is not, which is what ``large_data`` takes. On a store
    whose parts cannot be read piece by piece no part counts as large.

    Args:
        db: The store.
    """
    if not _has_plain_parts(db):
        return "data_json", "NULL"
    is_large = f"length(data_json) >= {_LARGE}"
    return f"CASE WHEN NOT {is_large} THEN data_json END", f"CASE WHEN {is_large} THEN rowid END"


def _has_plain_parts(db: Database) -> bool:
    """Return whether parts are rows that SQLite can open as a stream of UTF-8."""
    if db.server is not None:
        return False
    encoding = db.connection.execute("PRAGMA main.encoding").fetchone()[0]
    found = db.connection.execute(
        "SELECT 1 FROM main.sqlite_master WHERE name = 'chat_parts' AND type = 'table'"
        " AND upper(sql) NOT LIKE '%WITHOUT%ROWID%' AND upper(sql) NOT LIKE '%VIRTUAL%'"
    ).fetchone()
    return encoding == "UTF-8" and found is not None


def large_data(db: Database, rowid: int, decode: Callable[[str], Any]) -> Any:
    """Return the decoded JSON of a large part.

    Args:
        db: The store.
        rowid: The number of its row.
        decode: Takes the text where it cannot be read in pieces.
    """
    with db.file.blobopen("chat_parts", "data_json", rowid, readonly=True) as blob:
        try:
            return loads_pieces(iter(lambda: blob.read(_PIECE), b""))
        except NotInPieces:
            blob.seek(0)
            return decode(blob.read().decode("utf-8", "replace"))
