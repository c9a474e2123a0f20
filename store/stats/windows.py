"""Windows of plans: five hours and a week, what was spent in each, how fast, and when it ends.

Where an agent keeps what its server says of them (``metadata_json.rate_limits`` of its answers,
as Codex's have), a window is that. Else it is guessed: it begins with the first request after the
last window, as plans count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.language.query import parse, quoted
from store.stats.facts import QUARTER_MS
from store.stats.rollups import Rollups
from store.stats.statistics import Figures, Span, figures

HOUR_MS = 3_600_000
FIVE_HOURS_MS, WEEK_MS = 5 * HOUR_MS, 7 * 24 * HOUR_MS
_NAMES = {FIVE_HOURS_MS: "5 hours", WEEK_MS: "week"}
_LOOKED_BACK = {FIVE_HOURS_MS: 14 * 24 * HOUR_MS, WEEK_MS: 365 * 24 * HOUR_MS}
"""How far back a row of windows without a gap is followed, by their length."""
_ALIKE = 0.05
"""A recorded length that differs by so little is one of these (299 minutes is five hours)."""
_MOST_SESSIONS, _MOST_ANSWERS = 200, 20
"""So many of the newest sessions, and of the newest answers of each, are asked for limits."""
_LEAST_HOURS = 1 / 60


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a plan that is open now.

    Attributes:
        agent: Whose requests it counts.
        length: In ms.
        start: Epoch ms.
        end: Epoch ms; when it is over.
        recorded: Whether the agent's server said when it ends; else that is a guess.
        used_percent: How much of the plan was used, as the server said; None where it did not.
        seen_at: When it said so, epoch ms.
        limit: The server's name of the limit; "" without one.
        figures: What was spent since it began.
    """

    agent: str
    length: int
    start: int
    end: int
    recorded: bool = False
    used_percent: float | None = None
    seen_at: int | None = None
    limit: str = ""
    figures: Figures = field(default_factory=Figures)

    @property
    def name(self) -> str:
        """Return what it is called: ``5 hours``, ``week``, or its length."""
        days, hours = divmod(self.length // HOUR_MS, 24)
        return _NAMES.get(self.length, f"{days} days" if days and not hours else
                          f"{24 * days + hours} hours")  # fmt: skip

    def per_hour(self, amount: float, now: int) -> float:
        """Return what an amount of this window is per hour, since the window began.

        Args:
            amount: Dollars or tokens.
            now: The present, epoch ms.
        """
        return amount / max((now - self.start) / HOUR_MS, _LEAST_HOURS)


def open_windows(db: Database, stats: Rollups, *, now: int) -> list[Window]:
    """Return the windows that are open now, by agent, the shorter first.

    Args:
        db: The store.
        stats: Its counts.
        now: The present, epoch ms.
    """
    found = windows_without_figures(db, stats, now=now)
    return [with_figures(db, stats, window) for window in found]


def windows_without_figures(db: Database, stats: Rollups, *, now: int) -> list[Window]:
    """Return the windows that are open now; what was spent in them is not read yet.

    Args:
        db: The store.
        stats: Its counts.
        now: The present, epoch ms.
    """
    recorded = _recorded(db, now)
    lengths = {(window.agent, window.length) for window in recorded}
    found = [window for window in recorded if window.end > now]
    for agent in _agents(stats, now):
        for length in (FIVE_HOURS_MS, WEEK_MS):
            ended = [window.end for window in recorded
                     if (window.agent, window.length) == (agent, length)]  # fmt: skip
            if (agent, length) in lengths and max(ended) > now:
                continue
            start = _guessed(db, stats, agent, length, now, after=max(ended, default=None))
            if start is not None:
                found.append(Window(agent, length, start, start + length))
    found.sort(key=lambda window: (window.agent, window.length, window.limit))
    return found


def with_figures(db: Database, stats: Rollups, window: Window) -> Window:
    """Return a window with what was spent in it; answers of its first minutes are read for that.

    Args:
        db: The store.
        stats: Its counts.
        window: The window.
    """
    query = parse(f"agent:={quoted(window.agent)}", now=window.start)
    span = Span(window.start, window.end)
    spent = figures(db, stats, by=None, span=span, query=query, zone=None).whole
    return replace(window, figures=spent)


def _agents(stats: Rollups, now: int) -> list[str]:
    rows = stats.connection.execute(
        "SELECT DISTINCT s.agent FROM spent r JOIN session s ON s.number = r.session"
        " WHERE r.quarter >= ? AND r.quarter <= ? AND r.answers > 0",
        ((now - WEEK_MS) // QUARTER_MS, now // QUARTER_MS),
    )
    return sorted(stats.text(row[0]) for row in rows.fetchall())


# Recorded windows


def _recorded(db: Database, now: int) -> list[Window]:
    """Return the newest window of each agent, limit and length that a server reported."""
    newest: dict[tuple[str, str, int], Window] = {}
    sessions = db.connection.execute(
        "SELECT id, agent, updated_at FROM chat_sessions WHERE updated_at >= ?"
        " ORDER BY updated_at DESC LIMIT ?", (now - WEEK_MS, _MOST_SESSIONS)
    ).fetchall()  # fmt: skip
    for session_id, agent, _ in sessions:
        for window in _told(db, session_id, text(agent) or "", now):
            key = window.agent, window.limit, window.length
            known = newest.get(key)
            if known is None or (known.seen_at or 0) < (window.seen_at or 0):
                newest[key] = window
    return list(newest.values())


def _told(db: Database, session_id: str, agent: str, now: int) -> Iterator[Window]:
    """Yield the windows of the newest answer of a session that has any."""
    rows = db.connection.execute(
        "SELECT created_at, metadata_json FROM chat_messages WHERE session_id = ?"
        " AND role = 'assistant' ORDER BY created_at DESC, id DESC LIMIT ?",
        (session_id, _MOST_ANSWERS),
    )
    for at, metadata_json in rows:
        limits = decoded(text(metadata_json)).get("rate_limits")
        found = [
            window for each in (limits if isinstance(limits, list) else ())
            if isinstance(each, dict)
            and (window := _window(agent, each, number(at))) is not None
        ]  # fmt: skip
        if found and found[0].seen_at is not None and found[0].seen_at <= now:
            yield from found
            return


def _window(agent: str, said: dict[str, Any], at: int) -> Window | None:
    minutes, end, used = (said.get(key) for key in ("window_minutes", "resets_at", "used_percent"))
    if type(minutes) is not int or type(end) is not int or not 0 < minutes < 2**20:
        return None
    length = minutes * 60_000
    for known in _NAMES:
        if abs(length - known) < _ALIKE * known:
            length = known
    percent = float(used) if isinstance(used, int | float) and math.isfinite(used) else None
    limit = said.get("limit")
    return Window(
        agent, length, end - length, end, True, percent, at,
        limit if isinstance(limit, str) else "",
    )  # fmt: skip


# Guessed windows


def _guessed(
    db: Database, stats: Rollups, agent: str, length: int, now: int, *, after: int | None
) -> int | None:
    """Return where the window begins that is open now; None where none is.

    Args:
        db: The store.
        stats: Its counts.
        agent: Whose requests are looked at.
        length: Of a window, in ms.
        now: The present, epoch ms.
        after: When the last recorded window ended; None without one.
    """
    since = now - _LOOKED_BACK[length] if after is None else after
    quarters = [row[0] for row in stats.connection.execute(
        "SELECT DISTINCT r.quarter FROM spent r JOIN session s ON s.number = r.session"
        " JOIN name n ON n.number = s.agent WHERE n.text = ? AND r.answers > 0"
        " AND r.quarter BETWEEN ? AND ? ORDER BY 1",
        (agent, since // QUARTER_MS, now // QUARTER_MS),
    )]  # fmt: skip
    # After a pause as long as a window, a window begins for certain.
    begun = max((place for place in range(1, len(quarters))
                 if (quarters[place] - quarters[place - 1] - 1) * QUARTER_MS >= length),
                default=0)  # fmt: skip
    start, end = None, since
    for quarter in quarters[begun:]:
        if (quarter + 1) * QUARTER_MS <= end:
            continue
        for at in _requests(db, stats, agent, quarter):
            if end <= at <= now:
                start, end = at, at + length
    return start if start is not None and start + length > now else None


def _requests(db: Database, stats: Rollups, agent: str, quarter: int) -> list[int]:
    """Return when the answers of an agent in a quarter hour began, the earliest first."""
    sessions = stats.connection.execute(
        "SELECT s.id FROM spent r JOIN session s ON s.number = r.session"
        " JOIN name n ON n.number = s.agent WHERE n.text = ? AND r.quarter = ?"
        " AND r.answers > 0", (agent, quarter)
    ).fetchall()  # fmt: skip
    times = set[int]()
    for (session_id,) in sessions:
        times.update(row[0] for row in db.connection.execute(
            "SELECT created_at FROM chat_messages WHERE session_id = ? AND role = 'assistant'"
            " AND created_at >= ? AND created_at < ?",
            (session_id, quarter * QUARTER_MS, (quarter + 1) * QUARTER_MS),
        ))  # fmt: skip
    return sorted(times)
