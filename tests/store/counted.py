"""Statistics of a store for tests: counted now, without prices."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC

from store.engine.database import Database
from store.language.query import parse
from store.stats.statistics import ALWAYS, Dimension, Figures, figures, open_rollups


def counted(db: Database, sessions: Collection[str] | None = None) -> Figures:
    """Return what a store's sessions come to, or only some of them."""
    with open_rollups(db, sessions=sessions) as stats:
        return figures(db, stats, by=None, span=ALWAYS, query=parse("", now=0), zone=UTC,
                       sessions=sessions).whole  # fmt: skip


def counted_by(db: Database, by: Dimension) -> dict[str, Figures]:
    """Return what each group comes to, by its key."""
    with open_rollups(db) as stats:
        found = figures(db, stats, by=by, span=ALWAYS, query=parse("", now=0), zone=UTC)
    return {group.key: group.figures for group in found.groups}
