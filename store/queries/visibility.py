"""Which rows of ``chat_messages`` are transcript, as SQL conditions for every form.

Four kinds of rows share the table (Grida's semantics): visible ones, hidden ones
(``hidden_at``), queued ones (``metadata_json.queued_at`` is a number: not sent yet) and
cancelled queue rows (``queue_canceled_at``, kept as tombstones).
"""

from __future__ import annotations

from store.database import Form


def metadata_number(table: str, key: str) -> str:
    """Return SQL for a number in a row's ``metadata_json``, NULL when it is none.

    A host may have stored text that is no JSON; such a row has no keys.
    """
    column = f"{table}.metadata_json"
    path = f"'$.{key}'"
    return (
        f"CASE WHEN json_valid({column}) AND json_type({column}, {path}) IN ('integer', 'real')"
        f" THEN json_extract({column}, {path}) END"
    )


def hidden_at(form: Form, table: str) -> str:
    """Return SQL for the epoch ms at which a message was hidden, NULL when it is not."""
    in_metadata = metadata_number(table, "hidden_at")
    return f"coalesce({table}.hidden_at, {in_metadata})" if form.hidden_column else in_metadata


def is_sent(table: str) -> str:
    """Return an SQL condition: the message is neither queued nor a cancelled queue row."""
    queued = metadata_number(table, "queued_at")
    cancelled = metadata_number(table, "queue_canceled_at")
    return f"(({queued}) IS NULL AND ({cancelled}) IS NULL)"


def is_visible(form: Form, table: str) -> str:
    """Return an SQL condition: the message is part of the live transcript."""
    return f"(({hidden_at(form, table)}) IS NULL AND {is_sent(table)})"
