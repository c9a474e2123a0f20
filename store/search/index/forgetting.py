"""Takes sessions out of an index at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from store.search.index import blocks, sidecar


def forget(store: Path, session_ids: Sequence[str]) -> None:
    """Remove everything about some sessions from a store's index, and overwrite it in the file.

    Args:
        store: The store's file.
        session_ids: Sessions that were deleted from the store; the deletion must be committed,
            or a running indexer could add them again.

    Raises:
        IndexUnusable: They could not be removed.
    """
    path = sidecar.index_path(store)
    try:
        index = sidecar.open_existing(path)
        if index is None:
            sidecar.remove_files(path)
            return
        try:
            _forget(index, session_ids)
        finally:
            index.close()
    except sqlite3.Error as error:
        if not sidecar.is_damage(error):
            raise sidecar.unusable(path, error) from error
        sidecar.remove_files(path)
    except OSError as error:
        raise sidecar.unusable(path, error) from error


def _forget(index: sqlite3.Connection, session_ids: Sequence[str]) -> None:
    with sidecar.transaction(index):
        generation = sidecar.number_of(index, "generation")
        sidecar.set_values(index, generation=generation + 1)
        for session_id in session_ids:
            session = blocks.session_number(index, session_id)
            if session is not None:
                blocks.remove_messages(index, session)
    sidecar.empty_log(index)
