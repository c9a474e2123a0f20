"""Sends and fetches large texts of a server piece by piece.

The driver holds the interpreter's lock while it turns a value into a message, or back: for a
tool's output of 20 MB 10 to 30 ms, in which the event loop of a host stands still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from store.engine.connection import Connection

PIECE = 65_536
"""Bytes that are fetched as one row, and characters, at least, that are sent as one value."""
_AT_ONCE = 16
"""Pieces that are sent without waiting for an answer."""
_NAME = "backscroll.piece_"
_SEND = f"SELECT set_config('{_NAME}' || CAST(? AS text), ?, TRUE) IS NULL"
SENT_JSON = (
    f"(SELECT CAST(string_agg(current_setting('{_NAME}' || n), '') AS json) FROM"
    " (SELECT n FROM generate_series(1, CAST(? AS bigint)) AS all_sent(n) ORDER BY n) sent)"
)
"""The JSON of the pieces that were sent before in a transaction; its value is their number."""


def send(connection: Connection, texts: Iterable[str]) -> int:
    """Return the number of pieces of a text that is sent for ``SENT_JSON``.

    They are settings of the transaction: a temporary table takes a right that a role may not
    have, and entries in the server's catalog.

    Args:
        connection: A connection to a server, in a transaction.
        texts: The text in pieces of any length.
    """
    waiting, count = _of_size(texts), 0
    while some := list(islice(waiting, _AT_ONCE)):
        connection.executemany(_SEND, list(enumerate(some, count + 1)))
        count += len(some)
    return count


def _of_size(texts: Iterable[str]) -> Iterator[str]:
    held, size = list[str](), 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(held)
            held, size = [], 0
    if held:
        yield "".join(held)


def fetch(connection: Connection, table: str, column: str, row_id: object) -> list[bytes] | None:
    """Return the pieces of a text in UTF-8; None where there is no such row.

    One statement finds them all, so that they are of one value; each is a row, which the driver
    reads when it has come.

    Args:
        connection: A connection to a server.
        table: The table; its key is ``id``.
        column: A column that is not NULL.
        row_id: The row's key.
    """
    # With OFFSET 0 the text is unpacked once.
    rows = connection.execute(
        f"SELECT piece.first, substr(whole.bytes, piece.first, {PIECE}) FROM"
        f" (SELECT convert_to(CAST({column} AS text), 'UTF8') AS bytes FROM {table}"
        " WHERE id = $1 OFFSET 0) whole CROSS JOIN"
        f" generate_series(1, octet_length(whole.bytes), {PIECE}) AS piece(first)",
        {"1": row_id}).fetchall()
    rows.sort()
    return [piece for _, piece in rows] or None
