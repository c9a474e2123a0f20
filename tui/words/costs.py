"""Costs in words: recorded and estimated ones, and what a family of sessions comes to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from store.prices.loading import load_prices
from store.queries.lineage import has_children
from store.stats.families import Family, Member, family
from store.stats.statistics import Figures
from store.text.figures import money, tokens
from tui.kit.glyphs import glyphs
from tui.kit.lines import BLANK, FACT_LABEL, Line, Link, Run, heading, pair
from tui.kit.text import one_line

if TYPE_CHECKING:
    from store.store import Store
    from tui.host import Host

MOST_SHOWN = 12
"""Members of a family that are listed; the rest is one line."""
COUNTED_S = 0.3
"""Seconds in which members are counted that the file of statistics does not have yet."""
AGAIN_S, MOST_TIMES = 2.0, 30
"""Until they are counted again, and how often, where the time was too short."""


def cost_words(figures: Figures) -> str:
    """Return a cost as rows show it: ``$1.20``, ``≈ $0.12``, ``$1.20+``, ``not known``.

    ``+`` says that some of the answers have no known cost.
    """
    cost = figures.cost_usd
    if cost is None:
        return "not known" if figures.answers else money_short(0)
    about = f"{glyphs().about} " if figures.is_estimate else ""
    return f"{about}{money_short(cost)}{'+' if figures.unknown_answers else ''}"


def money_short(value: float) -> str:
    """Return an amount of dollars; no digits after the point where it is large."""
    if value == 0:
        return "$0"
    if value >= 10_000:
        return f"${value:,.0f}"
    return money(value)


async def read_family(host: Host, store: Store, session_id: str) -> AsyncIterator[Family]:
    """Yield a session with all below it, again until all of it is counted.

    Nothing is yielded where nothing was begun from it.

    Args:
        host: Has the prices of the config.
        store: The store.
        session_id: The session.
    """
    if not await store.read(has_children, session_id):
        return
    prices = await asyncio.to_thread(load_prices, host.settings.prices)
    for _ in range(MOST_TIMES):
        found = await store.read(family, session_id, prices, seconds=COUNTED_S)
        if found is None:
            return
        yield found
        if found.counted:
            return
        await asyncio.sleep(AGAIN_S)  # The file's keeper counts meanwhile.


def family_words(family: Family) -> str:
    """Return what a session comes to with all below it, ``$4.50 with 3 below it``.

    ``at least`` says that not all of them are counted yet.
    """
    whole = family.whole
    amount = cost_words(whole) if whole.cost_usd is not None else f"{tokens(whole.total)} tokens"
    least = "" if family.counted else "at least "
    more = "+" if family.cut else ""
    return f"{least}{amount} with {family.children:,}{more} below it"


def family_lines(family: Family, width: int) -> list[Line]:
    """Return the members of a family with their shares, those that cost most first.

    Args:
        family: The session with all below it.
        width: Columns.
    """
    whole = family.whole
    facts = [f"{tokens(whole.total)} tokens", cost_words(whole)]
    if not family.counted:
        facts.append("not yet all counted")
    lines = [heading("Family", facts, width)]
    for member in family.members[: MOST_SHOWN + 1]:
        runs: list[Run] = [(_share(family, member), "text"),
                           (f"  {tokens(member.own.total)}  {cost_words(member.own)}", "muted")]
        link = None
        if member.kind:
            runs.append((f"  {one_line(member.title)}", "user underline"))
            link = Link("session", member.session_id, None)
        lines.append(pair(member.kind or "itself", runs, width, label=FACT_LABEL, link=link))
    left = len(family.members) - MOST_SHOWN - 1
    if left > 0:
        lines.append(pair("others", [(f"{left:,} more", "muted")], width, label=FACT_LABEL))
    return [*lines, BLANK]


def _share(family: Family, member: Member) -> str:
    share = family.share(member)
    if share is None:
        return "    "
    return " <1%" if 0 < share < 0.005 else f"{round(100 * share):3}%"
