"""Moments and the time that a replay takes, and playing it; no clock runs."""

from __future__ import annotations

import pytest

from store.replay.axis import WAIT_MS, Axis
from store.replay.log import LATEST
from store.replay.player import FIRST_SPEED, MOST_STEP_MS, SPEEDS, Player
from store.replay.spans import Spans
from tests.store.replay.made import START, ms


def axis(*moments: int, writing: Spans | None = None) -> Axis:
    return Axis([ms(at) for at in moments], writing)


def test_waits_are_shortened() -> None:
    made = axis(0, 1_000, 61_000, 62_000)
    assert made.length(skip=True) == 2_000 + WAIT_MS
    assert made.length(skip=False) == 62_000
    pieces = ((0, 1_000), (0, 1_001), (1_000, 1_001), (60_000, 61_000), (61_000, 62_000))
    assert [made.has_wait(ms(start), ms(end)) for start, end in pieces] == [
        False, True, True, True, False]
    assert made.moment(2_000, skip=True) == ms(31_000)


def test_moments_there_and_back() -> None:
    writing = Spans([(ms(1_000), ms(9_000), 0)])
    made = axis(0, 1, 1_000, 30_000, 30_001, 86_400_000, writing=writing)
    for skip in (True, False):
        for at in (0, 1, 1_000, 5_000, 9_000, 20_000, 30_000, 30_001, 86_400_000):
            assert abs(made.moment(made.played(ms(at), skip=skip), skip=skip) - ms(at)) <= 1
        ascending = [made.played(ms(at), skip=skip) for at in range(0, 86_400_000, 999_983)]
        assert ascending == sorted(ascending)
    for at in (0, 1, 1_000, 30_000, 30_001, 86_400_000):
        assert made.moment(made.played(ms(at), skip=True), skip=True) == ms(at)


def test_a_text_that_is_written_is_no_wait() -> None:
    made = axis(0, 20_000, writing=Spans([(START, ms(15_000), 0)]))
    assert made.length(skip=True) == 15_000 + WAIT_MS
    assert made.moment(7_000, skip=True) == ms(7_000)
    assert axis(0, 20_000, writing=Spans([(START, ms(20_000), 0)])).length(skip=True) == 20_000


def test_ends_of_the_axis() -> None:
    made = axis(0, 500)
    assert made.moment(-9, skip=True) == START and made.moment(10**9, skip=True) == ms(500)
    assert made.played(0, skip=True) == 0 and made.played(LATEST, skip=False) == 500
    one = axis(7)
    assert one.length(skip=True) == 0 and one.moment(3, skip=True) == ms(7)
    far = Axis([START, LATEST])
    assert far.moment(far.played(LATEST, skip=False), skip=False) == LATEST
    assert far.length(skip=True) == WAIT_MS


def test_a_session_that_runs_ends_now() -> None:
    made = axis(0, 1_000)
    longer = made.reached(ms(500_000))
    assert longer.finish == ms(500_000) and longer.length(skip=True) == 1_000 + WAIT_MS
    assert made.finish == ms(1_000)
    assert made.reached(ms(5)).finish == ms(1_000)


def test_it_goes_by_the_clock_times_its_speed() -> None:
    player = Player(axis(0, 1_000, 2_000, 100_000))
    assert not player.advance(500) and player.at == START
    player.toggle()
    assert player.advance(100) and player.at == ms(100 * FIRST_SPEED)
    assert not player.advance(-5_000)
    player.advance(10**9)
    assert player.at > ms(100 * FIRST_SPEED) and MOST_STEP_MS * FIRST_SPEED == 4_000
    player.advance(500)
    assert player.at_end and not player.playing and player.at == ms(100_000)
    player.toggle()
    assert player.playing and player.at == START


def test_speeds() -> None:
    player = Player(axis(0, 1))
    assert SPEEDS[0] == 1 and SPEEDS[-1] == 60
    while player.change_speed(1):
        pass
    assert player.speed == 60
    while player.change_speed(-1):
        pass
    assert player.speed == 1


def test_skipping_waits_keeps_the_moment() -> None:
    player = Player(axis(0, 1_000, 61_000, 62_000))
    player.seek(ms(61_000))
    assert player.share == pytest.approx(3_000 / 4_000)
    player.toggle_skip()
    assert player.at == ms(61_000) and player.share == pytest.approx(61 / 62)
    player.seek_share(0.5)
    assert player.at == ms(31_000)


def test_the_end_of_a_session_that_runs_is_followed() -> None:
    base = axis(0, 1_000)
    player = Player(base.reached(ms(1_200)), running=True)
    player.toggle()
    player.advance(1_000)
    assert player.live and player.at == ms(1_200)
    player.take(base.reached(ms(9_000)), running=True)
    assert player.live and player.at == ms(9_000)
    player.seek(ms(500))
    assert not player.live and player.playing and player.at == ms(500)
    player.toggle()
    player.take(base.reached(ms(20_000)), running=True)
    assert player.at == ms(500) and not player.live
    player.seek_end()
    assert player.live
    player.take(axis(0, 1_000, 25_000), running=False)
    assert not player.live and not player.playing and player.at == ms(25_000)


def test_pausing_what_is_followed() -> None:
    player = Player(axis(0, 1_000), running=True)
    player.seek_end()
    player.toggle()
    assert not player.live and not player.playing
    player.toggle()
    assert player.live


def test_a_moment_chosen_later_outweighs_an_end_that_is_to_come() -> None:
    player = Player(axis(0, 1_000))
    player.growing = True
    player.seek_end()
    player.seek(ms(500))
    player.take(axis(0, 1_000, 9_000), running=False)
    assert player.at == ms(500)
    player.growing = True
    player.seek_end()
    player.take(axis(0, 1_000, 20_000), running=False)
    assert player.at == ms(20_000)
