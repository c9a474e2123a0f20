"""Tells files from their names: one file may have several."""

from __future__ import annotations

import os
import re

from store.system.paths import open_regular, resolved


def is_one_file(one: str, other: str) -> bool:
    """Return whether two paths lead to one file or folder; not where either is gone."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


COPY_NAME = re.compile(
    r"(.+?)(?: \(\d+\)| - Copy(?: ?\(\d+\))?| copy(?: \d+)?| \(.*conflict.*\)"
    r"| \([^()]*copy[^()]*\)"
    r"|[ ._-]+conflict(?:ed)?(?:[ ._-].*)?|\.sync-conflict-.*|[._-](?:bak|backup|old|orig)|~"
    r"|-(?:DESKTOP|LAPTOP|PC|MacBook)[A-Z0-9-]*)",
    re.DOTALL | re.IGNORECASE,
)
"""Names, without the extension, that programs give to copies of a file."""


def is_named_as_copy(path: str) -> bool:
    """Return whether a file has a name that programs give to copies."""
    return COPY_NAME.fullmatch(os.path.splitext(os.path.basename(path))[0]) is not None


_MAY_BE_COPY = re.compile(r"[ (~]|onflict|-[DLPM][EACa]|[._-](?:bak|backup|old|orig)")
_PIECE = 1 << 20


def is_spare_copy(path: str) -> bool:
    """Return whether a file is a copy, by its name, of a file beside it that begins like it."""
    stem, extension = os.path.splitext(os.path.basename(path))
    named = COPY_NAME.fullmatch(stem) if _MAY_BE_COPY.search(stem) is not None else None
    if named is None:
        return False
    try:
        with (
            open_regular(path) as copy,
            open_regular(os.path.join(os.path.dirname(path), named[1] + extension)) as original,
        ):
            while piece := copy.read(_PIECE):
                if original.read(len(piece)) != piece:
                    return False
    except OSError:
        return False
    return True


def name_order(path: str) -> tuple[bool, int, str]:
    """Return what sorts the names of one file: first the one that leads through no link.

    Of several, as hard links are, the shortest comes first: copies get longer names.
    """
    return resolved(path) != path, len(path), path
