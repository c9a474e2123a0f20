"""Settings of a sync."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from store.sync.units import Excludes

BULK_UNITS = 16
"""Up to this many units no helpers are started: they are growing sessions, or huge ones."""
OUTLINE_BYTES = 24 << 20
"""Less is read in about a second."""


def default_helpers() -> int:
    """Return the number of helper processes for this machine; 0 on a single processor.

    More than three hardly help, because only one can write at a time, a third of the work.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(processors, 3) if processors > 1 else 0


def nothing_excluded(workspace: str | None) -> bool:
    """Exclude no workspace."""
    return False


@dataclass(slots=True)
class Settings:
    """Settings of a sync.

    Attributes:
        keep_originals: Whether to keep original records.
        keep_deleted: Whether to keep sessions whose file is deleted, and messages that a
            file no longer has.
        excludes: Returns whether to skip a workspace; it must be picklable.
        helpers: Number of helper processes for large syncs; 0 reads in this process.
        outline_bytes: From so many bytes of new units on, their sessions are listed before
            they are read.
        exclusive: Whether to wait for another sync of the same store.
    """

    keep_originals: bool = True
    keep_deleted: bool = True
    excludes: Excludes = nothing_excluded
    helpers: int = field(default_factory=default_helpers)
    outline_bytes: int = OUTLINE_BYTES
    exclusive: bool = True
