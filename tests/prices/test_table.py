"""Which line of the table a model has."""

from __future__ import annotations

import pytest

from store.prices.estimating import AnswerUsage, estimate
from store.prices.loading import package_prices
from store.prices.table import Price, PriceTable


@pytest.fixture(scope="module")
def package() -> PriceTable:
    return PriceTable([package_prices()])


def cost(
    table: PriceTable, model: str, usage: AnswerUsage, provider: str | None = None
) -> float | None:
    return estimate(usage, table.price(model, provider, usage.tier))


def test_a_cache_read_may_cost_a_twentieth_of_the_input(package: PriceTable) -> None:
    # Opus 5.5: 1,000,000 x 0.2; Sonnet 4.6: 1,000,000 x 0.3, which is a tenth.
    usage = AnswerUsage(cache_read=1_000_000)
    assert cost(package, "claude-opus-5-5", usage) == pytest.approx(0.20)
    assert cost(package, "claude-sonnet-4-6", usage) == pytest.approx(0.30)
    assert cost(package, "claude-fable-5-1", usage) == pytest.approx(0.25)


def test_an_hour_costs_twice_the_input(package: PriceTable) -> None:
    usage = AnswerUsage(cache_write=1_000_000, cache_write_1h=1_000_000)
    assert cost(package, "claude-opus-5-5", usage) == pytest.approx(8.0)
    assert cost(package, "claude-haiku-4-5-20251001", usage) == pytest.approx(2.0)


def test_a_request_above_the_size_costs_more(package: PriceTable) -> None:
    # 200,001 x 2.5 + 1,000 x 15 = 515,002.5 millionths; one token less, 1.25 and 10: 260,000.
    large, small = AnswerUsage(200_001, 1_000), AnswerUsage(200_000, 1_000)
    assert cost(package, "gemini-2.5-pro", large) == pytest.approx(0.5150025)
    assert cost(package, "gemini-2.5-pro", small) == pytest.approx(0.26)
    # OpenAI counts from 272,000: 272,001 x 10 + 1,000 x 45 = 2,765,010.
    assert cost(package, "gpt-5.5", AnswerUsage(272_001, 1_000)) == pytest.approx(2.76501)
    # Anthropic asks the same for all sizes, Bedrock not: 200,001 x 3, or x 6.
    sonnet = AnswerUsage(200_001)
    assert cost(package, "claude-sonnet-4-5", sonnet) == pytest.approx(0.600003)
    bedrock = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert cost(package, bedrock, sonnet) == pytest.approx(1.200006)


def test_fast_and_batch_have_lines_of_their_own(package: PriceTable) -> None:
    # 1,000 x 8 + 100 x 40 = 12,000; standard 1,000 x 4 + 100 x 20 = 6,000; batch half of that.
    assert cost(package, "claude-opus-5-5", AnswerUsage(1000, 100, tier="fast")) == 0.012
    assert cost(package, "claude-opus-5-5", AnswerUsage(1000, 100)) == 0.006
    assert cost(package, "claude-opus-5-5", AnswerUsage(1000, 100, tier="batch")) == 0.003
    # No fast mode is published for Sonnet.
    assert cost(package, "claude-sonnet-5-5", AnswerUsage(1000, tier="fast")) is None
    assert cost(package, "gpt-5.5", AnswerUsage(1000, 100, tier="flex")) == 0.004
    assert cost(package, "gpt-5.5", AnswerUsage(1000, 100, tier="priority")) == 0.02
    # OpenRouter has the mode as a model: 1,000 x 10 + 100 x 50.
    assert cost(package, "anthropic/claude-opus-5-fast", AnswerUsage(1000, 100)) == 0.015


def test_a_region_of_bedrock_costs_a_tenth_more(package: PriceTable) -> None:
    usage = AnswerUsage(1_000_000)
    for model, dollars in (
        ("us.anthropic.claude-opus-5-5", 4.4), ("eu.anthropic.claude-opus-5-5", 4.4),
        ("global.anthropic.claude-opus-5-5", 4.0), ("us-gov.anthropic.claude-opus-5-5", 4.8),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 3.0 * 2),
    ):  # fmt: skip
        assert cost(package, model, usage, "anthropic") == pytest.approx(dollars), model
        assert cost(package, f"bedrock/{model}", usage) == pytest.approx(dollars), model


