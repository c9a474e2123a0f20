"""Costs of answers, worked out by hand from the figures in the comments."""

from __future__ import annotations

import pytest

from store.prices.estimating import AnswerUsage, estimate, priced
from store.prices.table import Above, Price, PriceTable, tier_of
from store.usage import Spent
from tui.kit.usage import cost_words

CLAUDE = Price(4, 20, 0.2, 5, 8)
LONG = Price(2, 12, 0.2, above=(Above(200_000, 4, 18, 0.4),))


def test_each_bucket_has_its_price() -> None:
    # 22 x 4 + (592 + 43) x 20 + 63,985 x 0.2 + 2,076 x 5 = 35,965 millionths: what Claude Code
    # itself noted for these tokens.
    usage = AnswerUsage(22, 592, 43, 63_985, 2_076)
    assert estimate(usage, CLAUDE) == pytest.approx(0.035965, abs=1e-12)


def test_an_hour_in_the_cache_costs_what_its_line_says() -> None:
    # 400 x 5 + 600 x 8 = 6,800 millionths.
    assert estimate(AnswerUsage(cache_write=1000, cache_write_1h=600), CLAUDE) == pytest.approx(
        0.0068, abs=1e-12
    )
    assert estimate(AnswerUsage(cache_write=1000), CLAUDE) == pytest.approx(0.005, abs=1e-12)
    # No more of it than was written at all.
    assert estimate(AnswerUsage(cache_write=10, cache_write_1h=600), CLAUDE) == pytest.approx(
        0.00008, abs=1e-12
    )


def test_a_larger_request_costs_more_as_a_whole() -> None:
    # 200,000 tokens are not more than 200,000: 100,000 x 2 + 100,000 x 0.2 + 10 x 12 = 220,120.
    at = AnswerUsage(100_000, 10, 0, 100_000)
    assert estimate(at, LONG) == pytest.approx(0.22012, abs=1e-12)
    # One more: 100,001 x 4 + 100,000 x 0.4 + 10 x 18 = 440,184.
    above = AnswerUsage(100_001, 10, 0, 100_000)
    assert estimate(above, LONG) == pytest.approx(0.440184, abs=1e-12)
    # A sum of small requests is not a large one.
    assert estimate(above, LONG, asked=5) == pytest.approx(0.220122, abs=1e-12)


def test_what_is_unknown_stays_unknown() -> None:
    assert estimate(AnswerUsage(1), None) is None
    assert estimate(AnswerUsage(1, cache_write=1), LONG) is None
    assert estimate(AnswerUsage(cache_write=1, cache_write_1h=1), Price(1, 1, 1, 1)) is None
    assert estimate(AnswerUsage(cache_write=2, cache_write_1h=0), Price(1, 1, 1, 1)) == 2e-6
    assert estimate(AnswerUsage(1, tier="fast"), CLAUDE) is None
    assert estimate(AnswerUsage(), Price()) == 0.0
    assert estimate(AnswerUsage(5), Price(input=0)) == 0.0


def test_tiers_have_one_name() -> None:
    assert [tier_of(said) for said in ("default", None, "", "Standard", "batches", "flex", 7)] == [
        "standard", "standard", "standard", "standard", "batch", "flex", "standard",
    ]  # fmt: skip


def answer(**metadata: object) -> dict[str, object]:
    return {"model": {"provider_id": "p", "model_id": "m"}, "usage": {"input": 1000}, **metadata}


def test_an_answer_is_estimated_where_its_agent_tells_no_cost() -> None:
    table = PriceTable([[Price(4, 20, pattern="m"), Price(8, 40, pattern="m", tier="fast")]])
    assert priced(answer(), table) == Spent(1000, estimated=0.004)
    assert priced(answer(cost_usd=0.25), table) == Spent(1000, cost=0.25)
    assert priced(answer(cost_usd=0), table) == Spent(1000, estimated=0.004)
    assert priced(answer(usage_details={"tier": "fast"}), table) == Spent(1000, estimated=0.008)
    for unknown in (answer(usage_details={"tier": "flex"}), answer(model={"model_id": "x"}),
                    answer(model={"model_id": 7}), answer(model=None),
                    answer(usage={"cache_read": 5})):  # fmt: skip
        assert priced(unknown, table).estimated is None
    assert priced(answer(), None) == Spent(1000)
    assert priced(answer(usage_details=[]), table).estimated == 0.004


def test_a_sum_with_an_estimate_is_marked() -> None:
    turn = Spent()
    assert cost_words(turn) == ""
    turn.add(Spent(cost=0.25))
    assert cost_words(turn) == "$0.250"
    turn.add(Spent(estimated=0.5))
    turn.add(Spent())
    assert cost_words(turn) == "≈ $0.75"
