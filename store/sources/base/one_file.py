"""Tells files from their names: one file may have several."""

from __future__ import annotations

import os

from store.system.paths import resolved


def is_one_file(one: str, other: str) -> bool:
    """Return whether two paths lead to one file or folder; not where either is gone."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def name_order(path: str) -> tuple[bool, int, str]:
    """Return what sorts the names of one file: first the one that leads through no link.

    Of several, as hard links are, the shortest comes first: copies get longer names.
    """
    return resolved(path) != path, len(path), path
