"""What a session comes to with all that was begun from it: subagents, forks, continuations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.engine.database import Database
from store.engine.values import text
from store.language.query import parse
from store.prices.table import PriceTable
from store.queries.helpers import helper_ids
from store.queries.lineage import has_children
from store.stats.figures import Figures
from store.stats.rollups import open_rollups
from store.stats.statistics import ALWAYS, figures

HELPER = "helper"
MOST_MEMBERS = 2_000
"""Sessions of a family that are counted at most."""


@dataclass(slots=True)
class Member:
    """A session of a family.

    Attributes:
        kind: ``fork``, ``subagent``, ``continuation``, ``helper`` or ``unknown``; "" for the
            first session.
        depth: How many sessions it is below the first one.
        own: Its own figures.
    """

    session_id: str
    kind: str
    depth: int
    title: str
    own: Figures = field(default_factory=Figures)


@dataclass(slots=True)
class Family:
    """A session with all that was begun from it.

    Attributes:
        members: The session first, then those below it, the ones that spent most first.
        whole: All of them together; an answer that several hold is counted once.
        cut: Whether there are more members than were counted.
        counted: Whether all of its members were counted in the time that there was.
    """

    members: list[Member]
    whole: Figures
    cut: bool = False
    counted: bool = True

    @property
    def own(self) -> Figures:
        """The session's own figures."""
        return self.members[0].own

    @property
    def children(self) -> int:
        """How many sessions are below it; helpers' runs are none."""
        return sum(member.kind != HELPER for member in self.members[1:])

    def share(self, member: Member) -> float | None:
        """Return what part of the whole a member has, 0 to 1: of the cost, else of the tokens."""
        if self.whole.cost_usd and member.own.cost_usd is not None:
            return member.own.cost_usd / self.whole.cost_usd
        return member.own.total / self.whole.total if self.whole.total else None


def _kind(kind: Any, depth: int, is_helper: bool) -> str:
    if not depth:
        return ""
    return HELPER if is_helper else str(kind or "unknown")


def family(
    db: Database, session_id: str, prices: PriceTable | None = None, *,
    seconds: float | None = None,
) -> Family | None:  # fmt: skip
    """Return a session's family; None where nothing was begun from it.

    Args:
        db: The store.
        session_id: The session.
        prices: What models cost, where an agent does not tell.
        seconds: For how long to count what is not counted yet; None counts all.
    """
    if not has_children(db, session_id):
        return None
    rows = db.connection.execute(
        f"WITH RECURSIVE below(id, depth) AS (SELECT {db.sql.as_id('?')}, 0 UNION"
        " SELECT s.id, below.depth + 1"
        " FROM chat_sessions s JOIN below ON s.parent_id = below.id WHERE below.depth < 100)"
        f" SELECT s.id, below.depth, {db.form.title('s')},"
        f" {db.form.fact('s', 'lineage.kind')} FROM (SELECT b.id, min(b.depth) AS depth"
        " FROM (SELECT id, depth FROM below LIMIT ?) b GROUP BY b.id) below"
        " JOIN chat_sessions s ON s.id = below.id", (session_id, MOST_MEMBERS + 1),
    ).fetchall()
    helpers = set(helper_ids(db))
    members = {
        text(each) or "": Member(text(each) or "", _kind(kind, depth, text(each) in helpers), depth,
                                 text(title) or text(each) or "")
        for each, depth, title, kind in rows
    }  # fmt: skip
    with open_rollups(db, prices, seconds=seconds, sessions=set(members)) as stats:
        found = figures(db, stats, by="session", span=ALWAYS, query=parse("", now=0), zone=None,
                        sessions=set(members))  # fmt: skip
        counted = stats.coverage.whole
    for group in found.groups:
        members[group.key].own = group.figures
    first = members.pop(session_id)
    rest = sorted(members.values(), key=lambda each: (
        -(each.own.cost_usd or 0.0), -each.own.total, each.session_id))
    return Family([first, *rest], found.whole, len(rows) > MOST_MEMBERS, counted)
