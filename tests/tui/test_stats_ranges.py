"""The ranges of the statistics screen, and the bars that they are cut into."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from store.stats.times import Calendar
from tui.stats.ranges import (
    BadRange,
    Between,
    Bucket,
    Range,
    Slot,
    allowed,
    dates_query,
    day_of,
    fitting_bucket,
    parse_range,
    range_words,
    slot_words,
)
from tui.stats.ranges import slots as slots_of

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def slots(between: Between, bucket: Bucket, zone: ZoneInfo, month_starts: int = 1) -> list[Slot]:
    assert between.start is not None and between.end is not None
    return slots_of(between.start, between.end, bucket, Calendar(zone, month_starts))


NOW = at("2026-11-28T14:30")


@pytest.mark.parametrize(("chosen", "start", "end"), [
    (Range("today"), "2026-11-28", "2026-11-29"),
    (Range("7d"), "2026-11-22", "2026-11-29"),
    (Range("30d"), "2026-10-30", "2026-11-29"),
    (Range("7d", back=1), "2026-11-15", "2026-11-22"),
    (Range("1y"), "2025-11-29", "2026-11-29"),
])
def test_a_range_ends_with_the_day(chosen: Range, start: str, end: str) -> None:
    assert chosen.between(NOW, BERLIN) == (at(start), at(end))


def test_all_and_custom_ranges() -> None:
    assert Range("all").between(NOW, BERLIN) == (None, None)
    assert Range("all").why_not_moved and Range("30d").why_not_moved is None
    custom = Range("custom", 0, at("2026-11-15"), at("2026-11-25"))
    assert custom.moved(-1).between(NOW, BERLIN) == (at("2026-11-05"), at("2026-11-15"))
    assert custom.moved(-1).moved(1).moved(1) == custom


def test_an_earlier_range_stays_on_midnights_where_the_clock_is_changed() -> None:
    custom = Range("custom", 1, at("2026-10-25"), at("2026-11-01"))  # One hour is twice in it.
    assert custom.between(NOW, BERLIN) == (at("2026-10-18"), at("2026-10-25"))
    custom = Range("custom", 0, at("2026-04-01"), at("2026-04-08"))
    assert custom.moved(-1).between(NOW, BERLIN) == (at("2026-03-25"), at("2026-04-01"))


def test_a_range_of_all_time_has_earlier_ones_without_an_error() -> None:
    custom = Range("custom", 3, at("0300-01-01"), None)
    start, end = custom.between(NOW, BERLIN)
    assert start is not None and end is not None and start <= end
    assert range_words(Between(start, end), BERLIN)


@pytest.mark.parametrize(("typed", "start", "end"), [
    ("2026-11-01 .. 2026-11-15", "2026-11-01", "2026-11-16"),
    ("2026-11-01 to 2026-11-15", "2026-11-01", "2026-11-16"),
    ("last month ..", "2026-10-01", None),
    (".. 2026-11-15", None, "2026-11-16"),
    ("2026-11", "2026-11-01", None),
])
def test_a_range_can_be_typed(typed: str, start: str | None, end: str | None) -> None:
    found = parse_range(typed, now=NOW, zone=BERLIN)
    assert (found.start, found.end) == (start and at(start), end and at(end))


@pytest.mark.parametrize("typed", ["", "soon", "2026-11-15 .. soon", "2026-11-15 .. 2026-11-01"])
def test_what_is_no_range_says_why(typed: str) -> None:
    with pytest.raises(BadRange, match="date|begins"):
        parse_range(typed, now=NOW, zone=BERLIN)


def test_days_follow_the_clock_where_it_is_changed() -> None:
    found = slots(Between(at("2026-10-24"), at("2026-10-27")), "day", BERLIN)
    assert [slot.start for slot in found] == [at(f"2026-10-{day}") for day in (24, 25, 26)]
    assert [(slot.end - slot.start) // 3_600_000 for slot in found] == [24, 25, 24]
    hours = slots(Between(at("2026-10-25"), at("2026-10-26")), "hour", BERLIN)
    assert len(hours) == 24 and hours[2].end - hours[2].start == 2 * 3_600_000


def test_the_bars_of_a_range_have_labels() -> None:
    days = slots(Range("30d").between(NOW, BERLIN), "day", BERLIN)
    assert [slot.label for slot in days[:4]] == ["30 Oct", "31", "1 Nov", "2"]
    assert [slot.major for slot in days[:4]] == [True, False, True, False]
    weeks = slots(Range("1y").between(NOW, BERLIN), "week", BERLIN)
    assert len(weeks) == 53 and weeks[0].start == at("2025-11-29")
    months = slots(Range("1y").between(NOW, BERLIN), "month", BERLIN)
    assert [slot.label for slot in months[:3]] == ["2025", "Dec", "2026"]
    hours = slots(Range("today").between(NOW, BERLIN), "hour", BERLIN)
    assert (hours[0].label, hours[23].label, len(hours)) == ("00", "23", 24)
    assert slot_words(days[2], "day", BERLIN) == "Sun 1 Nov 2026"
    assert slot_words(hours[9], "hour", BERLIN) == "Sat 28 Nov 09:00"
    assert slot_words(months[2], "month", BERLIN) == "January 2026"
    assert slot_words(weeks[1], "week", BERLIN) == "1 Dec to 7 Dec 2025"


@pytest.mark.parametrize(("days", "bucket"), [
    (1, "hour"), (30, "day"), (200, "week"), (2000, "month")])
def test_the_bucket_fits_the_length(days: int, bucket: Bucket) -> None:
    between = Between(0, days * 86_400_000)
    assert fitting_bucket(between) == bucket and allowed(bucket, between)
    assert not allowed("hour", Between(0, 30 * 86_400_000))


def test_months_begin_on_the_day_of_the_bill() -> None:
    found = slots(Between(at("2026-10-01"), at("2026-11-29")), "month", BERLIN, 15)
    assert [slot.start for slot in found] == [
        at("2026-10-01"), at("2026-10-15"), at("2026-11-15")]


def test_the_computers_own_zone_follows_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        for text in ("2026-07-01T12:00", "2026-12-01T12:00", "2026-10-25T01:30"):
            assert day_of(at(text), None) == day_of(at(text), BERLIN)
        assert Range("30d").between(NOW, None) == Range("30d").between(NOW, BERLIN)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_range_in_words_and_as_a_query() -> None:
    assert range_words(Range("30d").between(NOW, BERLIN), BERLIN) == "30 Oct to 28 Nov 2026"
    assert range_words(Range("today").between(NOW, BERLIN), BERLIN) == "Sat 28 Nov 2026"
    assert range_words(Between(None, None), BERLIN) == "all time"
    assert range_words(Between(at("2026-10-01"), None), BERLIN) == "since 1 Oct 2026"
    utc = Between(int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000), None)
    assert dates_query(utc, UTC) == "after:2026-11-01"  # The tests run in UTC.
    berlin = Between(at("2026-11-01"), at("2026-11-02"))
    assert dates_query(berlin, BERLIN) == (
        "after:2026-11-01T00:00+01:00 before:2026-11-02T00:00+01:00")
