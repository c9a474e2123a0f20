"""Dates as they are typed, around changes of the clock and of the year, in several zones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.language.dates import PHRASE, BadDate, moment
from store.language.query import parse

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
KIRITIMATI, APIA = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Apia")
BEIRUT, KATHMANDU = ZoneInfo("Asia/Beirut"), timezone(timedelta(hours=5, minutes=45))


def ms(zone: tzinfo, *parts: int) -> int:
    wall = datetime(*parts)  # type: ignore[arg-type]
    return int(wall.replace(tzinfo=zone).timestamp() * 1000)


def at(text: str, now: int, zone: tzinfo = UTC) -> datetime:
    found = datetime.fromtimestamp(moment(text, now=now, zone=zone) / 1000, zone)
    return found.replace(tzinfo=None)


SATURDAY = ms(UTC, 2026, 11, 28, 18, 30)


@pytest.mark.parametrize(("text", "expected"), [
    ("2026", (2026, 1, 1)), ("2026-11", (2026, 11, 1)), ("2026-11-01", (2026, 11, 1)),
    ("2026-1-2", (2026, 1, 2)), ("2026-11-01T12:30", (2026, 11, 1, 12, 30)),
    ("2026-11-01 12:30:15", (2026, 11, 1, 12, 30, 15)),
    ("2026-11-01T12:30Z", (2026, 11, 1, 12, 30)),
    ("2026-11-01T12:30+02:00", (2026, 11, 1, 10, 30)),
    ("2026-11-01T12:30-0530", (2026, 11, 1, 18, 0)),
    ("now", (2026, 11, 28, 18, 30)), ("30m", (2026, 11, 28, 18, 0)), ("2h", (2026, 11, 28, 16, 30)),
    ("3d", (2026, 11, 25, 18, 30)), ("2w", (2026, 11, 14, 18, 30)), ("1mo", (2026, 10, 28, 18, 30)),
    ("1y", (2025, 11, 28, 18, 30)), ("3 days ago", (2026, 11, 25, 18, 30)),
    ("1 week", (2026, 11, 21, 18, 30)), ("90 seconds ago", (2026, 11, 28, 18, 28, 30)),
    ("today", (2026, 11, 28)), ("Yesterday", (2026, 11, 27)), ("tomorrow", (2026, 11, 29)),
    ("this week", (2026, 11, 23)), ("last week", (2026, 11, 16)), ("last-week", (2026, 11, 16)),
    ("lastweek", (2026, 11, 16)), ("last  week", (2026, 11, 16)), ("this month", (2026, 11, 1)),
    ("last month", (2026, 10, 1)), ("this year", (2026, 1, 1)), ("last year", (2025, 1, 1)),
    ("saturday", (2026, 11, 28)), ("sat", (2026, 11, 28)), ("last saturday", (2026, 11, 21)),
    ("monday", (2026, 11, 23)), ("sunday", (2026, 11, 22)), ("last sunday", (2026, 11, 22)),
    ("november", (2026, 11, 1)), ("nov", (2026, 11, 1)), ("last november", (2025, 11, 1)),
    ("december", (2025, 12, 1)), ("january", (2026, 1, 1)),
])
def test_dates(text: str, expected: tuple[int, ...]) -> None:
    assert at(text, SATURDAY) == datetime(*expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [
    "", " ", "x", "26", "2026-13", "2026-02-30", "0000", "2026-11-01T25:00", "2026-11-01x", "d",
    "3x", "last", "last day", "this", "ago", "99999y", "999999 months ago", "3 d ays", "mo", "m",
    "2026-11-01T12:30+99:99", "1e3", "-3d", "٣d٣", "９９９９９９y", "last last week", "\0",
])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(BadDate):
        moment(text, now=SATURDAY, zone=UTC)


@given(st.text(max_size=20), st.integers(-(2**70), 2**70))
def test_any_text_is_a_date_or_none(text: str, now: int) -> None:
    for zone in (UTC, BERLIN, None):
        with suppress(BadDate):
            assert isinstance(moment(text, now=now, zone=zone), int)


@pytest.mark.parametrize(("zone", "now", "text", "expected"), [
    # The clock goes back on 2026-10-25 at 3:00 and forward on 2026-03-29 at 2:00.
    (BERLIN, (2026, 10, 25, 12), "today", ms(UTC, 2026, 10, 24, 22)),
    (BERLIN, (2026, 10, 26, 12), "yesterday", ms(UTC, 2026, 10, 24, 22)),
    (BERLIN, (2026, 10, 26, 12), "today", ms(UTC, 2026, 10, 25, 23)),
    (BERLIN, (2026, 10, 26, 12), "1d", ms(UTC, 2026, 10, 25, 11)),
    (BERLIN, (2026, 10, 26, 12), "48h", ms(UTC, 2026, 10, 24, 11)),
    (BERLIN, (2026, 10, 26, 12), "2d", ms(UTC, 2026, 10, 24, 10)),
    (BERLIN, (2026, 3, 30, 12), "2026-03-29T02:30", ms(UTC, 2026, 3, 29, 1, 30)),
    (BERLIN, (2026, 3, 30, 12), "last week", ms(UTC, 2026, 3, 22, 23)),
    (NEW_YORK, (2026, 11, 2, 1), "last month", ms(UTC, 2026, 10, 1, 4)),
    # Midnight does not exist in Beirut on 2026-03-29: the day begins at 1:00.
    (BEIRUT, (2026, 3, 29, 12), "today", ms(UTC, 2026, 3, 28, 22)),
    # Ends of years.
    (KIRITIMATI, (2026, 1, 1, 0, 30), "today", ms(UTC, 2025, 12, 31, 10)),
    (KIRITIMATI, (2026, 1, 1, 0, 30), "yesterday", ms(UTC, 2025, 12, 30, 10)),
    (KIRITIMATI, (2026, 1, 1, 0, 30), "this year", ms(UTC, 2025, 12, 31, 10)),
    (NEW_YORK, (2025, 12, 31, 23, 30), "this year", ms(UTC, 2025, 1, 1, 5)),
    (UTC, (2026, 1, 1), "last month", ms(UTC, 2025, 12, 1)),
    (UTC, (2026, 1, 1), "last week", ms(UTC, 2025, 12, 22)),
    (UTC, (2024, 3, 31, 9), "1mo", ms(UTC, 2024, 2, 29, 9)),
    (UTC, (2024, 2, 29, 9), "1y", ms(UTC, 2023, 2, 28, 9)),
    (UTC, (2026, 1, 31, 9), "2mo", ms(UTC, 2025, 11, 30, 9)),
    # Apia left 2011-12-30 out.
    (APIA, (2011, 12, 31, 9), "yesterday", ms(UTC, 2011, 12, 30, 10)),
    (KATHMANDU, (2026, 5, 1, 3), "today", ms(UTC, 2026, 4, 30, 18, 15)),
])
def test_zones(zone: tzinfo, now: tuple[int, ...], text: str, expected: int) -> None:
    assert moment(text, now=ms(zone, *now), zone=zone) == expected


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_without_a_zone_days_are_those_of_the_computer(in_berlin: None) -> None:
    for text in ("today", "yesterday", "2026-03-29", "2d", "2026-03-29T02:30", "last month"):
        for now in (ms(BERLIN, 2026, 10, 26, 12), ms(BERLIN, 2026, 3, 30, 0, 30)):
            assert moment(text, now=now, zone=None) == moment(text, now=now, zone=BERLIN)


@pytest.mark.parametrize(("text", "value", "words"), [
    ("after:last week x", (2026, 11, 16), ["x"]), ("after:3 days ago", (2026, 11, 25, 18, 30), []),
    ("after:last weekend", None, ["weekend"]), ('before:"last month"', (2026, 10, 1), []),
    ("after:this  year", (2026, 1, 1), []), ("after:2026-11-01 12:30", (2026, 11, 1), ["12:30"]),
    ("after:last", None, []), ("before:last monday y", (2026, 11, 23), ["y"]),
])
def test_dates_in_queries(text: str, value: tuple[int, ...] | None, words: list[str]) -> None:
    query = parse(text, now=SATURDAY, zone=UTC)
    assert [each.value for each in query.filters] == ([ms(UTC, *value)] if value else [])
    assert [each.text for each in query.terms] == words
    assert bool(query.problems) is (value is None)


def test_phrases_without_quotes() -> None:
    assert PHRASE.match("last week") and not PHRASE.match("last weeks")
