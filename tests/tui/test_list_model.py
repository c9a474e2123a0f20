from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from store.queries.list_keys import ListKeys
from tui.sessions.model import FOLD_BEYOND, HEADING_LINES, ListModel, build_model


@st.composite
def lists(draw: st.DrawFn) -> tuple[ListKeys, dict[int, bool], set[int] | None]:
    count = draw(st.integers(0, 24))
    rowids = draw(st.permutations(range(1, count + 1)))
    groups = [draw(st.integers(0, 3)) for _ in rowids]
    parents = {
        row: draw(st.integers(1, row - 1)) for row in range(2, count + 1) if draw(st.booleans())
    }
    folds = {row: draw(st.booleans()) for row in rowids if draw(st.integers(0, 3)) == 0}
    matching: set[int] | None = None
    if count and draw(st.booleans()):
        matching = set(draw(st.sets(st.sampled_from(rowids))))
    keys = ListKeys(array("q", rowids), array("i", groups), list("abcd"), parents)
    return keys, folds, matching


def plainly(
    keys: ListKeys, folds: dict[int, bool], matching: set[int] | None
) -> list[tuple[str, list[tuple[int, int]]]]:
    """The list as groups of (rowid, depth), in the most direct way."""
    order = [r for r in keys.rowids if matching is None or r in matching]
    group = dict(zip(keys.rowids, keys.groups, strict=True))
    parents = {c: p for c, p in keys.parents.items() if c in order and p in order}

    def root(row: int) -> int:
        return root(parents[row]) if row in parents else row

    def below(row: int) -> list[int]:
        return [r for r in order if parents.get(r) == row]

    def walk(row: int, depth: int) -> list[tuple[int, int]]:
        found = below(row)
        shown = [(row, depth)]
        if not folds.get(row, len(found) > FOLD_BEYOND and matching is None):
            for child in found:
                shown += walk(child, depth + 1)
        return shown

    made: dict[int, list[tuple[int, int]]] = {}
    for thread in dict.fromkeys(root(row) for row in order):
        made.setdefault(group[thread], []).extend(walk(thread, 0))
    return [(keys.group_names[number], rows) for number, rows in made.items()]


def as_plain(model: ListModel) -> list[tuple[str, list[tuple[int, int]]]]:
    rows = list(zip(model.rowids, model.depths, strict=True))
    return [(g.name, rows[g.start:g.start + g.entries]) for g in model.groups]


@given(lists())
def test_it_stands_as_the_plain_way_says(
    made: tuple[ListKeys, dict[int, bool], set[int] | None]
) -> None:
    keys, folds, matching = made
    model = build_model(keys, folds, matching)
    assert as_plain(model) == plainly(keys, folds, matching)
    expected = len(keys.rowids) if matching is None else len(matching)
    assert (model.matched, model.total) == (expected, len(keys.rowids))


@given(lists(), st.sampled_from([1, 2]), st.booleans())
def test_lines_and_entries_agree(
    made: tuple[ListKeys, dict[int, bool], set[int] | None], height: int, headed: bool
) -> None:
    model = build_model(*made, headed=headed)
    drawn: list[tuple[int, int | None, int]] = []
    for number, group in enumerate(model.groups):
        drawn += [(number, None, line) for line in range(HEADING_LINES if headed else 0)]
        for entry in range(group.start, group.start + group.entries):
            drawn += [(number, entry, line) for line in range(height)]
    assert model.lines(height) == len(drawn)
    assert [model.at_line(line, height) for line in range(len(drawn))] == drawn
    for entry in range(len(model)):
        assert drawn[model.top(entry, height)][1:] == (entry, 0)


def test_rails_run_on_beside_what_hangs_lower() -> None:
    keys = ListKeys(
        array("q", [1, 2, 3, 4, 5]), array("i", [0] * 5), ["a"], {2: 1, 3: 2, 4: 1, 5: 4}
    )
    model = build_model(keys, {})
    assert list(zip(model.rowids, model.lasts, model.rails, strict=True)) == [
        (1, 0, 0), (2, 0, 0), (3, 1, 0b10), (4, 1, 0), (5, 1, 0),
    ]


def test_a_folded_session_is_found_at_its_ancestor() -> None:
    keys = ListKeys(array("q", [1, 2, 3]), array("i", [0, 0, 0]), ["a"], {2: 1, 3: 2})
    model = build_model(keys, {1: True})
    assert list(model.rowids) == [1]
    assert model.find_shown(3) == 0
    assert model.find_shown(9) is None
