"""Records have what data classes have."""

from __future__ import annotations

from store.system.records import field, record, replaced


@record
class Place:
    name: str
    row: int = 0
    seen: list[int] = field(default_factory=list)


def test_a_copy_has_other_values_of_some_fields() -> None:
    place = Place("a", 3)
    assert replaced(place, row=4) == Place("a", 4)
    assert place == Place("a", 3)
