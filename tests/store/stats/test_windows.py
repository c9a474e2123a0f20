"""The windows of plans: recorded ones as the server said, others guessed from requests."""

from __future__ import annotations

from typing import Any

import pytest

from store.stats.rollups import open_rollups
from store.stats.windows import FIVE_HOURS_MS, HOUR_MS, WEEK_MS, Window, open_windows
from tests.store.talks import START, Talk

DAY_MS = 24 * HOUR_MS
MINUTE_MS = 60_000


def windows(talk: Talk, now: int) -> list[Window]:
    with open_rollups(talk.db) as rollups:
        return open_windows(talk.db, rollups, now=now)


def shape(found: list[Window]) -> list[tuple[str, str, int, int, int]]:
    """Return agent, name, start, end (minutes after the tests' start), and answers."""
    return [
        (one.agent, one.name, (one.start - START) // MINUTE_MS, (one.end - START) // MINUTE_MS,
         one.figures.answers)
        for one in found
    ]  # fmt: skip


def answer(talk: Talk, session: str, minute: float, **metadata: Any) -> None:
    talk.now = START + round(minute * MINUTE_MS) - 1000
    talk.message(session, "assistant", usage={"input": 10, "output": 2}, **metadata)
    talk.db.connection.execute(
        "UPDATE chat_sessions SET updated_at = ? WHERE id = ?", (talk.now, session))


@pytest.mark.parametrize(("minutes", "now", "five_hours"), [
    ([0], 1, (0, 300, 1)),
    ([0, 299], 299, (0, 300, 2)),
    # The next window begins with the first request after the end, though it is in its quarter hour.
    ([0, 299, 301], 302, (301, 601, 1)),
    ([0, 100, 200, 303, 400, 606], 607, (606, 906, 1)),
    ([0, 299.9, 300], 300, (300, 600, 1)),
    ([0], 301, None),
    # A pause as long as a window, however the hours before were counted.
    ([0, 290, 310, 800], 810, (800, 1100, 1)),
])  # fmt: skip
def test_a_guessed_window(
    talk: Talk, minutes: list[float], now: int, five_hours: tuple[int, int, int] | None
) -> None:
    session = talk.session(agent="claude-code")
    for minute in minutes:
        answer(talk, session, minute)
    found = windows(talk, START + now * MINUTE_MS)
    assert not any(one.recorded or one.used_percent is not None for one in found)
    short = [one[2:] for one in shape(found) if one[1] == "5 hours"]
    assert short == ([five_hours] if five_hours else [])
    assert shape(found)[-1] == ("claude-code", "week", 0, 10_080, len(minutes))


def test_a_week_follows_a_week(talk: Talk) -> None:
    session = talk.session(agent="claude-code")
    for day in range(0, 20, 2):
        answer(talk, session, day * 1440)
    found = [one for one in windows(talk, START + 19 * DAY_MS) if one.length == WEEK_MS]
    # Days 0, 8 and 16.
    assert shape(found) == [("claude-code", "week", 16 * 1440, 23 * 1440, 2)]


def limit(minute: int, minutes: int, used: float = 25.0, **more: Any) -> dict[str, Any]:
    ends = START + minute * MINUTE_MS
    return {"used_percent": used, "window_minutes": minutes, "resets_at": ends, **more}


def test_what_the_server_said(own_talk: Talk) -> None:
    talk = own_talk
    session, other = talk.session(agent="codex"), talk.session(agent="codex")
    answer(talk, session, 0)
    answer(talk, session, 10, rate_limits=[limit(130, 299, limit="codex")])
    # Of another session, newer, with both windows.
    answer(talk, other, 20, rate_limits=[
        limit(130, 299, 50, limit="codex"), limit(5000, 10_079, 7, limit="codex")])  # fmt: skip
    answer(talk, session, 30)
    found = windows(talk, START + 60 * MINUTE_MS)
    assert shape(found) == [
        ("codex", "5 hours", -170, 130, 4), ("codex", "week", -5080, 5000, 4)]  # fmt: skip
    assert all(one.recorded and one.limit == "codex" for one in found)
    assert [one.used_percent for one in found] == [50, 7]
    assert {one.seen_at for one in found} == {START + 20 * MINUTE_MS}


def test_after_the_end_of_what_was_said_it_is_a_guess(talk: Talk) -> None:
    session = talk.session(agent="codex")
    answer(talk, session, 0, rate_limits=[limit(60, 300)])
    assert [one.recorded for one in windows(talk, START + 59 * MINUTE_MS)] == [True, False]
    # It is over, and nothing was asked since.
    assert [one.length for one in windows(talk, START + 61 * MINUTE_MS)] == [WEEK_MS]
    answer(talk, session, 65)
    (window, _) = windows(talk, START + 70 * MINUTE_MS)
    assert shape([window]) == [("codex", "5 hours", 65, 365, 1)] and not window.recorded


def test_rates_are_per_hour(talk: Talk) -> None:
    session = talk.session(agent="claude-code")
    answer(talk, session, 0, cost_usd=3.0)
    now = START + 2 * HOUR_MS
    window = windows(talk, now)[0]
    assert window.length == FIVE_HOURS_MS and window.figures.cost_usd == 3.0
    assert window.per_hour(window.figures.total, now) == 6
    assert window.per_hour(1, window.start) == 60  # Nothing is divided by no time.


@pytest.mark.parametrize("odd", [
    None, "much", [None], [{}], [limit(60, 0)], [limit(60, 300) | {"resets_at": "soon"}],
    [limit(60, 300) | {"window_minutes": 1.5}],
])  # fmt: skip
def test_odd_limits_are_none(talk: Talk, odd: Any) -> None:
    answer(talk, talk.session(agent="x"), 0, rate_limits=odd)
    assert [one.recorded for one in windows(talk, START + MINUTE_MS)] == [False, False]


def test_copies_are_no_requests(own_talk: Talk) -> None:
    session = own_talk.session(agent="claude-code")
    answer(own_talk, session, 0)
    (original,) = own_talk.db.connection.execute("SELECT id FROM chat_messages").fetchone()
    answer(own_talk, own_talk.session(agent="claude-code"), 400, inherited_from=original)
    assert [one.name for one in windows(own_talk, START + 401 * MINUTE_MS)] == ["week"]


def test_nothing_was_asked(talk: Talk) -> None:
    assert windows(talk, START) == []
