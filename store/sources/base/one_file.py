"""Tells files from their names: one file may have several."""

from __future__ import annotations

import os
import re

from store.system.paths import resolved


def is_one_file(one: str, other: str) -> bool:
    """Return whether two paths lead to one file or folder; not where either is gone."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


COPY_NAME = re.compile(
    r"(.+?)(?: \(\d+\)| - Copy(?: ?\(\d+\))?| copy(?: \d+)?| \(.*conflict.*\)| \([^()]*copy[^()]*\)"
    r"|[ ._-]+conflict(?:ed)?(?:[ ._-].*)?|\.sync-conflict-.*|[._-](?:bak|backup|old|orig)|~)",
    re.DOTALL | re.IGNORECASE,
)
"""Names, without the extension, that programs give to copies of a file."""


def is_named_as_copy(path: str) -> bool:
    """Return whether a file has a name that programs give to copies."""
    return COPY_NAME.fullmatch(os.path.splitext(os.path.basename(path))[0]) is not None


def name_order(path: str) -> tuple[bool, int, str]:
    """Return what sorts the names of one file: first the one that leads through no link.

    Of several, as hard links are, the shortest comes first: copies get longer names.
    """
    return resolved(path) != path, len(path), path