@pytest.mark.parametrize(("written", "line"), [
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
    ("claude-opus-4-8[1m]", "claude-opus-4-8"),
    ("claude-opus-4-5@20251101", "claude-opus-4-5"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5@20250929"),
    ("anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
    ("openrouter/openai/gpt-5.2", "gpt-5.2"),
    ("models/gemini-2.5-flash", "gemini-2.5-flash"),
    ("gpt-5.4-2026-03-05", "gpt-5.4"),
    ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("Claude-Opus-5-5", "claude-opus-5-5"),
])  # fmt: skip
def test_ids_as_agents_write_them(package: PriceTable, written: str, line: str) -> None:
    found = package.price(written)
    assert found is not None and found.pattern == line


@pytest.mark.parametrize("model", [
    "", "mock-1", "gpt-5-mock", "claude", "claude-opus-9", "claude-opus-5-5-turbo",
    "claude-opus-4-80", "gpt-5.4:free", "x" * 5000, "../gpt", "claude-opus-5-5\n", "*",
])  # fmt: skip
def test_unknown_models_stay_unknown(package: PriceTable, model: str) -> None:
    assert package.price(model) is None
    assert cost(package, model, AnswerUsage(1000)) is None


def test_an_open_model_has_its_makers_price_with_its_maker_only(package: PriceTable) -> None:
    assert package.price("deepseek-v4-pro", "deepseek") is not None
    assert package.price("deepseek-v4-pro", "unknown") is not None
    assert package.price("deepseek/deepseek-v4-pro", "openrouter") is None
    assert package.price("accounts/fireworks/models/deepseek-v4-pro", "fireworks") is None
    assert package.price("ollama/glm-5") is None
    assert package.price("eu/gpt-5.5", "azure") != package.price("gpt-5.5", "azure")
    assert package.price("azure/eu/gpt-5.5") == package.price("eu/gpt-5.5", "azure")


def test_an_exact_id_goes_before_a_pattern_and_a_layer_before_the_next() -> None:
    lines = [
        Price(1, pattern="m-*"), Price(2, pattern="m-large-*"), Price(3, pattern="m-large-2"),
        Price(4, pattern="m-large-2", providers=("azure",)), Price(5, pattern="*-2", tier="batch"),
    ]  # fmt: skip
    table = PriceTable([lines])

    def found(model: str, provider: str = "", tier: str = "standard") -> float | None:
        price = table.price(model, provider, tier)
        return None if price is None else price.input

    assert found("m-small") == 1
    assert found("m-large-1") == 2
    assert found("m-large-2") == 3
    assert found("m-large-2", "azure-openai") == 4
    assert found("m-large-2", "", "batch") == 5
    assert found("m") is None
    over = PriceTable([[Price(9, pattern="m-*")], lines])
    price = over.price("m-large-2")
    assert price is not None and price.input == 9
    assert over.digest != table.digest


def test_a_pattern_of_many_stars_is_quick() -> None:
    table = PriceTable([[Price(1, pattern="*a" * 40 + "b")]])
    assert table.price("a" * 250) is None
    assert table.price("a" * 40 + "b") is not None


def test_the_packages_lines_say_where_they_come_from(package: PriceTable) -> None:
    lines = package.layers[0]
    assert len(lines) == len({(line.pattern, line.tier, line.providers) for line in lines})
    for line in lines:
        assert line.source.startswith("https://") and line.date >= "2026-11-01", line
        assert line.input is not None and line.output is not None, line
        # What is written to or read from the cache never costs less than nothing; a price per
        # token instead of per million would be far below these.
        assert line.output == 0 or 0.01 <= line.output <= 1000, line
        assert line.input <= line.output, line
        assert line.cache_read is None or line.cache_read <= line.input, line
        assert [one.tokens for one in line.above] == sorted({one.tokens for one in line.above})
