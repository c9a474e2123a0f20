from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.kit.cache import WeightedCache
from tui.transcript.heights import Heights


@given(st.lists(st.integers(0, 9)), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9))),
       st.lists(st.integers(0, 9), max_size=40))
def test_sums_and_finding_agree_with_a_plain_list(
    start: list[int], changes: list[tuple[int, int]], appended: list[int]
) -> None:
    heights, plain = Heights(start), list(start)
    for value in appended:
        heights.append(value)
        plain.append(value)
    for place, value in changes:
        if plain:
            heights.set(place % len(plain), value)
            plain[place % len(plain)] = value
    assert len(heights) == len(plain) and heights.total == sum(plain)
    assert [heights.above(n) for n in range(len(plain) + 1)] == [
        sum(plain[:n]) for n in range(len(plain) + 1)]
    for line in range(sum(plain)):
        part, offset = heights.find(line)
        assert sum(plain[:part]) + offset == line and offset < plain[part]


def test_beyond_the_end_is_the_last_line() -> None:
    assert Heights([2, 3]).find(99) == (1, 2)
    assert Heights().find(4) == (0, 0)


def test_the_cache_forgets_the_oldest_by_weight_and_keeps_the_newest() -> None:
    cache: WeightedCache[str, int] = WeightedCache(10, least=1)
    cache.put("a", 1, 6)
    cache.put("b", 2, 4)
    assert cache.get("a") == 1
    cache.put("c", 3, 3)
    assert "b" not in cache and cache.get("a") == 1 and cache.weight == 9
    cache.put("huge", 4, 99)
    assert len(cache) == 1 and cache.get("huge") == 4
