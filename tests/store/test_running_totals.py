"""Costs of a session by the running totals that its source notes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.queries.running_totals import OwnCost, RunningTotals, cost_so_far


def note(usd: float, counter: str = "c", **models: float) -> dict[str, Any]:
    told: dict[str, Any] = {"usd": usd, "counter": counter}
    return {"backscroll": {"cost_so_far": {**told, **({"models": models} if models else {})}}}


def costs(
    *notes: tuple[int, dict[str, Any]], begun: float = 0.0, models: dict[str, float] | None = None
) -> list[OwnCost]:
    totals = RunningTotals()
    for at, metadata in notes:
        totals.take(at, "main", metadata)
    return totals.costs("s", {("s", "c"): begun}, {("s", "c"): models or {}})


def test_each_note_adds_what_came_since_the_one_before() -> None:
    found = costs((1, note(0.25, main=0.25)), (2, note(1.0, main=0.75, side=0.25)))
    assert found == [(1, "main", 0.25), (2, "main", 0.5), (2, "side", 0.25)]


def test_the_order_in_which_notes_arrive_changes_nothing() -> None:
    notes = [(1, note(0.25, main=0.25)), (2, note(0.5, side=0.25, main=0.25)), (3, note(0.5))]
    assert costs(*notes) == costs(*reversed(notes)) == [(1, "main", 0.25), (2, "side", 0.25)]


def test_a_fork_counts_its_own_only() -> None:
    # The parent had spent 0.75, 0.25 of that on the side: 1.5 - 0.75 = 0.75 = 0.5 + 0.25.
    found = costs(
        (5, note(1.5, main=1.0, side=0.5)), begun=0.75, models={"main": 0.5, "side": 0.25}
    )
    assert found == [(5, "main", 0.5), (5, "side", 0.25)]
    assert costs((5, note(0.75, main=0.75)), begun=0.75) == []


def test_counters_are_apart() -> None:
    found = costs((1, note(0.5, main=0.5)), (2, note(0.25, "d", main=0.25)))
    assert sum(cost.usd for cost in found) == 0.75


def test_notes_without_models_count_for_the_answers_model() -> None:
    assert costs((1, note(0.5))) == [(1, "main", 0.5)]
    # An older reading told no models; the newer one tells those of the whole counter.
    assert costs((1, note(0.5)), (2, note(1.0, main=0.75, side=0.25))) == [
        (1, "main", 0.5), (2, "main", 0.375), (2, "side", 0.125),
    ]  # fmt: skip
    # What no model has is the answer's too.
    assert costs((1, note(1.0, side=0.25))) == [(1, "main", 0.75), (1, "side", 0.25)]


@pytest.mark.parametrize("odd", [
    None, 7, [], {}, {"counter": 1}, {"usd": "x"}, {"usd": True}, {"usd": 1, "models": []},
    {"usd": 1, "models": {"m": "x", "n": None, "o": -5}},
])  # fmt: skip
def test_odd_notes_do_no_harm(odd: object) -> None:
    cost_so_far(odd)
    totals = RunningTotals()
    totals.take(1, "m", {"backscroll": {"cost_so_far": odd}})
    totals.take(1, "m", {"backscroll": odd})
    assert sum(cost.usd for cost in totals.costs("s", {}, {})) in (0.0, 1.0)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 900), st.integers(0, 900)), max_size=9),
    st.integers(0, 2000), st.integers(0, 2000),
)  # fmt: skip
def test_the_costs_add_up_to_what_the_counter_grew_by(
    notes: list[tuple[int, int, int]], begun: int, begun_side: int
) -> None:
    held = [(at, note(one + two, main=one, side=two)) for at, one, two in notes]
    found = costs(*held, begun=begun, models={"side": begun_side})
    most = max((one + two for _, one, two in notes), default=0)
    assert sum(cost.usd for cost in found) == pytest.approx(max(0, most - begun))
    assert all(cost.usd > 0 for cost in found)
