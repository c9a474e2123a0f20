"""A session's file as it is on disk today, and how that differs from an earlier content."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Literal

from store.files.history import Content
from store.system.paths import expanded, open_regular

MOST_BYTES = 64 << 20
"""Larger files are not read; they differ where their size does."""

State = Literal["file", "missing", "other", "unreadable"]
"""``other``: a folder, a device or something else that is no file."""
Standing = Literal["same", "changed", "gone", "there", "other", "unknown"]
"""How a file on disk is to a content: the same; another one; no longer there; there although it
was not at that point; no file any more; not known."""


@dataclass(frozen=True, slots=True)
class Present:
    """What is at a path now.

    Attributes:
        size: In bytes; 0 where it is no file.
        changed_at: Its modification time, epoch ms; 0 where it is no file.
        body: Its content; None where it was not read.
        digest: The SHA-256 of the content; empty where it was not read.
    """

    state: State
    size: int = 0
    changed_at: int = 0
    body: bytes | None = None
    digest: str = ""


MISSING = Present("missing")


def present(path: str) -> Present:
    """Return what is at a path of a session now; paths that are not absolute are not known."""
    if not os.path.isabs(expanded(path)):
        return Present("unreadable")
    try:
        with open_regular(expanded(path)) as file:
            status = os.fstat(file.fileno())
            changed_at = status.st_mtime_ns // 1_000_000
            if not stat.S_ISREG(status.st_mode):
                return Present("other")
            if status.st_size > MOST_BYTES:
                return Present("file", status.st_size, changed_at)
            body = _read(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except (OSError, ValueError):
        return Present("other" if os.path.exists(expanded(path)) else "unreadable")
    if body is None:
        return Present("file", status.st_size, changed_at)
    return Present("file", len(body), changed_at, body, hashlib.sha256(body).hexdigest())


def _read(number: int) -> bytes | None:
    """Return a file's content; None for one that has more than its size says, without end."""
    made = bytearray()
    while block := os.read(number, 1 << 20):
        made += block
        if len(made) > MOST_BYTES:
            return None
    return bytes(made)


def standing(content: Content, now: Present) -> Standing:
    """Return how a file on disk is to a content of it.

    Args:
        content: The content at a point of a session.
        now: What is on disk.
    """
    if not content.is_known or now.state == "unreadable":
        return "unknown"
    if now.state == "other":
        return "other"
    if content.body is None:
        return "same" if now.state == "missing" else "there"
    if now.state == "missing":
        return "gone"
    if now.body is None:
        return "unknown" if now.size == len(content.body) else "changed"
    return "same" if now.body == content.body else "changed"
