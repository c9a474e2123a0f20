"""Which cases of a test with ``one_in`` a plain run has."""

from __future__ import annotations

import pytest

SIZES = ("wide", "narrow", "tiny")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("key", "place"), [("a", 0), ("b", 1), ("c", 2)])
@pytest.mark.one_in(3)
def test_each_value_stays_with_some_of_the_others(
    request: pytest.FixtureRequest, size: str, key: str, place: int
) -> None:
    is_long = request.node.get_closest_marker("long") is not None
    assert is_long is ((SIZES.index(size) + "abc".index(key)) % 3 > 0)
