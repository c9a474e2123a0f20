"""Records do what the dataclasses that they stand in for did."""

from __future__ import annotations

import pytest

from store.system.records import field, fields, record, replaced


@record
class Point:
    """A point, for the tests."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)
    unit: str = field(default="m", metadata={"sql": "unit"})

    def moved(self) -> Point:
        """Return a point beside this one."""
        return Point(self.x + 1, self.y, self.names)


def test_a_record_has_a_constructor_with_defaults() -> None:
    one, other = Point(1), Point(1)
    assert (one.x, one.y, one.names, one.unit) == (1, 2, [], "m")
    one.names.append("a")
    assert other.names == [] and one != other
    assert Point(1, names=["a"]) == one and one.moved().x == 2
    assert repr(other) == "Point(x=1, y=2, names=[], unit='m')"


def test_a_record_has_slots_and_no_hash() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(Point(1))
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


def test_what_is_said_of_a_field_can_be_read() -> None:
    assert list(fields(Point)) == ["x", "y", "names", "unit"]
    assert fields(Point)["unit"].metadata == {"sql": "unit"}


def test_a_copy_has_other_values_of_some_fields() -> None:
    point = Point(1, 3)
    assert replaced(point, y=4) == Point(1, 4)
    assert point == Point(1, 3)
