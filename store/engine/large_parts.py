"""Reads large parts piece by piece, so that no other thread waits long for the interpreter."""

from __future__ import annotations

import contextlib

from store.engine.database import Database
from store.engine.large_json import NotInPieces, loads_pieces
from store.engine.transactions import unmoving
from store.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_LARGE = 262_144
"""Characters from which on a part is read in pieces."""
_PIECE = 65_536
_SURELY_SMALL = 2_000
"""Bytes of a value in a server's table, packed, up to which it is not unpacked to measure it."""
_LARGE_ON_SERVER = (
    f"CASE WHEN pg_column_size(data_json) > {_SURELY_SMALL}"
    f" THEN octet_length(CAST(data_json AS text)) >= {_LARGE} ELSE FALSE END"
)


def data_columns(db: Database) -> tuple[str, str]:
    """Return SQL of the JSON of a part in ``chat_parts``, and of the key of its row if it is large.

    The first is NULL where the second is not, which is what ``large_data`` takes. On a store
    whose parts cannot be read piece by piece no part counts as large.

    Args:
        db: The store.
    """
    if db.server is not None:
        is_large, key = _LARGE_ON_SERVER, "id"
    elif _has_plain_parts(db):
        is_large, key = f"length(data_json) >= {_LARGE}", "rowid"
    else:
        return "data_json", "NULL"
    return f"CASE WHEN NOT {is_large} THEN data_json END", f"CASE WHEN {is_large} THEN {key} END"


def _has_plain_parts(db: Database) -> bool:
    """Return whether parts of a file are rows that SQLite can open as a stream of UTF-8."""
    encoding = db.connection.execute("PRAGMA main.encoding").fetchone()[0]
    found = db.connection.execute(
        "SELECT 1 FROM main.sqlite_master WHERE name = 'chat_parts' AND type = 'table'"
        " AND upper(sql) NOT LIKE '%WITHOUT%ROWID%' AND upper(sql) NOT LIKE '%VIRTUAL%'"
    ).fetchone()
    return encoding == "UTF-8" and found is not None


@contextlib.contextmanager
def unmoving_on_server(db: Database) -> Iterator[bool]:
    """Have a server show the same state to all statements of the block.

    Gives whether a row that was read before may have changed or gone.

    Args:
        db: The store; nothing is to do in a file or a transaction.
    """
    if db.server is None or db.connection.in_transaction:
        yield False
        return
    with unmoving(db):
        yield True


def large_data(db: Database, key: Any, decode: Callable[[str], Any]) -> Any:
    """Return the decoded JSON of a large part.

    Args:
        db: The store.
        key: The key of its row, of ``data_columns``.
        decode: Takes the text where it cannot be read in pieces.

    Raises:
        NotFound: A server's row is gone.
    """
    if db.server is not None:
        from store.engine.server.large_texts import fetch

        pieces = fetch(db.connection, "chat_parts", "data_json", key)
        if pieces is None:
            raise NotFound(f"part {key} is no longer in the store")
        try:
            return loads_pieces(pieces)
        except NotInPieces:
            return decode(b"".join(pieces).decode("utf-8", "replace"))
    with db.file.blobopen("chat_parts", "data_json", key, readonly=True) as blob:
        try:
            return loads_pieces(iter(lambda: blob.read(_PIECE), b""))
        except NotInPieces:
            blob.seek(0)
            return decode(blob.read().decode("utf-8", "replace"))
