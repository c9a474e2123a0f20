"""Records do what the dataclasses that they stand in for did."""

from __future__ import annotations

import pickle
import typing

import pytest

from store.system.records import NamedTuple, field, fields, record, replaced


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


class Place(NamedTuple):
    """Where something is."""

    line: int
    column: int = 0

    @property
    def next(self) -> Place:
        """The line below."""
        return self._replace(line=self.line + 1)


class Typed(typing.NamedTuple):
    """Where something is."""

    line: int
    column: int = 0


def test_a_named_tuple_is_as_those_of_typing() -> None:
    place, typed = Place(3), Typed(3)
    assert repr(place) == repr(typed).replace("Typed", "Place") == "Place(line=3, column=0)"
    assert tuple(place) == tuple(typed) == (3, 0) and place.next == Place(line=4, column=0)
    assert Place._fields == Typed._fields and Place._field_defaults == Typed._field_defaults
    assert typing.get_type_hints(Place) == typing.get_type_hints(Typed)
    assert Place.__doc__ == Typed.__doc__
    assert Place.__mro__[1:] == Typed.__mro__[1:] and vars(Place).keys() - vars(Typed).keys() == {
        "next"}
    assert pickle.loads(pickle.dumps(place)) == place and Place.__module__ == __name__
    with pytest.raises(TypeError):
        Place()  # type: ignore[call-arg]


class Many(NamedTuple):
    """More fields than there are constructors with their names left out."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int
    j: int = 10


def test_a_named_tuple_may_have_many_fields() -> None:
    many = Many(0, 1, 2, 3, 4, 5, 6, 7, i=8)
    assert tuple(many) == (*range(9), 10) and many.j == 10
    assert many._replace(j=1)._asdict()["j"] == 1
    with pytest.raises(TypeError, match="Expected 10 arguments"):
        Many._make((1, 2))
    with pytest.raises(ValueError, match="unexpected field names"):
        many._replace(k=1)  # type: ignore[call-arg]
