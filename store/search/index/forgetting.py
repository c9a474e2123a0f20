"""Takes sessions out of an index at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from store.search.index import blocks, sidecar
from store.search.index.sidecar import INDEX


def forget(store: Path, session_ids: Sequence[str]) -> None:
    """Remove everything about some sessions from a store's index, and overwrite it in the file.

    Args:
        store: The store's file.
        session_ids: Sessions that were deleted from the store; the deletion must be committed,
            or a running indexer could add them again.

    Raises:
        IndexUnusable: They could not be removed.
    """
    INDEX.change(store, partial(_forget, session_ids=session_ids))


def _forget(index: sqlite3.Connection, session_ids: Sequence[str]) -> None:
    with sidecar.transaction(index):
        generation = sidecar.number_of(index, "generation")
        sidecar.set_values(index, generation=generation + 1)
        for session_id in session_ids:
            session = blocks.session_number(index, session_id)
            if session is not None:
                blocks.remove_messages(index, session)
    sidecar.empty_log(index)
