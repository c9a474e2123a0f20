from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.ids import IdMinter, derived_id, derived_session_id
from tests.store.making import WRAP

SHAPE = re.compile(r"(ses|msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}")


def stamp(name: str) -> int:
    return int(name[4:16], 16)


def test_an_id_has_the_shape_of_the_contract() -> None:
    minter = IdMinter(lambda: 1_790_000_000_000)
    for prefix in ("ses", "msg", "prt"):
        name = minter.mint(prefix)
        assert len(name) == 30
        assert SHAPE.fullmatch(name)
        assert name.startswith(prefix)


def test_the_stamp_is_the_low_48_bits_of_the_time_and_a_counter() -> None:
    now = 1_790_000_000_000
    assert stamp(IdMinter(lambda: now).mint("msg")) == (now * 4096) % 2**48


def test_more_than_4096_ids_of_one_millisecond_borrow_the_next() -> None:
    minter = IdMinter(lambda: 1_790_000_000_000)
    names = [minter.mint("prt") for _ in range(10_000)]
    stamps = [stamp(name) for name in names]
    assert stamps == list(range(stamps[0], stamps[0] + 10_000))
    assert names == sorted(names)


def test_a_clock_that_steps_back_is_not_followed() -> None:
    times = iter([1000, 1001, 3, 4, 1001, 1002])
    minter = IdMinter(lambda: next(times))
    stamps = [stamp(minter.mint("msg")) for _ in range(6)]
    assert stamps == sorted(set(stamps))
    assert stamps[-1] == 1002 * 4096


@given(st.lists(st.integers(min_value=0, max_value=2**36 - 1), min_size=1, max_size=50))
def test_stamps_rise_whatever_the_clock_does(times: list[int]) -> None:
    left = iter(times)
    minter = IdMinter(lambda: next(left))
    stamps = [stamp(minter.mint("msg")) for _ in times]
    assert all(one < other for one, other in zip(stamps, stamps[1:], strict=False))


def test_threads_share_one_order() -> None:
    minter = IdMinter(lambda: 5)
    found: list[str] = []

    def mint() -> None:
        found.extend(minter.mint("msg") for _ in range(2000))

    threads = [threading.Thread(target=mint) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({stamp(name) for name in found}) == 8000


@pytest.mark.parametrize(
    ("now", "expected"),
    [(WRAP - 1, "fffffffff000"), (WRAP, "000000000000"), (WRAP + 1, "000000001000")],
)
def test_the_stamp_wraps_on_2026_08_14(now: int, expected: str) -> None:
    assert IdMinter(lambda: now).mint("msg")[4:16] == expected


def test_a_block_of_ticks_never_spans_the_wrap() -> None:
    minter = IdMinter(lambda: WRAP - 1)
    first = minter.reserve(5000)
    assert first == WRAP * 4096
    assert stamp(minter.mint("msg")) == 5000


def test_derived_ids_follow_from_their_names_alone() -> None:
    one = derived_id("msg", 1000, 0, "claude-code", "s", "m")
    assert one == derived_id("msg", 1000, 0, "claude-code", "s", "m")
    assert SHAPE.fullmatch(one)
    assert one != derived_id("msg", 1000, 0, "claude-code", "s", "n")
    assert one != derived_id("msg", 1000, 0, "claude-code", "sm", "")
    assert one < derived_id("msg", 1000, 1, "claude-code", "s", "a")


def test_a_derived_session_id_takes_no_time() -> None:
    name = derived_session_id("codex", "abc")
    assert SHAPE.fullmatch(name)
    assert name == derived_session_id("codex", "abc")
    assert name != derived_session_id("codex", "abd")
    assert name != derived_session_id("gemini", "abc")


def test_names_with_lone_surrogates_have_ids() -> None:
    assert SHAPE.fullmatch(derived_session_id("codex", "a\ud800"))
    assert SHAPE.fullmatch(derived_id("msg", 1, 0, "\udfff"))
