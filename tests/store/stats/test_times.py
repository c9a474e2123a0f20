"""Periods tile time without gaps, in every zone, over every change of the clock."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.stats.facts import QUARTER_MS
from store.stats.times import PERIODS, Bucket, Buckets, Calendar, Period, years_sql

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


def test_an_hour_that_comes_twice_is_one_of_two_hours() -> None:
    first, second = ms("2026-10-25T02:30+02:00"), ms("2026-10-25T02:30+01:00")
    assert BERLIN.start(first, "hour") == BERLIN.start(second, "hour")
    assert BERLIN.end(first, "hour") - BERLIN.start(first, "hour") == 2 * HOUR


def test_a_midnight_that_is_skipped() -> None:
    havana = Calendar(ZoneInfo("America/Havana"))
    at = ms("2026-03-08T12:00-04:00")
    assert havana.start(at, "day") == ms("2026-03-08T01:00-04:00")
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
    bucket = bucket_of(calendar, at, "month")
    assert bucket.key == (first[:7] if starts == 1 else first)


def bucket_of(calendar: Calendar, at: int, period: Period) -> Bucket:
    """Return the bucket that the SQL puts a moment in."""
    quarter = at // QUARTER_MS
    read = sqlite3.connect(":memory:").execute
    (year,) = read(f"SELECT {years_sql('?1')}", (quarter,)).fetchone()
    buckets = Buckets(calendar, period, [year])
    (number,) = read(f"SELECT {buckets.sql('?1')}", (quarter,)).fetchone()
    return buckets.bucket(number)


@given(st.integers(1_000_000_000_000, 2_000_000_000_000), st.sampled_from(ZONES),
       st.sampled_from(PERIODS), st.integers(1, 31))  # fmt: skip
def test_periods_tile_time(at: int, zone: str, period: Period, starts: int) -> None:
    calendar = Calendar(ZoneInfo(zone), starts)
    start, end = calendar.start(at, period), calendar.end(at, period)
    assert start <= at < end
    assert calendar.start(start, period) == start == calendar.start(end - 1, period)
    assert calendar.start(end, period) == end
    assert list(calendar.steps(start, end + 1, period)) == [start, end]
    # What is counted has whole quarter hours.
    for moment in (at, start, end - 1):
        assert bucket_of(calendar, moment, period)[2:] == (start, end)


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    "day", ["0005-03-04", "1901-02-03", "1969-12-31", "1970-01-01", "9996-07-06"])
def test_times_long_ago_and_far_ahead(period: Period, zone: str, day: str) -> None:
    calendar = Calendar(ZoneInfo(zone))
    at = ms(f"{day}T02:00+00:00")
    bucket = bucket_of(calendar, at, period)
    # New York's own time had no whole quarter hours until 1883.
    assert bucket.start - QUARTER_MS < at < bucket.end
    start = datetime.fromtimestamp(bucket.start / 1000, ZoneInfo(zone))
    assert bucket.key == start.isoformat()[: len(bucket.key)]


@pytest.mark.parametrize("at", [-(2**62), 2**62])
def test_a_time_beyond_all_years_is_in_the_last_one(at: int) -> None:
    bucket = bucket_of(BERLIN, at, "day")
    assert bucket.key == ("0002-01-01" if at < 0 else "9998-01-01")


def test_only_years_with_something_are_looked_at() -> None:
    looked = []

    class Zone(ZoneInfo):
        def utcoffset(self, at: datetime | None) -> timedelta | None:
            looked.append(at)
            return super().utcoffset(at)

    def number(sql: str, at: int) -> int:
        row = sqlite3.connect(":memory:").execute(f"SELECT {sql}", (at // QUARTER_MS,)).fetchone()
        return int(row[0])

    moments = [ms("1970-01-01T00:00+00:00"), ms("2026-11-28T12:00+00:00"), 2**62]
    years = [number(years_sql("?1"), at) for at in moments]
    buckets = Buckets(Calendar(Zone("Europe/Berlin")), "day", years)
    assert len(looked) < 1_000
    keys = [buckets.bucket(number(buckets.sql("?1"), at)).key for at in moments]
    assert keys == ["1970-01-01", "2026-11-28", "9998-01-01"]
