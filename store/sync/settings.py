"""How to sync."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from store.sync.units import Excludes

BULK_UNITS = 16
"""So many units or fewer are sessions that grow, or one that is huge: no helpers are started."""


def default_helpers() -> int:
    """Return how many helpers this machine has room for; none on a single processor.

    More than three hardly help: writing, which is a third of the work, goes in turns.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(processors, 3) if processors > 1 else 0


def nothing_excluded(workspace: str | None) -> bool:
    """Exclude no workspace."""
    return False


@dataclass(slots=True)
class Settings:
    """How to sync.

    Attributes:
        keep_originals: Whether original records are kept.
        keep_deleted: Whether sessions stay when their source's file goes away, and messages
            that their file no longer has.
        excludes: Says which workspaces stay out; one that can be pickled.
        helpers: Processes that share the work where there is much to read; 0 does it here.
        exclusive: Whether to wait for another sync of the same store.
    """

    keep_originals: bool = True
    keep_deleted: bool = True
    excludes: Excludes = nothing_excluded
    helpers: int = field(default_factory=default_helpers)
    exclusive: bool = True
