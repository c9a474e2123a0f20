"""The folder of a project that is known by its hash only.

Until version 0.24 a project's folder was named by the SHA-256 of its path, and nothing
beside it told the path. What its sessions say of files does: the folder is the one above
such a file that has the hash.

Source: the Gemini CLI format page, section 4.1.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache

from store.sources.base.growing import entries_of
from store.system.paths import open_regular

_HASH = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(rb'(?<![\w.~/-])/[^"\\\x00-\x1f*?<>|:]{1,600}')
_FILES_LOOKED_AT = 40
_BYTES_LOOKED_AT = 1 << 18
_FOLDERS_TRIED = 4000


def is_hash(name: str) -> bool:
    """Return whether a folder's name is a hash."""
    return _HASH.fullmatch(name) is not None


def path_of_hash(project: str, chats: str) -> str | None:
    """Return the path whose hash a project's folder is named by; None where it is not recorded.

    Args:
        project: The folder.
        chats: The folder in it that holds the sessions.
    """
    name = os.path.basename(project)
    if not is_hash(name):
        return None
    try:
        changed = os.stat(chats).st_mtime_ns
    except OSError:
        return None
    return _search(name, chats, changed)


@lru_cache(maxsize=256)
def _search(name: str, chats: str, changed: int) -> str | None:
    """Look through a project's sessions; once for each set of files (``changed``)."""
    tried: set[bytes] = set()
    for entry in reversed(entries_of(chats)[-_FILES_LOOKED_AT:]):
        for folder in _folders(_head(entry.path)):
            if folder in tried:
                continue
            if len(tried) == _FOLDERS_TRIED:
                return None
            tried.add(folder)
            if hashlib.sha256(folder).hexdigest() == name:
                return os.fsdecode(folder)
    return None


def _head(path: str) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(_BYTES_LOOKED_AT)
    except OSError:
        return b""  # It went away; another file may tell.


def _folders(text: bytes) -> Iterator[bytes]:
    """Yield the paths that a text names, and the folders above them."""
    for match in _PATH.finditer(text):
        for words in {match[0], match[0].split()[0]}:
            path = words.rstrip(b"/")
            while len(path) > 1:
                yield path
                path = path[: path.rfind(b"/")].rstrip(b"/")
