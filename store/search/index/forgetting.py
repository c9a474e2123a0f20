"""Takes sessions out of an index at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def forget(store: Path, session_ids: Sequence[str]) -> None:
    """Remove everything about some sessions from a store's index, and overwrite it in the file.

    Args:
        store: The store's file.
        session_ids: Sessions that were deleted from the store; the deletion must be committed.
    """
