"""Periods tile time without gaps, in every zone, over every change of the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.stats.periods import PERIODS, Calendar, Period

BERLIN = Calendar(ZoneInfo("Europe/Berlin"))
HOUR, DAY = 3_600_000, 86_400_000
ZONES = (
    "UTC", "Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu",
    "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
)  # fmt: skip


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_days_of_23_and_25_hours() -> None:
    spring, autumn = ms("2026-03-29T12:00+02:00"), ms("2026-10-25T12:00+01:00")
    assert BERLIN.end(spring, "day") - BERLIN.start(spring, "day") == 23 * HOUR
    assert BERLIN.end(autumn, "day") - BERLIN.start(autumn, "day") == 25 * HOUR
    assert BERLIN.end(autumn, "week") - BERLIN.start(autumn, "week") == 7 * DAY + HOUR


def test_an_hour_that_comes_twice_is_two() -> None:
    first, second = ms("2026-10-25T02:30+02:00"), ms("2026-10-25T02:30+01:00")
    keys = [BERLIN.key(at, "hour") for at in (first, second)]
    assert keys == ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"]
    assert BERLIN.end(first, "hour") == BERLIN.start(second, "hour")


def test_a_midnight_that_is_skipped() -> None:
    havana = Calendar(ZoneInfo("America/Havana"))
    at = ms("2026-03-08T12:00-04:00")
    assert havana.moment(havana.start(at, "day")).isoformat() == "2026-03-08T01:00:00-04:00"
    assert havana.end(ms("2026-03-07T12:00-05:00"), "day") == havana.start(at, "day")


@pytest.mark.parametrize(("starts", "day", "first", "after"), [
    (1, "2026-11-28", "2026-11-01", "2026-12-01"),
    (15, "2026-11-28", "2026-11-15", "2026-12-15"),
    (15, "2026-01-03", "2025-12-15", "2026-01-15"),
    (31, "2026-02-28", "2026-02-28", "2026-03-31"),
    (31, "2026-02-27", "2026-01-31", "2026-02-28"),
    (31, "2026-03-30", "2026-02-28", "2026-03-31"),
    (30, "2028-02-29", "2028-02-29", "2028-03-30"),
    (31, "2026-12-31", "2026-12-31", "2027-01-31"),
])  # fmt: skip
def test_months_of_a_bill(starts: int, day: str, first: str, after: str) -> None:
    calendar = Calendar(UTC, starts)
    at = ms(f"{day}T13:00+00:00")
    assert calendar.start(at, "month") == ms(f"{first}T00:00+00:00")
    assert calendar.end(at, "month") == ms(f"{after}T00:00+00:00")
    assert calendar.key(at, "month") == (first[:7] if starts == 1 else first)


@given(st.integers(1_000_000_000_000, 2_000_000_000_000), st.sampled_from(ZONES),
       st.sampled_from(PERIODS), st.integers(1, 31))  # fmt: skip
def test_periods_tile_time(at: int, zone: str, period: Period, starts: int) -> None:
    calendar = Calendar(ZoneInfo(zone), starts)
    start, end = calendar.start(at, period), calendar.end(at, period)
    assert start <= at < end
    assert calendar.start(start, period) == start == calendar.start(end - 1, period)
    assert calendar.start(end, period) == end
    assert calendar.key(start, period) == calendar.key(end - 1, period) != calendar.key(end, period)
    assert list(calendar.steps(start, end + 1, period)) == [start, end]
