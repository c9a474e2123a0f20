"""Removes old sessions permanently, never one that somebody needs.

A session and its subagents are one family, which is removed or kept as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from store.activity.judgement import (
    Known,
    is_imported,
    judged_all,
    live_activities,
    stored_activity,
)
from store.activity.states import OPEN_STATES
from store.engine.database import Database
from store.engine.values import number, text
from store.sync.forget import forget_chosen
from store.system.clock import Clock, system_clock

Reason = Literal["starred", "running", "forked", "newest"]
AT_ONCE = 100
"""Families that are removed in one transaction."""
_RUNNING = OPEN_STATES | {"queued", "unknown"}
"""Also a session of another computer, of which nobody knows."""


class Old(NamedTuple):
    """A session that is to be removed, with its subagents.

    Attributes:
        at: When it or one of its subagents changed last, epoch ms.
        subagents: How many subagents it has.
    """

    id: str
    title: str | None
    at: int
    subagents: int


@dataclass(frozen=True, slots=True)
class Wish:
    """Which sessions are to be removed.

    Attributes:
        before: Only those that changed last before this moment, epoch ms; None for any.
        keep_newest: So many of the newest are kept.
        source: Only those of this kind of source; None for all.
    """

    before: int | None = None
    keep_newest: int = 0
    source: str | None = None


@dataclass(slots=True)
class Plan:
    """What would be removed.

    Attributes:
        old: The sessions, the oldest first.
        kept: How many are kept although they are old enough, by the reason.
    """

    old: list[Old] = field(default_factory=list)
    kept: Counter[Reason] = field(default_factory=Counter)


class _Row(NamedTuple):
    id: str
    parent: str | None
    kind: str | None
    source: str | None
    title: str | None
    at: int
    starred: bool


def plan(database: Database, wish: Wish, *, now: int) -> Plan:
    """Return which sessions a wish removes, and which it keeps.

    Args:
        database: The library.
        wish: Which are to be removed.
        now: The present, epoch ms.
    """
    form = database.form
    rows = [
        _Row(text(row[0]) or "", text(row[1]), text(row[2]), text(row[3]), text(row[4]),
             number(row[5]), bool(row[6]))
        for row in database.connection.execute(
            f"SELECT s.id, s.parent_id, {form.fact('s', 'lineage.kind')}, {form.source_kind('s')},"
            f" {form.title('s')}, s.updated_at, {form.starred('s')} FROM chat_sessions s")
    ]  # fmt: skip
    families = _families(rows)
    forked = _forked_from(database, rows)
    chosen = sorted(
        (members for members in families.values() if wish.source in (None, members[0].source)),
        key=lambda members: (_newest(members), members[0].id), reverse=True)
    found, open_ones = Plan(), []
    for place, members in enumerate(chosen):
        if wish.before is not None and _newest(members) >= wish.before:
            continue
        if place < wish.keep_newest:
            found.kept["newest"] += 1
        elif any(one.starred for one in members):
            found.kept["starred"] += 1
        elif any(one.id in forked for one in members):
            found.kept["forked"] += 1
        else:
            open_ones.append(members)
    running = _running(database, [one.id for members in open_ones for one in members], now)
    for members in reversed(open_ones):
        if any(one.id in running for one in members):
            found.kept["running"] += 1
        else:
            head = members[0]
            found.old.append(Old(head.id, head.title, _newest(members), len(members) - 1))
    return found


def prune(
    database: Database, wish: Wish, *, clock: Clock = system_clock,
    telling: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """Remove the sessions of a wish, as ``forget`` does, and return their ids.

    Some families are removed at a time, each after another look at what they are then.

    Args:
        database: The library, open for writing.
        wish: Which are to be removed.
        clock: Gives the present.
        telling: Takes how many sessions are done, and how many there are.

    Raises:
        StoreError: The library cannot be written.
    """
    planned = [one.id for one in plan(database, wish, now=clock()).old]
    gone: list[str] = []
    for start in range(0, len(planned), AT_ONCE):
        some = set(planned[start : start + AT_ONCE])
        telling(start, len(planned))

        def choose(some: set[str] = some) -> list[str]:
            return [one.id for one in plan(database, wish, now=clock()).old if one.id in some]

        gone += forget_chosen(database, choose, clock=clock)
    return gone


def kinds_of_sources(database: Database) -> list[str]:
    """Return the kinds of sources that sessions are of, in order."""
    kind = database.form.source_kind("s")
    rows = database.connection.execute(f"SELECT DISTINCT {kind} FROM chat_sessions s")
    return sorted(row[0] for row in rows if row[0])


def _newest(members: Iterable[_Row]) -> int:
    return max(one.at for one in members)


def _families(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Return the sessions by the one that all of a family come from, which is the first."""
    by_id = {row.id: row for row in rows}
    families: dict[str, list[_Row]] = {}
    for row in rows:
        head, seen = row, {row.id}
        while head.kind == "subagent" and head.parent in by_id and head.parent not in seen:
            head = by_id[head.parent]
            seen.add(head.id)
        members = families.setdefault(head.id, [head])
        if row is not head:
            members.append(row)
    return families


def _forked_from(database: Database, rows: Iterable[_Row]) -> set[str]:
    """Return the sessions that others were forked from, or go on from."""
    forked = {row.parent for row in rows if row.parent and row.kind != "subagent"}
    links = database.connection.execute(
        "SELECT parent_id FROM session_links WHERE kind IN ('fork', 'continuation')")
    return forked | {text(row[0]) or "" for row in links}


def _running(database: Database, session_ids: Sequence[str], now: int) -> set[str]:
    """Return which sessions run, wait, or may do so."""
    running: set[str] = set()
    for start in range(0, len(session_ids), 500):
        some = session_ids[start : start + 500]
        live = live_activities(database, some)
        marks = ", ".join("?" * len(some))
        known = [
            Known(one, number(at), stored_activity(metadata), live.get(one), is_imported(metadata))
            for one, at, metadata in database.connection.execute(
                f"SELECT id, updated_at, metadata_json FROM chat_sessions WHERE id IN ({marks})",
                some)
        ]  # fmt: skip
        for one, (activity, _) in judged_all(database, known, now).items():
            if activity.busy or activity.state in _RUNNING:
                running.add(one)
    return running
